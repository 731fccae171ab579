"""Trainers are the packaged update: any optimizer, any scoring, compiled once, and nothing broken is taken over."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from thrust_rl.config import ConfigError, PPOConfig
from thrust_rl.maths.keys import Purpose, purpose_key, step_key
from thrust_rl.policies.configs import LSTMConfig, MLPConfig
from thrust_rl.policies.facades import LSTMPolicy, MLPPolicy
from thrust_rl.policies.scoring import score
from thrust_rl.rollout.buffers import RecurrentRolloutBuffer, RolloutBuffer
from thrust_rl.training import learner as learner_module
from thrust_rl.training.ppo import Learner, experience_of, make_optimizer, update, with_learning_rate
from thrust_rl.training.result import TrainingError
from thrust_rl.training.trainers import PPOTrainer, RecurrentPPOTrainer

T, N, H = 6, 4, 5
SEED = 2
CONFIG = PPOConfig(n_epochs=2, envs_per_minibatch=2, batch_size=8, learning_rate=1e-2)


def lstm():
    return LSTMPolicy(3, 2, LSTMConfig(hidden_dim=H, seed=SEED))


def mlp():
    return MLPPolicy(3, 2, MLPConfig(num_layers=1, hidden_dim=H, seed=SEED))


def filled(buffer, policy, *, rewards=None, seed=0):
    """A full window with advantages, as the policy would have acted from an empty memory."""
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(N, T, 3)).astype(np.float32)
    actions, ends = rng.integers(0, 2, (N, T)), rng.random((N, T)) < 0.2
    starts = np.ones((N, T), bool)
    starts[:, 1:] = ends[:, :-1]
    if isinstance(policy, LSTMPolicy):
        log_probs, _, values = policy.evaluate_sequences(obs, actions, None, starts)
    else:
        flat = policy.evaluate_actions(obs.reshape(-1, 3), actions.reshape(-1))
        log_probs, _, values = (each.reshape(N, T) for each in flat)
    rewards = rng.normal(size=(N, T)).astype(np.float32) if rewards is None else rewards
    for t in range(T):
        step = obs[:, t], actions[:, t], rewards[:, t], values[:, t], log_probs[:, t], ends[:, t]
        buffer.add(t, *step, np.zeros(N, bool))
    buffer.compute_advantages(np.zeros(N), CONFIG.gamma, CONFIG.gae_lambda)
    return buffer


def recurrent(config=CONFIG, optimizer=None, **window):
    policy = lstm()
    buffer = filled(RecurrentRolloutBuffer(T, N, 3, H), policy, **window)
    return RecurrentPPOTrainer(config, policy, optimizer), buffer


def memoryless(config=CONFIG, optimizer=None, **window):
    policy = mlp()
    return PPOTrainer(config, policy, optimizer), filled(RolloutBuffer(T, N, 3), policy, **window)


BOTH = pytest.mark.parametrize("build", [recurrent, memoryless])


def parameters(trainer):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(trainer.policy.module)])


@BOTH
def test_train_step_is_the_packaged_update(build):
    trainer, buffer = build()
    has_memory = build is recurrent
    optimizer = make_optimizer(CONFIG)
    policy = trainer.policy.module
    learner = Learner(policy, with_learning_rate(optimizer.init(policy), jnp.asarray(1e-2)))
    for window in range(2):
        learner, expected = update(
            learner,
            experience_of(jax.tree.map(jnp.asarray, buffer.rollout), CONFIG, has_memory=has_memory),
            step_key(purpose_key(jax.random.key(SEED), Purpose.SHUFFLE), window),
            optimizer=optimizer,
            config=CONFIG,
            rows_per_minibatch=2 if has_memory else 8,
        )
        stats = trainer.train_step(buffer)
        for mine, theirs in zip(jax.tree.leaves(trainer.policy.module), jax.tree.leaves(learner.policy), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        for name, term in expected.losses._asdict().items():
            np.testing.assert_allclose(getattr(stats, name), term, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(stats.explained_variance, expected.explained_variance, atol=1e-4)
        assert (stats.n_updates, stats.early_stopped) == (int(expected.n_updates), False)


@BOTH
def test_statistics_are_plain_numbers(build):
    trainer, buffer = build()
    stats = trainer.train_step(buffer)
    assert {name: type(value) for name, value in stats._asdict().items()} == {
        **dict.fromkeys(("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"), float),
        **dict.fromkeys(("explained_variance", "grad_norm"), float),
        "n_updates": int,
        "early_stopped": bool,
    }
    assert trainer.n_updates == stats.n_updates == (4 if build is recurrent else 6)
    assert trainer.n_updates + trainer.train_step(buffer).n_updates == trainer.n_updates


@BOTH
def test_the_policy_given_is_the_policy_trained(build):
    trainer, buffer = build()
    policy, before = trainer.policy, parameters(trainer)
    trainer.train_step(buffer)
    assert trainer.policy is policy
    assert not np.allclose(parameters(trainer), before)


@BOTH
def test_early_stop(build):
    config = PPOConfig(n_epochs=2, envs_per_minibatch=2, batch_size=8, learning_rate=1e-2, target_kl=1e-7)
    trainer, buffer = build(config)
    stats = trainer.train_step(buffer)
    assert stats.early_stopped
    assert 1 <= stats.n_updates < 4


OPTIMIZERS = {
    "adam": lambda rate: optax.adam(rate),
    "adamw": lambda rate: optax.adamw(rate),
    "sgd": lambda rate: optax.sgd(rate, momentum=0.9),
    "lion": lambda rate: optax.lion(rate),
    "scheduled": lambda rate: optax.rmsprop(optax.linear_schedule(rate, 0.0, 100)),
    "injected": lambda rate: optax.inject_hyperparams(optax.lamb)(learning_rate=rate),
    "injected-inside": lambda rate: optax.chain(optax.identity(), optax.inject_hyperparams(optax.sgd)(rate)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer_fits(name):
    config = PPOConfig(n_epochs=1, envs_per_minibatch=2)
    trainer, buffer = recurrent(config, OPTIMIZERS[name](1e-3))
    before = parameters(trainer)
    trainer.train_step(buffer)
    assert np.isfinite(parameters(trainer)).all()
    assert not np.allclose(parameters(trainer), before, atol=1e-6)
    if not name.startswith("injected"):
        assert trainer.learning_rate is None
        with pytest.raises(ValueError, match="inject_hyperparams"):
            trainer.set_learning_rate(1e-4)
        return
    np.testing.assert_allclose(trainer.learning_rate, 1e-3)
    trainer.set_learning_rate(0.0)
    before = parameters(trainer)
    trainer.train_step(buffer)
    np.testing.assert_array_equal(parameters(trainer), before)


def test_a_schedule_cannot_be_overruled():
    scheduled = optax.inject_hyperparams(optax.adam)(optax.linear_schedule(1e-3, 0.0, 100))
    trainer, _ = recurrent(PPOConfig(), scheduled)
    np.testing.assert_allclose(trainer.learning_rate, 1e-3)
    with pytest.raises(ValueError, match="follows a schedule.*inject_hyperparams"):
        trainer.set_learning_rate(1e-4)


def test_the_gradient_is_bounded_before_any_optimizer_sees_it():
    config = PPOConfig(n_epochs=1, envs_per_minibatch=N, max_grad_norm=1e-3)
    trainer, buffer = recurrent(config, optax.sgd(1.0))
    before = parameters(trainer)
    stats = trainer.train_step(buffer)
    assert stats.grad_norm > 1e-2
    np.testing.assert_allclose(np.linalg.norm(parameters(trainer) - before), 1e-3, rtol=1e-3)


@pytest.mark.parametrize(("given", "expected"), [(None, {"lstm": 1.5e-3, "mlp": 3e-4}), (0.02, None)])
def test_the_learning_rate_begins_as_configured(given, expected):
    config = PPOConfig(learning_rate=given)
    for name, trainer in {"lstm": RecurrentPPOTrainer(config, lstm()), "mlp": PPOTrainer(config, mlp())}.items():
        np.testing.assert_allclose(trainer.learning_rate, expected[name] if expected else given)
    injected = optax.inject_hyperparams(optax.adam)(learning_rate=0.5)
    np.testing.assert_allclose(PPOTrainer(config, mlp(), injected).learning_rate, given or 0.5)


def test_a_configured_learning_rate_needs_an_optimizer_that_takes_it():
    with pytest.raises(ValueError, match="cannot be set.*inject_hyperparams"):
        PPOTrainer(PPOConfig(learning_rate=1e-3), mlp(), optax.adam(1e-4))


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_a_learning_rate_that_is_none_is_refused(rate):
    trainer, _ = memoryless()
    with pytest.raises(ValueError, match="learning_rate is"):
        trainer.set_learning_rate(rate)


def compilations():
    return learner_module._update._cache_size()


@pytest.mark.parametrize("optimizer", [None, optax.inject_hyperparams(optax.adam)(learning_rate=0.1)])
def test_one_compilation_per_buffer_shape(optimizer):
    trainer, buffer = recurrent(PPOConfig(n_epochs=1, envs_per_minibatch=2, gamma=0.9), optimizer)
    before = compilations()
    for rate in (0.1, 0.2, 0.3):
        trainer.set_learning_rate(rate)
        trainer.train_step(buffer)
    assert compilations() == before + 1


def test_trainers_of_one_configuration_share_a_compilation():
    trainer, buffer = recurrent()
    trainer.train_step(buffer)
    before = compilations()
    other, buffer = recurrent()
    other.train_step(buffer)
    assert compilations() == before


@BOTH
def test_a_closure_that_scores_as_the_default_gives_the_default(build):
    trainer, buffer = build()
    trainer.train_step(buffer)
    replaced, buffer = build()

    def by_hand(policy, obs, actions, episode_starts, initial_state):
        _, output = jax.vmap(policy.unroll)(initial_state, obs, episode_starts)
        return output.distribution.log_prob(actions), output.distribution.entropy(), output.value

    replaced.train_step(buffer, evaluate=by_hand)
    np.testing.assert_allclose(parameters(replaced), parameters(trainer), atol=1e-6)


def test_a_closure_is_differentiated_through():
    plain = PPOConfig(n_epochs=2, envs_per_minibatch=2, learning_rate=1e-2, ent_coef=0.0)
    without_bonus, buffer = recurrent(plain)
    without_bonus.train_step(buffer)
    trainer, buffer = recurrent()

    def no_entropy(policy, *steps):
        log_probs, entropy, values = score(policy, *steps)
        return log_probs, 0.0 * entropy, values

    stats = trainer.train_step(buffer, evaluate=no_entropy)
    assert stats.entropy == 0.0
    np.testing.assert_allclose(parameters(trainer), parameters(without_bonus), atol=1e-6)


def test_a_closure_written_in_the_loop_is_compiled_once_per_value_it_captures():
    trainer, buffer = recurrent()
    before = compilations()
    for scale in (1.0, 1.0, 1.0, 0.5, 1.0):
        trainer.train_step(
            buffer, evaluate=lambda p, *s, k=scale: (score(p, *s)[0], k * score(p, *s)[1], score(p, *s)[2])
        )
    assert compilations() == before + 2
    weights = np.ones(3)  # cannot be hashed: every closure is a program of its own, and still works
    for _ in range(2):
        trainer.train_step(buffer, evaluate=lambda p, *s: (*score(p, *s)[:2], score(p, *s)[2] * weights[0]))
    assert compilations() == before + 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: (s.log_prob, s.entropy, s.value[..., None]),
        lambda s: (s.log_prob[:, :1], s.entropy, s.value),
        lambda s: (s.log_prob, s.entropy.mean(), s.value),
        lambda s: (s.log_prob, s.entropy),
    ],
)
def test_a_closure_whose_outputs_would_broadcast_is_refused(wrong):
    trainer, buffer = recurrent()
    with pytest.raises(ValueError, match=r"evaluate gave shapes.*\(2, 6\)"):
        trainer.train_step(buffer, evaluate=lambda *arguments: wrong(score(*arguments)))


@BOTH
def test_nothing_broken_is_taken_over(build):
    trainer, buffer = build(rewards=np.full((N, T), 1e30, np.float32))
    before = parameters(trainer)
    with pytest.raises(TrainingError, match="non-finite losses.*at update 1; the policy is left as it was"):
        trainer.train_step(buffer)
    np.testing.assert_array_equal(parameters(trainer), before)
    assert trainer.n_updates == 0


def test_episodes_are_counted():
    trainer, _ = memoryless()
    trainer.increment_episodes()
    trainer.increment_episodes(3)
    assert trainer.total_episodes == 4
    with pytest.raises(ValueError, match="n is -1"):
        trainer.increment_episodes(-1)
    with pytest.raises(TypeError, match="n is True .*expected an integer"):
        trainer.increment_episodes(True)
    assert trainer.total_episodes == 4


def without_advantages():
    trainer, buffer = recurrent()
    buffer.reset()
    trainer.train_step(buffer)


def of_another_width():
    trainer, _ = recurrent()
    trainer.train_step(RecurrentRolloutBuffer(T, N, 3, H + 1))


def of_another_observation():
    trainer, _ = memoryless()
    trainer.train_step(RolloutBuffer(T, N, 4))


def foreign_actions():
    _, buffer = memoryless()
    buffer._steps.action[0, 0] = 2
    PPOTrainer(CONFIG, mlp()).train_step(buffer)


def with_rows(build, rows):
    trainer, buffer = build()
    trainer.train_step(buffer, rows)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (without_advantages, ValueError, "no advantages yet: call compute_advantages"),
        (of_another_width, ValueError, "hidden_dim is 6 in the buffer but 5 in the policy"),
        (of_another_observation, ValueError, "obs_dim is 4 in the buffer but 3 in the policy"),
        (foreign_actions, ValueError, "holds action 2, but the policy has 2 actions"),
        (lambda: with_rows(recurrent, 3), ConfigError, "num_envs is 4, which envs_per_minibatch 3 does not divide"),
        (lambda: with_rows(recurrent, 0), ValueError, "envs_per_minibatch is 0"),
        (lambda: with_rows(memoryless, 7), ConfigError, "is 24, which batch_size 7 does not divide"),
        (lambda: PPOTrainer(CONFIG, mlp()).train_step(recurrent()[1]), TypeError, None),
        (lambda: RecurrentPPOTrainer(CONFIG, lstm()).train_step(memoryless()[1]), TypeError, None),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
def test_a_policy_or_an_optimizer_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="policy is a LSTMPolicy: PPOTrainer trains a MLPPolicy;.*RecurrentPPOTrainer"):
        PPOTrainer(CONFIG, lstm())
    with pytest.raises(TypeError, match="policy is a MLPPolicy: RecurrentPPOTrainer trains a LSTMPolicy"):
        RecurrentPPOTrainer(CONFIG, mlp())
    with pytest.raises(TypeError, match="optimizer is 0.001: pass one of optax"):
        PPOTrainer(CONFIG, mlp(), 0.001)


def test_minibatch_sizes_may_be_given():
    for build, rows, steps in ((recurrent, 4, 2), (memoryless, 12, 4)):
        trainer, buffer = build()
        assert trainer.train_step(buffer, rows).n_updates == steps
