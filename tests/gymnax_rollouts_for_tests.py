"""Transitions of two of gymnax's environments through its adapter, as JSON, with whichever release is found first."""

import functools
import importlib.metadata
import json

import jax
import jax.numpy as jnp
import numpy as np

from thrust_rl.envs.core import step_and_restart
from thrust_rl.envs.named import make
from thrust_rl.maths.keys import environment_keys, step_key

STREAM = environment_keys(jax.random.key(7), 1)[0]
ACTIONS = {"CartPole-v1": lambda t: (t % 3 > 0).astype(jnp.int32), "Pendulum-v1": lambda t: jnp.sin(t)[None]}


@functools.partial(jax.jit, static_argnums=(0, 1))
def rollout(name, limit):
    """A hundred steps: results, and the frames to act on next."""
    env = make(f"gymnax:{name}", max_steps_in_episode=limit)

    def body(state, t):
        state, result, frame = step_and_restart(env, step_key(STREAM, t), state, ACTIONS[name](t))
        return state, (result.obs, result.reward, result.terminated, result.truncated, frame.obs)

    state, _ = env.init(step_key(STREAM, 0))
    return jax.lax.scan(body, state, jnp.arange(1, 101))[1]


def rollouts():
    """Of both, with a time limit that some poles reach and others do not."""
    columns = {name: rollout(name, limit=17) for name in ACTIONS}
    return {name: [np.asarray(column).astype(float).tolist() for column in found] for name, found in columns.items()}


if __name__ == "__main__":
    print(json.dumps({"version": importlib.metadata.version("gymnax"), "rollouts": rollouts()}))
