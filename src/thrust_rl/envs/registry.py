"""Environments by name: what there is, and with which parameters."""

import inspect
from collections.abc import Callable

from thrust_rl.config import ConfigError, nearest
from thrust_rl.envs.cartpole import MAX_STEPS, CartPolePhysics, Integrator
from thrust_rl.envs.core import FullyObserved, FunctionalEnv
from thrust_rl.envs.observation import Flicker, Mask

EnvParam = float | str | None


def cartpole(*, integrator: Integrator = "euler") -> FunctionalEnv:
    """Cart-pole, fully observable, 500 steps."""
    return FunctionalEnv("CartPole-v1", CartPolePhysics(integrator), FullyObserved(), MAX_STEPS)


def flickering_cartpole(
    *, flicker_prob: float = 0.5, burst_len: float | None = None, integrator: Integrator = "euler"
) -> FunctionalEnv:
    """Cart-pole whose frames are blanked to zeros, independently or in bursts."""
    sensor = Flicker(flicker_prob, burst_len)
    return FunctionalEnv("FlickeringCartPole-v0", CartPolePhysics(integrator), sensor, MAX_STEPS)


def masked_cartpole(*, integrator: Integrator = "euler") -> FunctionalEnv:
    """Cart-pole that shows position and angle but no rates."""
    return FunctionalEnv("MaskedCartPole-v0", CartPolePhysics(integrator), Mask((0, 2)), MAX_STEPS)


ENVIRONMENTS: dict[str, Callable[..., FunctionalEnv]] = {
    "CartPole-v1": cartpole,
    "FlickeringCartPole-v0": flickering_cartpole,
    "MaskedCartPole-v0": masked_cartpole,
}


def env_parameters(name: str) -> dict[str, EnvParam]:
    """The parameters of an environment with their defaults.

    Raises:
        ConfigError: no environment has that name; the nearest one is suggested.
    """
    if name not in ENVIRONMENTS:
        raise ConfigError(f"no environment is called {name!r}{nearest(name, ENVIRONMENTS)}")
    parameters = inspect.signature(ENVIRONMENTS[name]).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


def make(name: str, **params: EnvParam) -> FunctionalEnv:
    """Build an environment by name.

    Raises:
        ConfigError: unknown name, a parameter it does not take, or a value out of range.

    Example:
        >>> make("MaskedCartPole-v0").observation_space.shape
        (2,)
    """
    known = env_parameters(name)
    for key in params:
        if key not in known:
            raise ConfigError(f"{name} has no parameter {key!r}; it has {', '.join(known)}")
    return ENVIRONMENTS[name](**params)
