"""Record the scores that `calibration.py` draws from: trains three studies of 32 seeds, and keeps each run's score.

The score is what verdicts are decided on: the mean return of 100 fresh evaluation episodes, actions drawn. About a
quarter of an hour on two idle cores. Runs are kept under `--out`, so an interrupted recording goes on where it stopped.

    python benchmarks/record_scores.py                 # trains, then writes recorded_returns.json anew
    make calibrate                                     # prints the tables of docs/verdict.md from it
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thrust_rl import Comparison, __version__, compare
from thrust_rl.experiment.runner import JobEvent
from thrust_rl.files import write_json

RECORDED = Path(__file__).with_name("recorded_returns.json")
FIRST_SEED = 100  # apart from the seeds of every study in docs/results.md
STUDIES: dict[str, tuple[str, dict[str, Any]]] = {
    "flickering CartPole": ("FlickeringCartPole-v0", {}),
    "CartPole": ("CartPole-v1", {}),
    "CartPole, semi-implicit": ("CartPole-v1", {"integrator": "semi-implicit"}),
}


def scores(studies: Mapping[str, Comparison]) -> dict[str, list[float]]:
    """Every run's score, by study and arm.

    Raises:
        ValueError: a study is not complete.
    """
    for name, study in studies.items():
        if study.status != "complete":
            raise ValueError(f"{name} is {study.status}: run this again, it goes on where it stopped")
    return {
        f"{name} {arm.name}": [round(seed.score, 2) for seed in arm.seeds]
        for name, study in studies.items()
        for arm in study.arms
    }


def about(study: Comparison) -> str:
    """What the numbers are, in a sentence."""
    first, last = study.seeds[0], study.seeds[-1]
    return (
        f"Scores, one number per seed: mean return of {study.evaluation.episodes} fresh evaluation episodes after"
        f" training, actions drawn; {study.config.total_timesteps:,} steps, default settings, seeds {first} to {last},"
        f" thrust-rl {__version__} (python benchmarks/record_scores.py). To resample from, not to compare with."
    )


def tell(event: JobEvent) -> None:
    """One line per finished run."""
    if event.kind in ("finished", "kept"):
        print(event.kind, event.job.label, flush=True)


def main() -> None:
    """Train what has not been trained yet, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path("runs") / "recorded")
    options = parser.parse_args()
    studies = {}
    for name, (env, params) in STUDIES.items():
        print(name, flush=True)
        folder = options.out / name.replace(", ", "-").replace(" ", "-")
        studies[name] = compare(env, env_params=params, seeds=options.seeds, seed=FIRST_SEED, out=folder, listener=tell)
    found = scores(studies)
    write_json(RECORDED, {"about": about(next(iter(studies.values()))), "returns": found})
    print(RECORDED)


if __name__ == "__main__":
    main()
