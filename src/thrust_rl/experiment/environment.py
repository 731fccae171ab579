"""Which environment a run happens in: plain data that a worker process can be told and a file can hold."""

import dataclasses
from typing import Any

from thrust_rl.config import ConfigError, from_dict, require
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.host import OnEnvError
from thrust_rl.envs.named import is_compiled, make, twin_of_task
from thrust_rl.envs.registry import ENVIRONMENTS, env_parameters
from thrust_rl.envs.returns import checked_range, return_bounds, stated_by
from thrust_rl.envs.task import HostTask, VectorTask
from thrust_rl.envs.workers import STEP_TIMEOUT


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """An environment by name, with everything that decides what its runs see.

    Example:
        >>> spec = EnvSpec("gymnasium:CartPole-v1", observe=("mask:1,3",))
        >>> spec.label, spec.build().observation_space.shape
        ('gymnasium:CartPole-v1|mask:1,3', (2,))
    """

    name: str
    """As `envs.named.make` takes it."""
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Of the environment; every value survives JSON."""
    observe: tuple[str, ...] = ()
    """Observation models in front of it, as texts, the first nearest to the environment."""
    workers: int = 0
    """Processes that step a host environment; 0 steps it in the worker itself. It changes no number."""
    on_env_error: OnEnvError = "stop"
    """What happens when a host environment fails."""
    check_range: bool = True
    """Whether an observation outside its space is an error."""
    step_timeout: float = STEP_TIMEOUT
    """Seconds after which a step of a process of `workers` counts as hung. It changes no number."""
    twin: bool = False
    """The fully observable twin instead of the environment itself."""
    return_range: tuple[float, float] | None = None
    """Lowest and highest return of an episode, where they were stated. They change no run, but what a verdict says."""

    def __post_init__(self) -> None:
        """Check the range of returns.

        Raises:
            ConfigError: it is not two finite numbers, the lower first.
        """
        if self.return_range is not None:
            object.__setattr__(self, "return_range", checked_range(self.return_range, "return_range"))

    def build(self) -> FunctionalEnv | HostTask | VectorTask:
        """The environment, ready to be trained on.

        Raises:
            ConfigError: there is no such environment, a setting breaks a rule, or no twin is known.
        """
        env = make(
            self.name,
            observe=self.observe,
            env_workers=self.workers,
            on_env_error=self.on_env_error,
            check_range=self.check_range,
            step_timeout=self.step_timeout,
            **self.params,
        )
        if not self.twin:
            return env
        twin = twin_of_task(env)
        if twin is None:
            require(
                not isinstance(env, VectorTask),
                f"no fully observable twin is known for {self.name}: it builds a vector environment, which has one only"
                ' where --observe (as "mask:1,3") hides something; add that, or drop --twin',
            )
            raise ConfigError(
                f"no fully observable twin is known for {self.label.removesuffix(' twin')}: a twin exists where"
                ' --observe (as "mask:1,3") or the environment itself hides something; add that, or drop --twin'
            )
        return twin

    @property
    def label(self) -> str:
        """For tables: the name, the parameters that are not the default ones, and what hides."""
        defaults = env_parameters(self.name) if self.name in ENVIRONMENTS else {}
        given = [
            f"{key}={value}" for key, value in self.params.items() if key not in defaults or value != defaults[key]
        ]
        named = f"{self.name}({', '.join(given)})" if given else self.name
        return "|".join([named, *self.observe]) + (" twin" if self.twin else "")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest return of an episode, if known beforehand."""
        return self.return_range or return_bounds(self.name, self.params)

    def completed(self) -> "EnvSpec":
        """With the default of every parameter that was not given, where the defaults are known."""
        defaults = env_parameters(self.name) if self.name in ENVIRONMENTS else {}
        return dataclasses.replace(self, params={**defaults, **self.params})

    def with_stated_range(self) -> "EnvSpec":
        """With the return range that the environment's class states, unless one was given already."""
        if self.return_range is not None or self.is_compiled:
            return self
        return dataclasses.replace(self, return_range=stated_by(self.in_process().build()))

    @property
    def is_compiled(self) -> bool:
        """Whether its steps are compiled, so that no process of its own can help it."""
        return is_compiled(self.name)

    def in_process(self) -> "EnvSpec":
        """Stepped where it is built: the same numbers without further processes."""
        return dataclasses.replace(self, workers=0)

    def in_one_process(self) -> "EnvSpec":
        """Stepped by at most one further process, as a single environment is."""
        return dataclasses.replace(self, workers=min(self.workers, 1))

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        given = list(self.return_range) if self.return_range else None
        return dataclasses.asdict(self) | {"observe": list(self.observe), "return_range": given}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "EnvSpec":
        """Back from JSON types.

        Raises:
            ConfigError: a field is missing or unknown.
        """
        require("name" in data, "an environment has no name: the file is damaged or of another version")
        stated = data.get("return_range")
        known = {"return_range": None if stated is None else checked_range(stated, "return_range")}
        spec: EnvSpec = from_dict(EnvSpec, {**data, "observe": tuple(data.get("observe", ())), **known})
        return spec
