"""The range of an episode's return, where it is known before any run."""

import contextlib
import math
from collections.abc import Mapping
from typing import Any

from thrust_rl.config import require
from thrust_rl.envs.named import VELOCITY_MASKED, Environment
from thrust_rl.envs.registry import ENVIRONMENTS
from thrust_rl.envs.task import HostTask, VectorTask

# Lowest and highest return of an episode under the registered time limit, from each environment's own rewards.
KNOWN_RETURNS = {
    "CartPole-v0": (0.0, 200.0),  # 1 a step, 200 steps
    "CartPole-v1": (0.0, 500.0),  # 1 a step, 500 steps
    "Acrobot-v1": (-500.0, 0.0),  # -1 a step, 500 steps
    "MountainCar-v0": (-200.0, 0.0),  # -1 a step, 200 steps
    "Pendulum-v1": (-3254.8, 0.0),  # at worst -(π² + 0.1·8² + 0.001·2²) a step, 200 steps
    "FrozenLake-v1": (0.0, 1.0),  # 1 for the goal
    "FrozenLake8x8-v1": (0.0, 1.0),
    "Blackjack-v1": (-1.0, 1.0),  # without the bonus for a natural
}


def stated_by(task: Environment) -> tuple[float, float] | None:
    """What an environment of this task states, one of which is built for it; compiled ones state nothing.

    Raises:
        ConfigError: it cannot be built, or what it states is no range.
    """
    if not isinstance(task, HostTask | VectorTask):
        return None
    env: Any = task.build() if isinstance(task, HostTask) else task.make_vector(1)
    try:
        return stated_range(env)
    finally:
        with contextlib.suppress(Exception):  # it has said what it was built for
            env.close()


def stated_range(env: Any) -> tuple[float, float] | None:
    """Lowest and highest return of an episode as an environment states them, in `metadata["return_range"]`.

    Raises:
        ConfigError: what it states is no such range.

    Example:
        >>> import gymnasium
        >>> stated_range(gymnasium.make("CartPole-v1")) is None
        True
    """
    stated = (getattr(env, "metadata", None) or {}).get("return_range")
    return None if stated is None else checked_range(stated, 'metadata["return_range"]')


def checked_range(value: Any, name: str) -> tuple[float, float]:
    """A return range as two numbers.

    Raises:
        ConfigError: it is not two finite numbers, the lower first; `name` is what the message calls it.

    Example:
        >>> checked_range([-200, 0], "return_range")
        (-200.0, 0.0)
    """
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        low = high = math.nan
    known = math.isfinite(low) and math.isfinite(high) and low < high
    require(known, f"{name} is {value}: give two finite numbers, the lowest and the highest return of an episode")
    return low, high


def return_bounds(name: str, params: Mapping[str, Any]) -> tuple[float, float] | None:
    """Lowest and highest return of an episode; None where they are not known, which is the honest answer for most.

    A parameter of one of Gymnasium's environments may change its rewards or its time limit, so with parameters their
    range counts as unknown. A reward threshold is no bound.

    Example:
        >>> return_bounds("FlickeringCartPole-v0", {"flicker_prob": 0.3}), return_bounds("LunarLander-v3", {})
        ((0.0, 500.0), None)
    """
    if name in ENVIRONMENTS:
        return KNOWN_RETURNS["CartPole-v1"]
    target = VELOCITY_MASKED.get(name, (name, ""))[0].removeprefix("gymnasium:")
    return None if params else KNOWN_RETURNS.get(target)
