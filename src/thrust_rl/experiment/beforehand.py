"""What was fixed before the first run, in words: the pair, the seeds, the budget, the score, and how it is decided."""

from collections.abc import Mapping, Sequence

from thrust_rl.experiment.comparison import Comparison
from thrust_rl.experiment.scale import ReturnScale
from thrust_rl.experiment.statistics import CONFIDENCE
from thrust_rl.experiment.verdict import MIN_SEEDS


def beforehand(comparison: Comparison, pair: tuple[str, str], scales: Mapping[str, ReturnScale]) -> list[str]:
    """Three sentences; four where a merge chose the pair.

    Args:
        comparison: whose settings they are.
        pair: names of the arms that the verdicts are about.
        scales: of every task that has one, by its label.
    """
    if not scales:
        return []
    versus, fixed = f"{pair[0]} against {pair[1]}", pair_was_fixed(comparison)
    share = f"{100 * comparison.min_effect:.3g} %"
    return [
        *([] if fixed else [f"Chosen when results were merged: {versus}."]),
        f"Fixed beforehand: {f'{versus}; ' if fixed else ''}seed{'s' if len(comparison.seeds) > 1 else ''}"
        f" {spans(comparison.seeds)}; {comparison.config.total_timesteps:,} environment steps each; score: mean return"
        f" of {comparison.evaluation.episodes} evaluation episodes with actions drawn.",
        f"Smallest effect of interest: {share} of {_scale(scales, comparison.min_effect)}.",
        _rule(len(comparison.tasks)),
    ]


def pair_was_fixed(comparison: Comparison) -> bool:
    """Whether the arms that the verdicts are about were known before the first run, and not chosen by a merge."""
    return not comparison.merged_from or comparison.pair is not None


def spans(numbers: Sequence[int]) -> str:
    """Whole numbers in words, neighbours as one span.

    Example:
        >>> spans([3, 0, 1, 2, 7])
        '0 to 3, 7'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in found)


def _rule(num_tasks: int) -> str:
    holm = ""
    if num_tasks > 1:
        every = 100 * (1 - (1 - CONFIDENCE) / num_tasks)
        holm = (
            f" Over {num_tasks} tasks, helps and hurts also take a p-value of at most {1 - CONFIDENCE:.2g} after Holm's"
            f" correction, and does not help the {every:.4g} % interval."
        )
    return (
        f"Decision rule: the {100 * CONFIDENCE:.3g} % interval of the mean difference, seed by seed. Within ± the"
        " smallest effect, memory does not help; otherwise it helps above 0, hurts below 0, and across 0 one cannot"
        f" tell yet; under {MIN_SEEDS} seeds the verdict is withheld.{holm}"
    )


def _scale(scales: Mapping[str, ReturnScale], min_effect: float) -> str:
    """Of one scale, with what its share comes to as a return; or of several."""
    different = list(dict.fromkeys(scales.values()))
    if len(different) == 1:
        return f"{different[0].describe()}; that is {different[0].min_effect(min_effect):.4g}"
    each = ", ".join(f"{scale.min_effect(min_effect):.4g} on {task}" for task, scale in scales.items())
    seen = [task for task, scale in scales.items() if scale.source == "observed"]
    loose = f"; the scale of {', '.join(seen)} comes from the data and was not fixed beforehand" if seen else ""
    return f"every task's return scale; that is {each}{loose}"
