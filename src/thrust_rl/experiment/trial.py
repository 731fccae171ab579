"""One job from the first step to its score: train, then evaluate apart from training."""

from collections.abc import Callable
from typing import Any

import numpy as np

from thrust_rl.envs.faults import EnvError
from thrust_rl.experiment.jobs import Job, SeedResult, area_under
from thrust_rl.training.evaluate import Episodes, evaluate
from thrust_rl.training.record import Recording, record
from thrust_rl.training.result import Progress, TrainResult
from thrust_rl.training.train import train

DIGITS = 4  # significant, of what is recorded


def run(job: Job, report: Callable[[Progress], None]) -> list[SeedResult]:
    """Train every seed of a job, and play its evaluation episodes.

    Args:
        job: what to do.
        report: told of progress, in evaluation too.

    Raises:
        ConfigError: a setting breaks a rule.
        TrainingError: training cannot go on.
        EnvError: a host environment failed.
    """
    trained = train(
        job.env.build(), job.arm, job.config, seeds=job.seeds, on_progress=report, checkpoints=job.checkpoints
    )
    try:
        return [_scored(job, result, report) for result in trained]
    except EnvError as error:
        raise EnvError(f"in an evaluation, after all of training: {error}") from error


def _scored(job: Job, result: TrainResult, report: Callable[[Progress], None]) -> SeedResult:
    env, curve, state = job.env.build(), result.curve, result.state
    here = Progress((result.seed,), result.steps, result.steps, curve.final, result.seconds_run)
    played, restarts = {}, result.env_restarts
    for name in ("sampled", "greedy"):
        report(here)
        episodes = evaluate(
            env,
            job.arm,
            job.config,
            state,
            episodes=job.evaluation.episodes,
            greedy=name == "greedy",
            seed=job.evaluation.seed,
            max_steps=job.evaluation.max_steps,
            on_progress=lambda: report(here),
        )
        played[name] = episode_data(episodes)
        restarts += episodes.env_restarts
    recording = None
    if result.seed == job.recorded:
        report(here)
        kept = record(
            job.env.in_one_process().build(),
            job.arm,
            job.config,
            state,
            seed=job.evaluation.seed,
            max_steps=job.evaluation.max_steps,
        )
        recording = {"seed": result.seed, **recording_data(kept)}
    return SeedResult(
        seed=result.seed,
        params=result.params,
        final=curve.final,
        best=curve.best,
        auc=area_under(tuple(curve.steps), tuple(curve.mean_return)),
        curve_steps=tuple(curve.steps),
        curve_mean_return=tuple(curve.mean_return),
        episodes=curve.episodes,
        steps=result.steps,
        steps_per_second=result.steps_per_second,
        seconds_compile=result.seconds_compile,
        seconds_run=result.seconds_run,
        evaluation=played,
        env_restarts=restarts,
        resumed_at=result.resumed_at,
        recording=recording,
    )


def episode_data(episodes: Episodes) -> dict[str, Any]:
    """Evaluation episodes as JSON types; returns to four decimals."""
    returns = np.round(episodes.episode_return, 4)
    return {
        "mean_return": round(float(returns.mean()), 4),
        "returns": returns.tolist(),
        "lengths": episodes.length.tolist(),
        "cut": int(episodes.cut.sum()),
    }


def recording_data(recording: Recording) -> dict[str, Any]:
    """A recorded episode as JSON types; numbers to four digits, null where one is not finite."""
    return {
        "observations": rounded(recording.obs),
        "blanks": recording.blank.tolist(),
        "actions": rounded(recording.action),
        "rewards": rounded(recording.reward),
        "states": rounded(recording.state),
    }


def rounded(array: Any) -> Any:
    """Nested lists of numbers with `DIGITS` significant digits; whole numbers stay whole.

    Example:
        >>> rounded(np.array([[0.123456, np.inf], [2.0, 1234567.0]]))
        [[0.1235, None], [2.0, 1235000.0]]
    """
    if array is None:
        return None
    if np.ndim(array) > 0:
        return [rounded(row) for row in array]
    if not np.issubdtype(np.asarray(array).dtype, np.floating):
        return np.asarray(array).item()
    return float(f"{float(array):.{DIGITS}g}") if np.isfinite(array) else None
