"""Arms by name: the library's, and those of one's own modules."""

import importlib
from typing import Any

from thrust_rl.config import FRAMESTACK, INPUTS, ArmConfig, ConfigError, arm_from, nearest, require


def arm_named(value: str | ArmConfig) -> ArmConfig:
    """An arm by name, or an `ArmConfig` passed through.

    Beside the names of `config.arm_from` there is `module:name`, an `ArmConfig` in a module of one's own, which takes
    `+action` and `+reward` as the others do. A comparison keeps the `ArmConfig` itself: later reports need no module.

    Raises:
        ConfigError: there is no such arm, module or name, or the name is of something else.
    """
    if isinstance(value, ArmConfig):
        return value
    base, *inputs = value.split("+")
    module, colon, name = base.partition(":")
    if not colon or module == FRAMESTACK:
        return arm_from(value)
    for one in inputs:
        require(one in INPUTS, f"arm {value!r} asks for the input {one!r}{nearest(one, INPUTS)}")
    arm = _of_module(value, module, name)
    return arm.with_inputs(previous_action="action" in inputs, previous_reward="reward" in inputs)


def _of_module(value: str, module: str, name: str) -> ArmConfig:
    found: Any = _imported(value, module)
    known = [key for key, one in vars(found).items() if isinstance(one, ArmConfig)]
    have = f"its arms are {', '.join(known)}" if known else "it has no ArmConfig"
    require(hasattr(found, name), f"arm is {value!r}: {module} has no {name!r} ({have})")
    arm = getattr(found, name)
    if not isinstance(arm, ArmConfig):
        raise ConfigError(f"arm is {value!r}: that is a {type(arm).__name__}, and an ArmConfig is needed ({have})")
    return arm


def _imported(value: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # importing may fail in any way, and a script ends itself
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(
            f"arm is {value!r}: the module {module!r} cannot be imported ({said}); modules are"
            " looked for in the current directory too"
        ) from error
