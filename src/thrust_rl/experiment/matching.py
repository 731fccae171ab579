"""Parameter counts, and arms without memory made as large as the one with memory."""

import dataclasses
from collections.abc import Sequence

import jax
from jaxtyping import PyTree

from thrust_rl.config import ArmConfig, ConfigError, require
from thrust_rl.policies.actor_critic import ActorCritic, build_policy
from thrust_rl.policies.inputs import Spaces, Task

TOLERANCE = 0.02
WIDEST = 16_384


def parameters(env: Spaces, arm: ArmConfig) -> int:
    """Trainable scalars of an arm on an environment; nothing is computed.

    Raises:
        ConfigError: the arm cannot read the observations, or draw the actions.

    Example:
        >>> from thrust_rl import ARMS, make
        >>> parameters(make("CartPole-v1"), ARMS["mlp"])
        17539
    """
    return _scalars(_policy(env, arm))


def matched(env: Spaces, arms: Sequence[ArmConfig]) -> list[ArmConfig]:
    """The arms, those without a cell given widths that bring them within 2 % of the first arm with memory.

    Their layers keep their proportions. What is within 2 % already stays as it is. Tables of many choices are not
    counted: every arm has the same, and beside them all arms are alike.

    Raises:
        ConfigError: no arm has memory, or no width comes that near; the nearest is named.

    Example:
        >>> from thrust_rl import ARMS, make
        >>> env = make("CartPole-v1")
        >>> [gru, mlp] = matched(env, [ARMS["gru"], ARMS["mlp"]])
        >>> mlp.encoder_sizes, parameters(env, gru), parameters(env, mlp)
        ((112, 112), 13507, 13555)
    """
    with_memory = [arm for arm in arms if arm.has_memory]
    require(len(with_memory) > 0, "match_params needs an arm with memory to match: add one, for example lstm")
    target = _counted(env, with_memory[0])
    return [arm if arm.has_memory else _matched(env, arm, target, with_memory[0].name) for arm in arms]


def _policy(env: Spaces, arm: ArmConfig) -> ActorCritic:
    """Its shapes."""
    task = Task.of(env, arm)
    shapes: ActorCritic = jax.eval_shape(
        lambda key: build_policy(arm, task.inputs, task.actions, key=key), jax.eval_shape(jax.random.key, 0)
    )
    return shapes


def _counted(env: Spaces, arm: ArmConfig) -> int:
    """Trainable scalars, those in tables left out."""
    policy = _policy(env, arm)
    return _scalars(policy) - _scalars(policy.encoder.tables)


def _scalars(shapes: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def _matched(env: Spaces, arm: ArmConfig, target: int, name: str) -> ArmConfig:
    if abs(_counted(env, arm) - target) <= TOLERANCE * target:
        return arm
    if not arm.encoder_sizes:
        raise ConfigError(
            f"match_params cannot widen {arm.name}, which has no layer in front of its heads and"
            f" {_counted(env, arm):,} parameters ({name} has {target:,}): give it encoder_sizes"
        )
    low, high = 1, WIDEST  # widths of the first layer
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _counted(env, _with_width(arm, middle)) <= target else (low, middle)
    nearest = min((_with_width(arm, width) for width in (low, high)), key=lambda one: abs(_counted(env, one) - target))
    count = _counted(env, nearest)
    if abs(count - target) > TOLERANCE * target:
        raise ConfigError(
            f"match_params cannot bring {arm.name} within 2 % of the {target:,} parameters of {name}: the nearest"
            f" widths are {', '.join(map(str, nearest.encoder_sizes))} with {count:,}; change the arms, or drop it"
        )
    return nearest


def _with_width(arm: ArmConfig, width: int) -> ArmConfig:
    """The first layer with this width, the others in proportion."""
    sizes = tuple(max(1, round(size * width / arm.encoder_sizes[0])) for size in arm.encoder_sizes)
    return dataclasses.replace(arm, encoder_sizes=sizes)
