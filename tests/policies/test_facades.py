"""The policy objects are the actor-critic and nothing else: same parameters, same draws, and bad input refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from thrust_rl.config import ARMS, ConfigError, TrainConfig
from thrust_rl.envs.registry import make
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.memory.lstm import LSTMMemory
from thrust_rl.policies.configs import LSTMConfig, MLPConfig
from thrust_rl.policies.facades import LSTMPolicy, MLPPolicy, sample_actions
from thrust_rl.training.loop import initial_state

SEED = 3
NUM_ENVS, NUM_STEPS = 5, 7
RNG = np.random.default_rng(0)
OBS = RNG.normal(size=(NUM_ENVS, NUM_STEPS, 4)).astype(np.float32)
STARTS = RNG.random((NUM_ENVS, NUM_STEPS)) < 0.3
ACTIONS = RNG.integers(0, 2, (NUM_ENVS, NUM_STEPS))


def mlp(**settings):
    return MLPPolicy(4, 2, MLPConfig(num_layers=2, hidden_dim=8, **settings))


def lstm(seed=SEED):
    return LSTMPolicy(4, 2, LSTMConfig(hidden_dim=6, seed=seed))


def same_bits(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.mark.parametrize("build", [functools.partial(mlp, seed=SEED), lstm])
def test_one_seed_gives_one_policy(build):
    assert same_bits(build().module, build().module)


@pytest.mark.parametrize("build", [lambda seed: mlp(seed=seed), lstm])
def test_another_seed_gives_another_policy(build):
    assert not same_bits(build(1).module, build(2).module)


@pytest.mark.parametrize(
    ("arm", "policy"),
    [("mlp", MLPPolicy(4, 2, MLPConfig(seed=SEED))), ("lstm", LSTMPolicy(4, 2, LSTMConfig(seed=SEED)))],
)
def test_defaults_are_what_packaged_training_begins_with(arm, policy):
    init = functools.partial(initial_state, make("CartPole-v1"), ARMS[arm], TrainConfig(num_envs=2))
    assert same_bits(policy.module, jax.jit(init)(jnp.asarray(SEED, jnp.uint32)).learner.policy)


def test_actions_are_drawn_by_the_stream_and_step_of_each_environment():
    logits = RNG.normal(size=(NUM_ENVS, 3)).astype(np.float32)
    for step in (0, 11):
        actions, log_probs = sample_actions(logits, seed=SEED, step=step)
        for env, stream in enumerate(environment_keys(jax.random.key(SEED), NUM_ENVS)):
            key = purpose_key(step_key(stream, step + 1), Purpose.ACTION)
            assert actions[env] == jax.random.categorical(key, logits[env])
        chosen = np.take_along_axis(jax.nn.log_softmax(logits), actions[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(log_probs, chosen, atol=1e-6)


def test_an_environments_actions_do_not_depend_on_how_many_there_are():
    logits = RNG.normal(size=(NUM_ENVS, 3)).astype(np.float32)
    many, few = (sample_actions(rows, seed=1, step=4)[0] for rows in (logits, logits[:2]))
    assert many[:2].tolist() == few.tolist()


def test_draws_have_the_policys_probabilities():
    logits = np.tile(np.log(np.float32([0.7, 0.2, 0.1])), (4000, 1))
    frequency = np.bincount(sample_actions(logits, seed=0, step=0)[0], minlength=3) / 4000
    np.testing.assert_allclose(frequency, [0.7, 0.2, 0.1], atol=4 * np.sqrt(0.25 / 4000))


def test_acting_is_looking_then_sampling_and_every_call_is_a_step():
    policy = mlp(seed=SEED)
    logits = jax.vmap(lambda o: policy.module.step((), o, jnp.array(False))[1].distribution.logits)(OBS[:, 0])
    for step in range(3):
        actions, log_probs, values = policy.get_action(OBS[:, 0])
        expected = sample_actions(logits, seed=SEED, step=step)
        assert actions.tolist() == expected[0].tolist()
        np.testing.assert_allclose(log_probs, expected[1], atol=1e-6)
        np.testing.assert_allclose(values, policy.predict_values(OBS[:, 0]), atol=1e-6)
    assert policy.next_step == 3


def test_evaluating_the_drawn_actions_gives_back_what_acting_said():
    policy = mlp(seed=SEED)
    actions, log_probs, values = policy.get_action(OBS[:, 0])
    again = policy.evaluate_actions(OBS[:, 0], actions)
    np.testing.assert_allclose(again[0], log_probs, atol=1e-6)
    np.testing.assert_allclose(again[2], values, atol=1e-6)
    other = policy.evaluate_actions(OBS[:, 0], 1 - actions)[0]
    np.testing.assert_allclose(np.exp(again[0]) + np.exp(other), 1.0, atol=1e-6)
    both = np.stack([again[0], other])
    np.testing.assert_allclose(again[1], -(np.exp(both) * both).sum(axis=0), atol=1e-6)


def act_through(policy, state, *, by_flag):
    """Step over `OBS`, forgetting by the flag or by zeroing rows beforehand."""
    logits, values = [], []
    for t in range(NUM_STEPS):
        if by_flag:
            out = policy.forward_step(OBS[:, t], state, episode_start=STARTS[:, t])
        else:
            if state is not None:
                state.hidden[STARTS[:, t]] = 0.0
                state.cell[STARTS[:, t]] = 0.0
            out = policy.forward_step(OBS[:, t], state)
        logits.append(out[0])
        values.append(out[1])
        state = out[2]
    return np.stack(logits, 1), np.stack(values, 1), state


def warm_state():
    return LSTMMemory(*np.random.default_rng(1).normal(size=(2, NUM_ENVS, 6)).astype(np.float32))


@pytest.mark.parametrize("begin", [lambda: None, warm_state], ids=["empty", "warm"])
def test_replaying_sequences_is_stepping_through_them(begin):
    policy = lstm()
    logits, values, _ = act_through(policy, begin(), by_flag=True)
    log_probs, entropy, replayed = policy.evaluate_sequences(OBS, ACTIONS, begin(), STARTS)
    np.testing.assert_allclose(replayed, values, atol=1e-6)
    stepped = np.asarray(jax.nn.log_softmax(logits))
    np.testing.assert_allclose(log_probs, np.take_along_axis(stepped, ACTIONS[..., None], 2)[..., 0], atol=1e-6)
    np.testing.assert_allclose(entropy, -(np.exp(stepped) * stepped).sum(-1), atol=1e-6)


@pytest.mark.parametrize("begin", [lambda: None, warm_state], ids=["empty", "warm"])
def test_zeroing_rows_by_hand_is_forgetting_by_the_flag(begin):
    by_flag = act_through(lstm(), begin(), by_flag=True)
    by_hand = act_through(lstm(), begin(), by_flag=False)
    assert same_bits(by_flag, by_hand)


def test_no_state_is_the_empty_memory():
    policy, empty = lstm(), lstm().empty_memory(NUM_ENVS)
    zeros = np.zeros((NUM_ENVS, 6), np.float32)
    assert same_bits(empty, LSTMMemory(zeros, zeros))
    assert same_bits(empty, jax.vmap(lambda _: policy.module.initial())(zeros))  # the cell's own opinion
    assert same_bits(policy.forward_step(OBS[:, 0], None), policy.forward_step(OBS[:, 0], empty))


def test_an_empty_memory_is_the_callers_to_change():
    policy = lstm()
    empty = policy.empty_memory(NUM_ENVS)
    empty.hidden[:] = 1.0
    assert not empty.cell.any() and not policy.empty_memory(NUM_ENVS).hidden.any()


def test_memory_matters_and_is_not_changed_in_place():
    policy, state = lstm(), warm_state()
    before = warm_state()
    with_memory = policy.forward_step(OBS[:, 0], state)[1]
    assert same_bits(state, before)
    assert not np.allclose(with_memory, policy.forward_step(OBS[:, 0], None)[1])


def test_activation_and_initialization_are_as_configured():
    policy = mlp(activation="tanh", seed=SEED)
    x = OBS[:, 0]
    for layer in policy.module.encoder.layers:
        x = np.tanh(x @ np.asarray(layer.weight) + np.asarray(layer.bias))
    values = (x @ np.asarray(policy.module.critic.weight))[:, 0]
    np.testing.assert_allclose(policy.predict_values(OBS[:, 0]), values, atol=1e-5)
    for orthogonal in (True, False):
        built = MLPPolicy(64, 2, MLPConfig(hidden_dim=64, orthogonal_init=orthogonal))
        weight = np.asarray(built.module.encoder.layers[0].weight)
        assert np.allclose(weight.T @ weight, 2.0 * np.eye(64), atol=1e-4) == orthogonal
        np.testing.assert_allclose(weight.var(), 2.0 / 64, rtol=0.1)


def test_configurations_are_packaged_arms():
    assert MLPConfig().arm == ARMS["mlp"]
    assert LSTMConfig().arm == ARMS["lstm"]


NAN = OBS[:, 0] + np.where(np.arange(NUM_ENVS) == 2, np.nan, 0.0)[:, None]
ZEROS = np.zeros((NUM_ENVS, 6), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mlp().get_action(OBS[0, 0]), ValueError, r"obs has shape \(4,\): expected \(any, 4\).*\[env, obs\]"),
        (lambda: mlp().get_action(OBS[:, 0, :3]), ValueError, r"obs has shape \(5, 3\)"),
        (lambda: mlp().get_action(OBS[:0, 0]), ValueError, r"obs has shape \(0, 4\)"),
        (lambda: mlp().get_action(np.ones((5, 4), int)), TypeError, r"obs has dtype int64.*astype"),
        (lambda: mlp().get_action(NAN), ValueError, r"obs\[2, 0\] is nan.*finite"),
        (lambda: mlp().predict_values(np.full((5, 4), np.inf)), ValueError, "obs.* is inf"),
        (lambda: mlp().evaluate_actions(OBS[:, 0], ACTIONS[:3, 0]), ValueError, r"actions has shape \(3,\)"),
        (lambda: mlp().evaluate_actions(OBS[:, 0], np.ones(5)), TypeError, "actions has dtype float64.*integers"),
        (lambda: mlp().evaluate_actions(OBS[:, 0], [0, 1, 2, 0, 0]), ValueError, r"actions\[2\] is 2.*\[0, 1\]"),
        (lambda: mlp().evaluate_actions(OBS[:, 0], [0, 1, -1, 0, 0]), ValueError, r"actions\[2\] is -1"),
        (lambda: lstm().forward_step(OBS[:, 0], LSTMMemory(ZEROS[:4], ZEROS[:4])), ValueError, r"hidden has.*\(5, 6\)"),
        (lambda: lstm().forward_step(OBS[:, 0], LSTMMemory(ZEROS, ZEROS[:1])), ValueError, r"state.cell has"),
        (lambda: lstm().forward_step(OBS[:, 0], LSTMMemory(ZEROS * np.nan, ZEROS)), ValueError, "state.hidden.*nan"),
        (lambda: lstm().forward_step(OBS[:, 0], None, episode_start=np.ones(5)), TypeError, "episode_start.*booleans"),
        (lambda: lstm().forward_step(OBS[:, 0], None, episode_start=True), ValueError, r"episode_start has shape \(\)"),
        (lambda: lstm().evaluate_sequences(OBS[0], ACTIONS, None, STARTS), ValueError, "obs_seq has shape"),
        (lambda: lstm().evaluate_sequences(OBS, ACTIONS[:, 1:], None, STARTS), ValueError, "actions has shape"),
        (lambda: lstm().evaluate_sequences(OBS, ACTIONS, None, STARTS[:, :1]), ValueError, "episode_starts has shape"),
        (lambda: sample_actions(np.ones(2), seed=0, step=0), ValueError, "logits has shape"),
        (lambda: sample_actions(np.ones((1, 2)), seed=0, step=-1), ValueError, "step is -1"),
        (lambda: sample_actions(np.ones((1, 2)), seed=0, step=2**31), ValueError, "step is 2147483648: the steps"),
        (lambda: sample_actions(np.ones((1, 2)), seed=0, step=True), TypeError, "step is True .*an integer"),
        (lambda: sample_actions(np.ones((1, 2)), seed=-1, step=0), ConfigError, "seed is -1"),
        (lambda: mlp(seed=2**32), ConfigError, "seed is 4294967296"),
        (lambda: mlp(activation="gelu"), (ConfigError, TypeError), "activation"),
        (lambda: MLPPolicy(4, 0), ValueError, "action_dim is 0"),
        (lambda: lstm().empty_memory(0), ConfigError, "num_envs is 0"),
        (lambda: LSTMConfig(hidden_dim=0), ConfigError, "hidden_dim is 0"),
        (lambda: MLPConfig(num_layers=0), ConfigError, "num_layers is 0"),
        (lambda: MLPConfig(hidden_dim=0), ConfigError, "hidden_dim is 0"),
        (lambda: LSTMConfig(seed=-1), ConfigError, "seed is -1"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_pair_is_no_state():
    with pytest.raises(TypeError):
        lstm().forward_step(OBS[:, 0], (ZEROS, ZEROS))
