"""The host path collects what the compiled path collects, and learns what it learns, for the same seed."""

import dataclasses
import functools

import gymnasium
import jax
import numpy as np
import pytest

from thrust_rl.config import PPOConfig, TrainConfig, arm_from
from thrust_rl.envs import streams
from thrust_rl.envs.registry import make
from thrust_rl.envs.task import CompiledTask, HostTask
from thrust_rl.maths.keys import environment_keys
from thrust_rl.policies.inputs import Task
from thrust_rl.rollout.collect import collect
from thrust_rl.rollout.hosted import HostCollector
from thrust_rl.training.loop import initial_state
from thrust_rl.training.train import train

ENV = dataclasses.replace(make("FlickeringCartPole-v0"), max_steps=15)  # some episodes are truncated, others terminate
SEEN = dataclasses.replace(make("CartPole-v1"), max_steps=15)
PPO = PPOConfig(n_epochs=2, envs_per_minibatch=2, batch_size=32, gamma=0.9)
BEGIN, RESTART, STEP = (jax.jit(f, static_argnums=0) for f in (streams.begin, streams.restart, streams.step))


class OnStream(gymnasium.Env):
    """One of our environments as anybody's: it knows nothing but its own stream, and a seed only makes it begin.

    A compiled batch gives the environment of that index the same numbers.
    """

    def __init__(self, functional, key):
        self.observation_space, self.action_space = functional.observation_space, functional.action_space
        self.functional, self.key = functional, key

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.stream = BEGIN(self.functional, self.key)
        else:
            self.stream = RESTART(self.functional, self.stream)
        frame = self.stream.frame
        return np.array(frame.obs), {"blank": bool(frame.blank)}

    def step(self, action):
        self.stream, result = STEP(self.functional, self.stream, action)
        ends = bool(result.terminated), bool(result.truncated)
        return np.array(result.obs), float(result.reward), *ends, {"blank": bool(result.blank)}


def separate(functional, keys):
    """A `HostTask` of environments that are no batch, in the order of their building; a first one shows the spaces."""
    waiting = iter([keys[0], *keys])
    return HostTask(functional.name, lambda: OnStream(functional, next(waiting)))


@pytest.mark.parametrize(
    ("env", "is_separate", "arm", "window_start"),
    [
        (ENV, False, "lstm+action+reward", "stored"),
        (ENV, False, "framestack:3", "cold"),
        (ENV, True, "lstm+action+reward", "stored"),
        (SEEN, True, "lstm", "cold"),
    ],
    ids=["batch-lstm", "batch-framestack", "separate-lstm", "separate-seen"],
)
def test_three_windows_are_the_same_rollouts_leaf_by_leaf(env, is_separate, arm, window_start):
    """Before anything is learned: what was seen, done, said and paid, and what cut episodes are bootstrapped with."""
    arm = arm_from(arm)
    config = TrainConfig(total_timesteps=3 * 4 * 32, num_envs=4, num_steps=32, window_start=window_start, ppo=PPO)
    state = jax.jit(initial_state, static_argnums=(0, 1, 2))(env, arm, config, np.uint32(5))
    policy, actor, moments = state.learner.policy, state.actor, state.moments
    task, keys = Task.of(env, arm), environment_keys(state.key, config.num_envs)
    act = jax.jit(functools.partial(collect, env, task, config=config))
    hosted_task = separate(env, keys) if is_separate else CompiledTask(env)
    assert Task.of(hosted_task, arm) == task
    collector = HostCollector(hosted_task.start(config.num_envs), task, policy, config, seed=5)
    ends = set()
    for window in range(3):
        actor, moments, compiled = act(policy, actor, moments, keys, first_step=window * config.num_steps)
        hosted = collector.collect(policy)
        for name, theirs in read_of(compiled.rollout)._asdict().items():
            same = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5, err_msg=f"{name} of {window}")
            jax.tree.map(same, getattr(read_of(hosted.rollout), name), theirs)
        np.testing.assert_allclose(hosted.episode_return, compiled.episode_return)
        ends |= {name for name in ("terminated", "truncated") if getattr(compiled.rollout, name).any()}
    assert ends == {"terminated", "truncated"}


def read_of(rollout):
    """Without the bootstrap values that nobody reads."""
    read = np.array(rollout.truncated)
    read[:, -1] = True
    return rollout._replace(bootstrap_value=np.where(read, rollout.bootstrap_value, 0.0))


@pytest.mark.parametrize(("arm", "window_start"), [("lstm+action+reward", "stored"), ("framestack:3", "cold")])
def test_three_updates_give_the_same_run(arm, window_start):
    config = TrainConfig(total_timesteps=3 * 4 * 32, num_envs=4, num_steps=32, window_start=window_start, ppo=PPO)
    (compiled,), (hosted,) = (train(env, arm_from(arm), config, seeds=(5,)) for env in (ENV, CompiledTask(ENV)))
    assert compiled.curve.episodes == hosted.curve.episodes > 0
    np.testing.assert_allclose(hosted.curve.mean_return, compiled.curve.mean_return, rtol=1e-6)
    learned = (hosted.state.learner.policy, compiled.state.learner.policy)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5), *learned)
    acting = [
        (run.state.actor._replace(env_state=(), episode_return=()), run.state.moments) for run in (hosted, compiled)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4), *acting)
