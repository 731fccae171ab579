"""The outcome of a comparison as an object: tasks, conditions, arms and seeds; what follows from them is derived."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, SeedResult, mean_of
from thrust_rl.experiment.scale import MIN_EFFECT
from thrust_rl.experiment.statistics import ArmScores, ArmSummary, summarize

if TYPE_CHECKING:
    from thrust_rl.experiment.analysis import Analysis

Status = Literal["complete", "interrupted"]
ConditionName = Literal["task", "twin"]


@dataclasses.dataclass(frozen=True)
class ArmResult:
    """One arm under one condition with the seeds it finished, in the order of the seeds."""

    arm: ArmConfig
    learning_rate: float
    """The one used: the arm's own, or the override."""
    params: int | None
    """Trainable scalars; None where they have not been counted."""
    seeds: tuple[SeedResult, ...]

    @property
    def name(self) -> str:
        """The arm's."""
        return self.arm.name

    @property
    def score(self) -> float | None:
        """Mean over the seeds of each seed's mean evaluation return, actions drawn."""
        return mean_of([seed.score for seed in self.seeds])

    @property
    def greedy(self) -> float | None:
        """The same with the likeliest actions."""
        return mean_of([seed.greedy_score for seed in self.seeds])

    @property
    def final(self) -> float | None:
        """Mean over the seeds of each seed's final mean training return."""
        return mean_of([seed.final for seed in self.seeds])

    @property
    def best(self) -> float | None:
        """Mean over the seeds of each seed's best mean training return."""
        return mean_of([seed.best for seed in self.seeds])

    @property
    def auc(self) -> float | None:
        """Mean over the seeds of each learning curve's mean height."""
        return mean_of([seed.auc for seed in self.seeds])

    @property
    def recording(self) -> dict[str, Any] | None:
        """One evaluation episode, step by step."""
        return next((seed.recording for seed in self.seeds if seed.recording is not None), None)

    @functools.cached_property
    def summary(self) -> ArmSummary | None:
        """Mean, median and interquartile mean of the scores, with intervals; None before any seed finished."""
        return summarize(self.scores()) if self.seeds else None

    def scores(self, only: frozenset[int] | None = None) -> ArmScores:
        """One score per seed, for some seeds or for all."""
        kept = [seed for seed in self.seeds if only is None or seed.seed in only]
        return ArmScores(self.name, tuple(seed.seed for seed in kept), tuple(seed.score for seed in kept))


@dataclasses.dataclass(frozen=True)
class ConditionResult:
    """All arms on one environment: a task, or its fully observable twin."""

    name: ConditionName
    environment: EnvSpec
    arms: tuple[ArmResult, ...]

    def arm(self, name: str) -> ArmResult:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """One task under all its conditions, the task itself first."""

    label: str
    conditions: tuple[ConditionResult, ...]

    @property
    def task(self) -> ConditionResult:
        """The task itself."""
        return self.conditions[0]

    @property
    def twin(self) -> ConditionResult | None:
        """Its fully observable twin, if it was asked for."""
        return next((condition for condition in self.conditions if condition.name == "twin"), None)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Arms trained on the identical stream, and what came out.

    Example:
        comparison = compare("FlickeringCartPole-v0")
        print(comparison.sentence)
        comparison.arm("lstm").score
    """

    tasks: tuple[TaskResult, ...]
    config: TrainConfig
    seeds: tuple[int, ...]
    """The seeds asked for; every arm gets the same."""
    status: Status
    evaluation: EvalConfig = EvalConfig()
    min_effect: float = MIN_EFFECT
    """Smallest effect of interest, as a share of the return scale."""
    command: str | None = None
    """Repeats the comparison; None where it was not run from a shell."""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    machine: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    """From start to end, of the call that finished it."""
    merged_from: tuple[str, ...] = ()
    """Folders whose results were merged; empty for what came from one call."""
    notes: tuple[str, ...] = ()
    """What merging found out; among the sentences."""
    pair: tuple[str, str] | None = None
    """Of a merge, the arms that every part with a verdict was about; None takes the first of each kind there are."""

    @property
    def arms(self) -> tuple[ArmResult, ...]:
        """The arms on the first task."""
        return self.tasks[0].task.arms

    def arm(self, name: str) -> ArmResult:
        """The arm of that name on the first task."""
        return self.tasks[0].task.arm(name)

    @property
    def env(self) -> str:
        """The tasks' labels."""
        return ", ".join(task.label for task in self.tasks)

    @property
    def env_params(self) -> dict[str, Any]:
        """Parameters of the first task."""
        return self.tasks[0].task.environment.params

    @functools.cached_property
    def analysis(self) -> "Analysis":
        """Verdicts, contrasts, twin effects, aggregate and sentences."""
        from thrust_rl.experiment.analysis import analyse

        return analyse(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came out, the verdicts first."""
        return self.analysis.sentences

    @property
    def sentence(self) -> str:
        """The first of them: does memory help?"""
        return self.sentences[0]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types: what `result.json` holds (docs/result-schema.md)."""
        from thrust_rl.experiment.schema import to_dict

        return to_dict(self)

    @staticmethod
    def load(path: str | Path) -> "Comparison":
        """Read a `result.json`, or the one in a folder.

        Raises:
            ConfigError: there is none, it is damaged, or of another version.
        """
        from thrust_rl.experiment.schema import load

        return load(Path(path))
