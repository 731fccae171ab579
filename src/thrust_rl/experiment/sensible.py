"""What a `result.json` must hold to be believed: a file that was edited is refused before anything is made of it."""

import math
from collections import Counter
from typing import Any

from thrust_rl.config import require
from thrust_rl.experiment.analysis import verdict_pair
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.jobs import EvalConfig, SeedResult


def require_sensible(comparison: Comparison) -> None:
    """Check that what has the right shape agrees: every part with the others.

    Raises:
        ConfigError: something is missing, comes twice, or contradicts the rest.
    """
    seeds = comparison.seeds
    require(len(seeds) > 0, "seeds is empty: there must be one")
    _require_once("seeds", seeds)
    require(len(comparison.tasks) > 0, "tasks is empty: there must be one")
    _require_once("tasks", [task.label for task in comparison.tasks])
    for task in comparison.tasks:
        _require_conditions(task)
        _require_pair(comparison.pair, task)
        for condition in task.conditions:
            _require_arms(comparison, condition)


def require_sensible_derived(data: Any, path: str = "") -> None:
    """Check what follows from the scores; it is computed anew, but nonsense there is a sign of a damaged file.

    Raises:
        ConfigError: a confidence or a p-value is no probability.
    """
    if isinstance(data, dict):
        for name, value in data.items():
            where = f"{path}.{name}" if path else name
            if name in ("confidence", "p_value"):
                sensible = _is_number(value) and 0 <= value <= 1
                require(sensible, f"{where} is {value!r}: it must be a number between 0 and 1")
            require_sensible_derived(value, where)
    elif isinstance(data, list):
        for i, value in enumerate(data):
            require_sensible_derived(value, f"{path}[{i}]")


def _require_conditions(task: TaskResult) -> None:
    names = [condition.name for condition in task.conditions]
    require(
        names in (["task"], ["task", "twin"]),
        f"conditions of {task.label} are {names}: 'task' first, then 'twin' if any",
    )
    arms = [[arm.name for arm in condition.arms] for condition in task.conditions]
    require(
        all(each == arms[0] for each in arms), f"arms of {task.label} and its twin are {arms}: they must be the same"
    )


def _require_pair(pair: tuple[str, ...] | None, task: TaskResult) -> None:
    found = verdict_pair([arm.arm for arm in task.task.arms if arm.name in pair]) if pair else None
    require(pair == found, f"pair is {pair}: it must be an arm of {task.label} with memory and one without, or null")


def _require_arms(comparison: Comparison, condition: ConditionResult) -> None:
    label = condition.environment.label
    require(len(condition.arms) > 0, f"arms of {label} is empty: there must be one")
    for arm in condition.arms:
        _require_seeds(arm, comparison, label)
        for seed in arm.seeds:
            _require_agreement(seed, comparison.evaluation, f"{arm.name} seed {seed.seed} on {label}")


def _require_seeds(arm: ArmResult, comparison: Comparison, label: str) -> None:
    have = [seed.seed for seed in arm.seeds]
    _require_once(f"seeds of {arm.name} on {label}", have)
    foreign = sorted(set(have) - set(comparison.seeds))
    require(not foreign, f"{arm.name} on {label} has seeds {foreign} that the comparison was not asked for")
    lacking = sorted(set(comparison.seeds) - set(have))
    partial = comparison.status == "interrupted" or len(comparison.merged_from) > 0
    require(
        partial or not lacking,
        f"{arm.name} on {label} has no result of seeds {lacking}, though the status is 'complete'",
    )


def _require_agreement(seed: SeedResult, evaluation: EvalConfig, where: str) -> None:
    episodes, most = evaluation.episodes, evaluation.max_steps
    for way in ("sampled", "greedy"):
        played = seed.evaluation[way]
        returns, lengths, cut, mean = (played[name] for name in ("returns", "lengths", "cut", "mean_return"))
        what = f"the {way} evaluation of {where}"
        require(
            len(returns) == len(lengths) == episodes,
            f"{what} has {len(returns)} returns and {len(lengths)} lengths: it was of {episodes} episodes",
        )
        require(cut <= episodes, f"{what} has {cut} cut episodes of {episodes}")
        require(max(lengths) <= most, f"{what} has an episode of {max(lengths)} steps, and max_steps is {most}")
        at_limit = lengths.count(most)
        require(cut <= at_limit, f"{what} has {cut} cut episodes, and {at_limit} of {most} steps, after which it cuts")
        found, rounding = math.fsum(returns) / episodes, 1e-3 + 1e-5 * max(map(abs, returns))
        require(abs(found - mean) <= rounding, f"{what} has mean_return {mean}, and its returns have the mean {found}")
    steps, heights = seed.curve_steps, seed.curve_mean_return
    require(
        len(steps) == len(heights),
        f"the curve of {where} has {len(steps)} steps and {len(heights)} returns: as many are needed",
    )
    if seed.recording is not None:
        rows = {name: len(each) for name, each in seed.recording.items() if isinstance(each, list)}
        require(len(set(rows.values())) == 1, f"the recording of {where} has lists of different lengths: {rows}")


def _require_once(what: str, values: Any) -> None:
    twice = sorted(value for value, count in Counter(values).items() if count > 1)
    require(not twice, f"{what}: {', '.join(map(str, twice))} more than once")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
