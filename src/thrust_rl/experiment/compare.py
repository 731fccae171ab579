"""`compare`: train several arms on the identical stream and say which wins."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from thrust_rl.config import ArmConfig, TrainConfig, arm_from, require
from thrust_rl.envs.registry import EnvParam, env_parameters, make
from thrust_rl.experiment.comparison import ArmResult, Comparison, write_json
from thrust_rl.experiment.jobs import Job, SeedResult
from thrust_rl.experiment.runner import JobEvent, Runner

MAX_SEED = 2**32 - 1


def compare(
    env: str,
    *,
    arms: Sequence[str | ArmConfig] = ("lstm", "mlp"),
    seeds: int = 3,
    seed: int = 0,
    config: TrainConfig | None = None,
    env_params: Mapping[str, EnvParam] | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    listener: Callable[[JobEvent], None] | None = None,
) -> Comparison:
    """Train every arm with every seed on the same environment streams.

    The runs are spread over worker processes, one per core. Ctrl-C ends them and returns what was finished,
    with `status` "interrupted".

    Args:
        env: name of a registered environment.
        arms: preset names or `ArmConfig`s, at least one.
        seeds: how many seeds each arm gets: `seed`, `seed + 1`, …
        seed: the first seed.
        config: budget, window and PPO settings.
        env_params: parameters of the environment that differ from their defaults.
        out: folder for `result.json` and `curve.png`; created if needed. None writes nothing.
        workers: worker processes; None is one per core this process may use.
        listener: told of every start, progress, restart and finish.

    Raises:
        ConfigError: a setting breaks a rule; nothing has been run or written.
        RunError: a run failed; what had finished before is in `out` as an interrupted comparison.

    Example:
        >>> from thrust_rl import TrainConfig, compare
        >>> tiny = TrainConfig(total_timesteps=2048, num_envs=4, num_steps=64)
        >>> compare("FlickeringCartPole-v0", arms=["mlp"], seeds=1, config=tiny).arm("mlp").params
        17539
    """
    config = config or TrainConfig()
    jobs = plan(env, arms=arms, seeds=seeds, seed=seed, config=config, env_params=env_params, workers=workers)
    folder = writable_folder(out) if out is not None else None
    finished: list[tuple[Job, SeedResult]] = []
    complete = False
    try:
        with Runner(num_workers=workers, listener=listener) as runner:
            for job, results in runner.run(jobs):
                finished += [(job, result) for result in results]
        complete = True
    except KeyboardInterrupt:
        pass
    finally:
        comparison = _assemble(jobs, finished, config, complete=complete)
        if folder is not None and (finished or not (folder / "result.json").exists()):
            save(comparison, folder)  # an earlier result is not replaced by an empty one
    return comparison


def plan(
    env: str,
    *,
    arms: Sequence[str | ArmConfig],
    seeds: int,
    seed: int,
    config: TrainConfig,
    env_params: Mapping[str, EnvParam] | None,
    workers: int | None = None,
) -> list[Job]:
    """Check everything that can be checked before the first step, and list the runs, arm by arm.

    Raises:
        ConfigError: a setting breaks a rule.
    """
    require(seeds >= 1, f"seeds is {seeds}: every arm needs at least one seed")
    require(workers is None or workers >= 1, f"workers is {workers}: it must be at least 1")
    require(0 <= seed <= MAX_SEED - seeds + 1, f"seed is {seed}: it must lie in [0, {MAX_SEED - seeds + 1}]")
    require(len(arms) >= 1, "arms is empty: name at least one, for example lstm")
    chosen = [arm_from(arm) for arm in arms]
    names = [arm.name for arm in chosen]
    require(len(set(names)) == len(names), f"arms are {', '.join(names)}: each needs a name of its own")
    params = {**env_parameters(env), **(env_params or {})}
    make(env, **params)
    for arm in chosen:
        config.rows_per_minibatch(arm)
    return [Job(env, params, arm, config, (seed + i,)) for arm in chosen for i in range(seeds)]


def writable_folder(path: str | Path) -> Path:
    """The folder, created if needed.

    Raises:
        ConfigError: it is a file, or cannot be written to.
    """
    folder = Path(path)
    require(not folder.exists() or folder.is_dir(), f"out is {folder}: that is a file; give a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".thrust-write-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        require(False, f"out is {folder}: cannot write there ({error.strerror}); give another folder")
    return folder


def save(comparison: Comparison, folder: Path) -> None:
    """Write `result.json` and, if there is a curve, `curve.png`."""
    write_json(folder / "result.json", comparison.to_dict())  # first: an impatient second Ctrl-C may cut the rest off
    from thrust_rl.experiment.plots import plot_curves

    plot_curves(comparison, folder / "curve.png")


def _assemble(
    jobs: Sequence[Job], finished: Sequence[tuple[Job, SeedResult]], config: TrainConfig, *, complete: bool
) -> Comparison:
    arms = {job.arm.name: job.arm for job in jobs}
    results = {
        name: sorted((result for job, result in finished if job.arm.name == name), key=lambda result: result.seed)
        for name in arms
    }
    return Comparison(
        env=jobs[0].env,
        env_params=jobs[0].env_params,
        config=config,
        seeds=tuple(sorted({seed for job in jobs for seed in job.seeds})),
        arms=tuple(ArmResult(arm, config.learning_rate(arm), tuple(results[name])) for name, arm in arms.items()),
        status="complete" if complete else "interrupted",
    )
