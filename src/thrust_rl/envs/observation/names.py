"""The coordinates of well-known tasks by name, so that a mask can say what it hides."""

from collections.abc import Iterable, Sequence

from gymnasium.envs.registration import parse_env_id
from gymnasium.error import Error

from thrust_rl.envs.core import ObservationModel
from thrust_rl.envs.observation.mask import Hide, Mask

_CART_POLE = ("cart_position", "cart_velocity", "pole_angle", "pole_velocity")
_CAR = ("position", "velocity")
_LANDER = ("x", "y", "velocity_x", "velocity_y", "angle", "angular_velocity", "left_contact", "right_contact")

COORDINATES: dict[str, tuple[str, ...]] = {
    "CartPole": _CART_POLE,
    "Pendulum": ("cos", "sin", "velocity"),
    "MountainCar": _CAR,
    "MountainCarContinuous": _CAR,
    "Acrobot": ("cos_1", "sin_1", "cos_2", "sin_2", "velocity_1", "velocity_2"),
    "LunarLander": _LANDER,
    "LunarLanderContinuous": _LANDER,
    "FlickeringCartPole": _CART_POLE,
    "MaskedCartPole": ("cart_position", "pole_angle"),
}
"""Names of the observation's coordinates, by the environment's name without namespace and version."""


def coordinate_names(name: str) -> tuple[str, ...] | None:
    """The coordinates of an environment by its id, or None where nobody named them.

    Ids of other namespaces than the library's own may mean another task, so theirs are not known. gymnax calls the same
    tasks by the same names.

    Example:
        >>> coordinate_names("Pendulum-v1"), coordinate_names("thrust/CartPole-v1") == coordinate_names("CartPole-v0")
        (('cos', 'sin', 'velocity'), True)
    """
    try:
        namespace, base, _ = parse_env_id(name.removeprefix("gymnax:"))
    except Error:
        return None
    return COORDINATES.get(base) if namespace in (None, "thrust") else None


def names_after(models: Iterable[ObservationModel], names: Sequence[str]) -> tuple[str, ...]:
    """The names of what is left to see behind some models.

    Example:
        >>> names_after([Hide((1, 3))], ["cart_position", "cart_velocity", "pole_angle", "pole_velocity"])
        ('cart_position', 'pole_angle')
    """
    left = tuple(names)
    for model in models:
        if isinstance(model, Hide | Mask):
            left = tuple(left[i] for i in model.kept(len(left)) if i < len(left))
    return left
