"""What a twin shows: everything, where that is known of the environment; else what observation models alone hid."""

from collections.abc import Sequence

from thrust_rl.envs.adapters import HOSTED, adapter_of
from thrust_rl.envs.named import VELOCITY_MASKED
from thrust_rl.envs.registry import ENVIRONMENTS

# Environments of Gymnasium's and gymnax's whose observations are their states.
CLASSICS = (
    *("CartPole-v0", "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"),
    *("LunarLander-v3", "FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v3", "CliffWalking-v0", "CliffWalking-v1"),
)


def without(name: str, observe: Sequence[str]) -> str | None:
    """What the twin of an environment lacks, in words; None where it is known that the twin hides nothing.

    Known are the library's own environments, the classics, and what the adapters for the host build, which have a form
    that shows everything.

    Example:
        >>> without("gymnasium:CartPole-v1", ["mask:1,3"]), without("my_module:MyEnv", ["mask:1,3"])
        (None, 'the observation model mask:1,3')
    """
    adapter = adapter_of(name)
    known = name in ENVIRONMENTS or name in VELOCITY_MASKED or (adapter is not None and adapter[0] in HOSTED)
    if known or name.removeprefix("gymnasium:").removeprefix("gymnax:") in CLASSICS:
        return None
    if not observe:
        return "its observation models"
    return f"the observation model{'s' if len(observe) > 1 else ''} {' and '.join(observe)}"
