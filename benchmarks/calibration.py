"""Calibration of the verdict: how often it tells two copies of one arm apart, and how often it sees a real effect.

Every simulated comparison draws per-seed returns for two arms and asks `decide`. The returns are drawn, with
replacement, from recorded ones (`recorded_returns.json`, written by `record_scores.py`: real runs, one number per
seed, with the ceiling and the low outliers that returns have), and from a normal and a bimodal distribution.

1. Both arms are copies of one: every *helps* and *hurts* is false.
2. Every run of the memoryless arm is worse by twice the smallest effect of interest.
3. An undecided comparison gets the seeds it asks for, once, and is decided again.
4. How often 95 % intervals of the mean difference miss it, by method.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from thrust_rl.experiment.contrast import PairedDifference, paired_difference, t_half_width
from thrust_rl.experiment.planning import CAP
from thrust_rl.experiment.scale import ReturnScale
from thrust_rl.experiment.signflip import sign_flip
from thrust_rl.experiment.statistics import bca_interval, mean
from thrust_rl.experiment.verdict import Verdict, decide

SCALE = ReturnScale(0.0, 500.0, "environment")
DELTA = SCALE.min_effect(0.05)
RECORDED = Path(__file__).with_name("recorded_returns.json")

Draw = Callable[[np.random.Generator, int], np.ndarray]


def populations() -> dict[str, Draw]:
    """Where per-seed returns come from, by name."""
    returns = json.loads(RECORDED.read_text())["returns"]
    recorded = {name: _from_pool(np.array(pool)) for name, pool in returns.items()}
    return {**recorded, "normal, sd 30": _normal, "bimodal, 7 at 480 to 3 at 200": _bimodal}


def _from_pool(pool: np.ndarray) -> Draw:
    return lambda generator, size: generator.choice(pool, size)


def _normal(generator: np.random.Generator, size: int) -> np.ndarray:
    return generator.normal(300.0, 30.0, size)


def _bimodal(generator: np.random.Generator, size: int) -> np.ndarray:
    well = generator.random(size) < 0.7
    return np.where(well, generator.normal(480.0, 8.0, size), generator.normal(200.0, 30.0, size))


def judged(paired: PairedDifference) -> Verdict:
    """The verdict that `thrust compare` would print."""
    return decide(paired, memory="memory", memoryless="memoryless", scale=SCALE)


def differences(draw: Draw, generator: np.random.Generator, *, num_seeds: int, shift: float) -> np.ndarray:
    """Differences by seed of two independent copies of one arm, the second worse by `shift`."""
    return draw(generator, num_seeds) - (draw(generator, num_seeds) - shift)


def rates(draw: Draw, *, num_seeds: int, shift: float, comparisons: int, seed: int = 0) -> dict[str, float]:
    """Share of every kind of verdict over simulated comparisons."""
    generator = np.random.default_rng(seed)
    kinds = Counter(
        judged(
            paired_difference(differences(draw, generator, num_seeds=num_seeds, shift=shift), resamples=1, seed=i)
        ).kind
        for i in range(comparisons)
    )
    return {kind: count / comparisons for kind, count in kinds.items()}


def second_look(
    draw: Draw, *, num_seeds: int, shift: float, confidence: float, comparisons: int, seed: int = 0
) -> dict[str, float]:
    """Verdicts after adding the seeds asked for, once, to every comparison that was undecided.

    `undecided` is the share that was; `helps` and so on are the final verdicts of all comparisons.
    """
    generator = np.random.default_rng(seed)
    kinds: Counter[str] = Counter()
    for i in range(comparisons):
        by_seed = differences(draw, generator, num_seeds=num_seeds, shift=shift)
        verdict = judged(paired_difference(by_seed, confidence=confidence, resamples=1, seed=i))
        if verdict.more_seeds is not None and verdict.more_seeds.likely < CAP:
            kinds["undecided"] += 1
            more = differences(draw, generator, num_seeds=verdict.more_seeds.likely, shift=shift)
            by_seed = np.concatenate([by_seed, more])
            verdict = judged(paired_difference(by_seed, confidence=confidence, resamples=1, seed=i))
        kinds[verdict.kind] += 1
    return {kind: count / comparisons for kind, count in kinds.items()}


def misses(draw: Draw, other: Draw, *, num_seeds: int, comparisons: int, seed: int = 0) -> dict[str, float]:
    """Share of 95 % intervals of the mean difference that miss the true one, by method."""
    generator = np.random.default_rng(seed)
    truth = float(draw(generator, 10**6).mean() - other(generator, 10**6).mean()) if draw is not other else 0.0
    found = dict.fromkeys(("BCa", "Student", "sign-flip", "decision"), 0)
    for i in range(comparisons):
        by_seed = draw(generator, num_seeds) - other(generator, num_seeds)
        bca, flips = bca_interval(by_seed, mean, resamples=1_999, seed=i), sign_flip(by_seed, seed=i)
        half = t_half_width(float(by_seed.std(ddof=1)), num_seeds, confidence=0.95)
        decision = paired_difference(by_seed, resamples=1, seed=i).interval
        found["BCa"] += bca.excludes(truth)
        found["Student"] += abs(by_seed.mean() - truth) > half
        found["sign-flip"] += not flips.low <= truth <= flips.high
        found["decision"] += decision.excludes(truth)
    return {method: count / comparisons for method, count in found.items()}


def _percent(share: float) -> str:
    return f"{100 * share:5.1f} %"


def _head(title: str, kinds: tuple[str, ...]) -> str:
    return f"\n{title:46} seeds " + "   ".join(f"{kind:>15}" for kind in kinds)


def _row(name: str, num_seeds: int, found: dict[str, float], kinds: tuple[str, ...]) -> str:
    found = {**found, "helps or hurts": found.get("helps", 0.0) + found.get("hurts", 0.0)}
    return f"{name:46} {num_seeds:3}   " + "   ".join(f"{_percent(found.get(kind, 0.0)):>15}" for kind in kinds)


def print_rates(draws: dict[str, Draw], comparisons: int) -> None:
    """Tables 1 and 2."""
    tables = (
        ("1. two copies of one arm", 0.0, ("helps or hurts", "does not help", "cannot tell yet")),
        ("2. a shift of 2δ", 2 * DELTA, ("helps", "does not help", "hurts", "cannot tell yet")),
    )
    for title, shift, kinds in tables:
        print(_head(title, kinds))
        for name, draw in draws.items():
            for size in (5, 10, 20):
                fewer = comparisons if size < 20 else comparisons // 2  # a million sign patterns each
                found = rates(draw, num_seeds=size, shift=shift, comparisons=fewer)
                print(_row(name, size, found, kinds), flush=True)


def print_second_looks(draws: dict[str, Draw], comparisons: int) -> None:
    """Table 3."""
    for confidence in (0.95, 0.975):
        for shift, kinds in (
            (0.0, ("undecided", "helps or hurts", "cannot tell yet")),
            (2 * DELTA, ("undecided", "helps", "cannot tell yet")),
        ):
            print(_head(f"3. shift {shift:g}, two looks at {100 * confidence:g} %", kinds))
            for name, draw in draws.items():
                found = second_look(draw, num_seeds=10, shift=shift, confidence=confidence, comparisons=comparisons)
                print(_row(name, 10, found, kinds), flush=True)


def print_misses(draws: dict[str, Draw], comparisons: int) -> None:
    """Table 4: each arm against its copy, and both arms of every recorded task against each other."""
    pairs = [(name, name) for name in draws]
    pairs += [(name, name.replace("lstm", "mlp")) for name in draws if name.endswith("lstm")]
    print(f"\n{'4. intervals that miss the mean':46} seeds")
    for first, second in pairs:
        for size in (5, 10):
            found = misses(draws[first], draws[second], num_seeds=size, comparisons=comparisons)
            pair = first if first == second else f"{first} against mlp"
            shares = "   ".join(f"{method} {_percent(share)}" for method, share in found.items())
            print(f"{pair:46} {size:3}   {shares}", flush=True)


def main() -> None:
    """Print the four tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1_000)
    comparisons = parser.parse_args().comparisons
    print(json.loads(RECORDED.read_text())["about"])
    draws, error = populations(), 100 * np.sqrt(0.05 * 0.95 / comparisons)
    print(f"{comparisons} comparisons each, half of that with 20 seeds. δ = {DELTA:g}.")
    print(f"5 % has a binomial standard error of {error:.1f} %, with 20 seeds {2**0.5 * error:.1f} %.")
    print_rates(draws, comparisons)
    print_second_looks(draws, comparisons)
    print_misses(draws, comparisons)


if __name__ == "__main__":
    main()
