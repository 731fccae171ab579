"""Which evaluation episodes were cut because they did not end, in words: a score of them depends on where."""

from thrust_rl.experiment.comparison import ArmResult, Comparison


def cut_short(comparison: Comparison) -> list[str]:
    """A sentence for every arm in every condition of which an episode was cut."""
    steps = comparison.evaluation.max_steps
    after = f"Cut after {steps:,} step{'s' if steps > 1 else ''}, without having ended"
    return [
        f"{after}: {' and '.join(counted.values())} of {arm.name} on {condition.environment.label}. Its"
        f" {' and '.join(counted)} {'is' if len(counted) == 1 else 'are'} of the cut episodes; --eval-steps sets where."
        for task in comparison.tasks
        for condition in task.conditions
        for arm in condition.arms
        if (counted := _counted(arm, comparison.evaluation.episodes))
    ]


def _counted(arm: ArmResult, episodes: int) -> dict[str, str]:
    """What was cut of how many over all seeds, by the number it goes into."""
    found, total = {}, len(arm.seeds) * episodes
    for name, way, what in (("score", "sampled", ""), ("greedy return", "greedy", "greedy ")):
        if cut := sum(seed.evaluation[way]["cut"] for seed in arm.seeds):
            found[name] = f"{cut:,} of {total:,} {what}evaluation episodes"
    return found
