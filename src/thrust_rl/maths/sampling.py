"""Drawing the actions of a batch: the one place that says which random numbers an action is drawn with."""

import jax
from jaxtyping import Array, Float, Int, Integer, PyTree

from thrust_rl.maths.distributions import Action, Distribution
from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key
from thrust_rl.types import StreamKeys


def action_noise(distribution: Distribution, step_keys: StreamKeys) -> PyTree:
    """The random numbers of one action per environment, which can be drawn before anything is known of the action.

    Args:
        distribution: leaves `[env, ...]`, of which only the shapes matter.
        step_keys: of the step of every environment's stream that the action leads into, axes `[env]`; the numbers
            are drawn for the purpose `ACTION`.
    """
    action_keys = jax.vmap(purpose_key, in_axes=(0, None))(step_keys, Purpose.ACTION)
    return jax.vmap(lambda row, key: row.noise(key))(distribution, action_keys)


def draw_actions(distribution: Distribution, noise: PyTree) -> tuple[Action, Float[Array, " env"]]:
    """One action per environment, with its log-probability; leaves `[env, ...]`, `noise` from `action_noise`."""
    action = jax.vmap(lambda row, numbers: row.draw(numbers))(distribution, noise)
    return action, distribution.log_prob(action)


def acting_keys(seed: Integer[Array, ""], step: Int[Array, ""], num_envs: int) -> StreamKeys:
    """The step keys for acting on o_t with t = `step`, counted over all episodes of a run from 0; axes `[env]`.

    The transition that a_t begins is step t + 1 of its stream, as in packaged training; step 0 begins the stream.
    """
    streams = environment_keys(jax.random.key(seed), num_envs)
    return jax.vmap(step_key, in_axes=(0, None))(streams, step + 1)
