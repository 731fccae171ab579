"""Advantages of a whole rollout: `generalized_advantages` of every environment's window."""

import jax

from thrust_rl.maths.returns import Advantages, generalized_advantages
from thrust_rl.types import Rollout


def rollout_advantages(rollout: Rollout, *, gamma: float, gae_lambda: float) -> Advantages:
    """Advantages and value targets, leaves `[env, time]`."""
    return jax.vmap(
        lambda reward, value, terminated, truncated, bootstrap_value: generalized_advantages(
            reward,
            value,
            terminated=terminated,
            truncated=truncated,
            bootstrap_value=bootstrap_value,
            gamma=gamma,
            gae_lambda=gae_lambda,
        )
    )(rollout.reward, rollout.value, rollout.terminated, rollout.truncated, rollout.bootstrap_value)
