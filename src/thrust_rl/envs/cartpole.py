"""Cart-pole physics (Barto, Sutton & Anderson 1983), equal to Gymnasium's classic CartPole."""

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from thrust_rl.config import require
from thrust_rl.types import Key, Obs

Integrator = Literal["euler", "semi-implicit"]

GRAVITY = 9.8  # m/s²
MASS_POLE = 0.1  # kg
MASS_TOTAL = 1.0 + MASS_POLE  # kg, cart and pole
HALF_LENGTH = 0.5  # m, pivot to the pole's centre of mass
POLE_MOMENT = MASS_POLE * HALF_LENGTH  # kg·m: the product
FORCE = 10.0  # N
TIME_STEP = 0.02  # s
POSITION_LIMIT = 2.4  # m
ANGLE_LIMIT = 12 * 2 * math.pi / 360  # rad
INITIAL_RANGE = 0.05  # every coordinate starts uniform in ± this
MAX_STEPS = 500


class CartPoleState(NamedTuple):
    """Position and angle with their rates."""

    position: Float[Array, ""]  # m
    velocity: Float[Array, ""]  # m/s
    angle: Float[Array, ""]  # rad from upright
    angular_velocity: Float[Array, ""]  # rad/s


@dataclasses.dataclass(frozen=True)
class CartPolePhysics:
    """A pole balanced on a cart that is pushed left (0) or right (1); reward 1 per step, the last one too.

    `integrator`: "euler" moves positions by the old rates and is Gymnasium's default; it feeds energy in, so a
    controller that ignores velocity excites its own oscillation. "semi-implicit" moves them by the new rates.
    """

    integrator: Integrator = "euler"

    def __post_init__(self) -> None:
        """Check the integrator."""
        require(
            self.integrator in ("euler", "semi-implicit"),
            f"integrator is {self.integrator!r}: it must be 'euler' or 'semi-implicit'",
        )

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """Twice the limits for position and angle, unbounded rates."""
        high = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], dtype=np.float32)
        return gymnasium.spaces.Box(-high, high, dtype=np.float32)

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Left, right."""
        return gymnasium.spaces.Discrete(2)

    def init(self, key: Key) -> CartPoleState:
        """Near the middle, near upright, near rest."""
        return CartPoleState(*jax.random.uniform(key, (4,), minval=-INITIAL_RANGE, maxval=INITIAL_RANGE))

    def step(
        self, key: Key, state: CartPoleState, action: Int[Array, ""]
    ) -> tuple[CartPoleState, Float[Array, ""], Bool[Array, ""]]:
        """20 ms of motion."""
        position, velocity, angle, spin = state
        acceleration, angular_acceleration = accelerations(state, action)
        new_velocity = velocity + TIME_STEP * acceleration
        new_spin = spin + TIME_STEP * angular_acceleration
        used = (velocity, spin) if self.integrator == "euler" else (new_velocity, new_spin)
        new_position = position + TIME_STEP * used[0]
        new_angle = angle + TIME_STEP * used[1]
        fell = (jnp.abs(new_position) > POSITION_LIMIT) | (jnp.abs(new_angle) > ANGLE_LIMIT)
        state = CartPoleState(new_position, new_velocity, new_angle, new_spin)
        return state, jnp.ones_like(new_position), fell

    def observe(self, state: CartPoleState) -> Obs:
        """Position, velocity, angle, angular velocity."""
        return jnp.stack(state)


def accelerations(state: CartPoleState, action: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Of the cart (m/s²) and the pole (rad/s²); Florian 2007, eqs. 23-24, without friction."""
    force = jnp.where(action == 1, FORCE, -FORCE).astype(state.angle.dtype)
    sin, cos = jnp.sin(state.angle), jnp.cos(state.angle)
    pull = (force + POLE_MOMENT * jnp.square(state.angular_velocity) * sin) / MASS_TOTAL
    angular = (GRAVITY * sin - cos * pull) / (HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * jnp.square(cos) / MASS_TOTAL))
    return pull - POLE_MOMENT * angular * cos / MASS_TOTAL, angular
