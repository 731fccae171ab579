"""Evaluation plays what the policy would, from an empty memory, on streams that no training seed decides."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import LSTM_ARM, QUICK, Short, decided, environment, one_step, settings
from host_envs_for_tests import Telling
from thrust_rl.config import ArmConfig, ConfigError
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.task import HostTask
from thrust_rl.experiment import trial
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, Job
from thrust_rl.maths.keys import environment_keys, step_key
from thrust_rl.maths.moments import Moments, standardize
from thrust_rl.policies.inputs import Inputs, Task
from thrust_rl.training.evaluate import Player, begin, evaluate
from thrust_rl.training.loop import TrainState, initial_learner
from thrust_rl.types import Frame

CONFIG = settings(num_envs=2, window_start="stored", reward_scale=0.5)
ARM = ArmConfig("tiny", cell="lstm", hidden_dim=6, previous_action=True, previous_reward=True)
SEED, EPISODES = 11, 3
COMPILED = environment(Short(6), max_steps=4)
ON_HOST = HostTask("telling", functools.partial(Telling, ends=5))


def trained(env, arm, *, seed=0, drawn=3):
    """As if trained: the policy, which is the same for every seed, and the moments are not those of a beginning."""
    task, key = Task.of(env, arm), jax.random.key(seed)
    build = jax.jit(initial_learner, static_argnums=(0, 1), compiler_options=QUICK)
    learner = build(task, CONFIG, jax.random.key(drawn))
    policy = decided(jax.tree.map(lambda leaf: 2.0 * leaf, learner.policy))
    width = task.frame.parts[0].shape
    moments = Moments(jnp.full(width, 0.5), jnp.full(width, 4.0), jnp.asarray(10.0))
    return TrainState(learner._replace(policy=policy), (), moments, key, jnp.zeros((), jnp.int32))


def compiled_episode(index):
    """The first state of an episode, and how to step it."""
    stream = environment_keys(jax.random.key(SEED), EPISODES)[index]
    now = {"t": 0}
    now["state"], frame = COMPILED.init(step_key(stream, 0))

    def step(action):
        now["t"] += 1
        now["state"], came = COMPILED.step(step_key(stream, now["t"]), now["state"], jnp.asarray(action))
        return came.obs, float(came.reward), bool(came.terminated | came.truncated)

    return frame.obs, step


def host_episode(index):
    """Episodes come in rounds of as many as there are environments; a round has the seed of its first episode."""
    row, env = index % CONFIG.num_envs, ON_HOST.make_env()
    seed = np.random.SeedSequence(SEED + index - row, spawn_key=(row,)).generate_state(1)[0]

    def step(action):
        obs, reward, terminated, truncated, _ = env.step(action)
        return obs, reward, terminated or truncated

    return env.reset(seed=int(seed))[0], step


def by_hand(state, obs, step, *, remember=True):
    """One greedy episode: the actions and the rewards."""
    policy = state.learner.policy
    memory, before, pay, over = policy.initial(), np.zeros(2, np.float32), 0.0, False
    actions, rewards = [], []
    while not over:
        seen = standardize(state.moments, jnp.asarray(obs))
        inputs = Inputs(seen, jnp.asarray(before), jnp.asarray(pay, jnp.float32))
        memory, output = one_step(policy, memory if remember else policy.initial(), inputs)
        action = int(output.distribution.logits.argmax())
        obs, reward, over = step(action)
        before, pay = np.eye(2, dtype=np.float32)[action], CONFIG.ppo.reward_scale * reward
        actions.append(action), rewards.append(reward)
    return actions, rewards


@pytest.mark.parametrize(
    ("env", "episode", "drawn"), [(COMPILED, compiled_episode, 3), (ON_HOST, host_episode, 8)], ids=["compiled", "host"]
)
def test_a_greedy_evaluation_is_the_policys_steps_from_an_empty_memory(env, episode, drawn):
    state = trained(env, ARM, drawn=drawn)
    played = evaluate(env, ARM, CONFIG, state, episodes=EPISODES, greedy=True, seed=SEED)
    lived = [by_hand(state, *episode(index)) for index in range(EPISODES)]
    assert played.length.tolist() == [len(rewards) for _, rewards in lived] and not played.cut.any()
    np.testing.assert_allclose(played.episode_return, [sum(rewards) for _, rewards in lived], rtol=1e-5)
    assert {action for actions, _ in lived for action in actions} == {0, 1}
    forgetful = [by_hand(state, *episode(index), remember=False) for index in range(EPISODES)]
    assert [actions for actions, _ in forgetful] != [actions for actions, _ in lived], "memory decides something"


@pytest.mark.parametrize("most", [1, 3, 5])
@pytest.mark.parametrize("env", [COMPILED, ON_HOST], ids=["compiled", "host"])
def test_an_episode_is_cut_at_its_most_steps_and_nothing_else_changes(env, most):
    """Those of the host end by themselves after 5 steps, the compiled ones after at most 4: that is no cut."""
    state = trained(env, ARM)
    whole = evaluate(env, ARM, CONFIG, state, episodes=EPISODES, seed=SEED)
    played = evaluate(env, ARM, CONFIG, state, episodes=EPISODES, seed=SEED, max_steps=most)
    assert played.length.tolist() == np.minimum(whole.length, most).tolist()
    assert played.cut.tolist() == (whole.length > most).tolist() and not whole.cut.any()
    np.testing.assert_array_equal(played.episode_return[~played.cut], whole.episode_return[~played.cut])


def test_a_cut_episodes_return_is_what_it_got_by_then():
    state = trained(ON_HOST, ARM, drawn=8)
    played = evaluate(ON_HOST, ARM, CONFIG, state, episodes=EPISODES, greedy=True, seed=SEED, max_steps=3)
    lived = [by_hand(state, *host_episode(index))[1] for index in range(EPISODES)]
    np.testing.assert_allclose(played.episode_return, [sum(rewards[:3]) for rewards in lived])
    assert played.cut.all()


def test_episodes_that_never_end_are_cut_scored_and_recorded():
    spec, config = EnvSpec("host_envs_for_tests:Telling"), settings(updates=1, num_envs=2)
    job = Job(spec, LSTM_ARM, config, (0,), EvalConfig(3, max_steps=4), recorded=0)
    [result] = trial.run(job, lambda progress: None)
    for played in result.evaluation.values():
        assert (played["lengths"], played["cut"]) == ([4, 4, 4], 3)
    assert sum(result.recording["rewards"]) == result.evaluation["sampled"]["returns"][0]


def test_a_fault_in_an_evaluation_says_that_training_was_over():
    spec = EnvSpec("host_envs_for_tests:Failing", {"how": "raise", "at": 10, "limit": 20})
    job = Job(spec, LSTM_ARM, settings(updates=1, num_envs=2), (0,), EvalConfig(6))  # trained for 8 steps
    with pytest.raises(
        EnvError, match=r"^in an evaluation, after all of training: environment 0 at step 10: it raised"
    ):
        trial.run(job, lambda progress: None)


@pytest.mark.parametrize("most", [0, 2**31])
def test_a_limit_that_is_none_is_refused(most):
    with pytest.raises(ConfigError, match=rf"^max_steps is {most}: it must lie in \[1, 2147483647\]$"):
        evaluate(COMPILED, ARM, CONFIG, trained(COMPILED, ARM), max_steps=most)


def test_an_episode_begins_with_an_empty_memory_and_says_that_it_begins():
    """Each alone would do for a cell that obeys the flag: both hold, for cells and inputs of one's own."""
    state = trained(COMPILED, LSTM_ARM)
    player = Player.of(COMPILED, LSTM_ARM, config=CONFIG, state=state, greedy=False)
    first = begin(player, Frame(jnp.ones((2, 2)), jnp.zeros(2, bool)))
    assert first.episode_start.all()
    nothing = state.learner.policy.initial()
    jax.tree.map(lambda mine, empty: np.testing.assert_array_equal(mine, [empty, empty]), first.memory, nothing)


@pytest.mark.parametrize("env", [COMPILED, ON_HOST], ids=["compiled", "host"])
def test_episodes_depend_on_the_policy_and_the_evaluation_seed_and_on_no_training_seed(env):
    one, other = (evaluate(env, LSTM_ARM, CONFIG, trained(env, LSTM_ARM, seed=seed), episodes=4) for seed in (0, 1))
    np.testing.assert_array_equal(one.episode_return, other.episode_return)
    np.testing.assert_array_equal(one.length, other.length)


def test_every_training_seed_is_scored_on_the_same_episodes():
    """In each the environment alone decides the return, so that the scores tell which episodes were played."""
    spec = EnvSpec("host_envs_for_tests:Lottery")
    config = settings(updates=1, num_envs=2)
    one, other = trial.run(Job(spec, LSTM_ARM, config, (0, 1), EvalConfig(3)), lambda progress: None)
    assert one.curve_mean_return != other.curve_mean_return, "they were trained on different ones"
    for how in ("sampled", "greedy"):
        assert one.evaluation[how]["returns"] == other.evaluation[how]["returns"]
        assert len(set(one.evaluation[how]["returns"])) == 3
