"""What a reader of merged results has to know: where they are from, what came twice, what differs or is missing."""

from collections import Counter
from collections.abc import Iterator, Sequence

from thrust_rl.experiment.beforehand import spans
from thrust_rl.experiment.comparison import ArmResult, Comparison
from thrust_rl.experiment.verdict import SECOND_LOOK

AND = " and "  # between the versions of a package in a merged result


def notes_on(
    joined: Comparison, parts: Sequence[Comparison], folders: Sequence[str], names: Sequence[str]
) -> list[str]:
    """Sentences.

    Args:
        joined: what the parts give together.
        parts: each once.
        folders: of the parts.
        names: of the folders as they were given, some perhaps more than once.
    """
    looked_twice = len({part.seeds for part in parts}) > 1
    said = [f"Merged from {', '.join(folders)}{f': {SECOND_LOOK}' if looked_twice else ''}."]
    said += given_again(names)
    if differ := _different_versions(joined, parts, folders):
        said.append(f"Warning: made with different versions of {', '.join(differ)}; numbers may differ for that alone.")
    if repeated := _repeated(parts):
        said.append(f"In more than one folder, with the same result, and counted once: {'; '.join(repeated)}.")
    if lacking := missing(joined):
        said.append(f"Not finished: {'; '.join(lacking)}; arms are compared on the seeds that both have.")
    return said


def warned_once(notes: Sequence[str]) -> tuple[str, ...]:
    """With what a second look costs said in the first note that says it, and in no other.

    Example:
        >>> [len(note) < 20 for note in warned_once([f"Merged from a, b: {SECOND_LOOK}.", f"Again: {SECOND_LOOK}."])]
        [False, True]
    """
    warning = f": {SECOND_LOOK}."
    first = next((i for i, note in enumerate(notes) if note.endswith(warning)), None)
    return tuple(note if i == first else note.replace(warning, ".") for i, note in enumerate(notes))


def given_again(names: Sequence[str]) -> list[str]:
    """Folders that were given more than once."""
    return [f"{name} was given {count} times and counts once." for name, count in Counter(names).items() if count > 1]


def versions_of(part: Comparison, package: str) -> list[str]:
    """Those that a result was made with: several where it was merged."""
    return part.versions.get(package, "not noted").split(AND)


def missing(comparison: Comparison) -> list[str]:
    """Runs that the seeds ask for, and that nobody did."""
    return _grouped(
        [
            (label, arm.name, seed)
            for label, arm in _arms(comparison)
            for seed in sorted(set(comparison.seeds) - {one.seed for one in arm.seeds})
        ]
    )


def _different_versions(joined: Comparison, parts: Sequence[Comparison], folders: Sequence[str]) -> list[str]:
    """Packages with the version of each part."""
    found = []
    for package in (package for package, version in joined.versions.items() if AND in version):
        each = [f"{AND.join(versions_of(part, package))} in {name}" for part, name in zip(parts, folders, strict=True)]
        found.append(f"{package} ({', '.join(each)})")
    return found


def _repeated(parts: Sequence[Comparison]) -> list[str]:
    """Runs that are in several of them."""
    runs = Counter((label, arm.name, seed.seed) for part in parts for label, arm in _arms(part) for seed in arm.seeds)
    return _grouped([run for run, count in runs.items() if count > 1])


def _arms(comparison: Comparison) -> Iterator[tuple[str, ArmResult]]:
    """Every arm under every condition, with what the condition is called."""
    for task in comparison.tasks:
        for condition in task.conditions:
            for arm in condition.arms:
                yield condition.environment.label, arm


def _grouped(runs: Sequence[tuple[str, str, int]]) -> list[str]:
    """Runs in words, the seeds of an arm on an environment together."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for label, arm, seed in runs:
        seeds.setdefault((label, arm), []).append(seed)
    return [
        f"{arm} seed{'s' if len(found) > 1 else ''} {spans(found)} on {label}" for (label, arm), found in seeds.items()
    ]
