"""When training writes its checkpoints, and what it goes on from."""

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from thrust_rl.config import ArmConfig, TrainConfig, require
from thrust_rl.config.rules import require_count, store_plain
from thrust_rl.differences import changes
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.task import AnyTask
from thrust_rl.files import slug, sweep, versions, writable_folder
from thrust_rl.training.checkpoint import SUFFIX, load_checkpoint, save_checkpoint
from thrust_rl.training.result import TrainingError, TrainResult


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where training keeps its runs, and how often: also at its end, and when something ends it before.

    Args:
        folder: created if needed.
        every: environment steps between two.
        name: of the files, before the seed; by default that of the arm.

    Raises:
        ConfigError: `every` is less than 1.

    Example:
        >>> Checkpoints("runs/mine").path("lstm+action", seed=3).as_posix()
        'runs/mine/lstm+action-3.safetensors'
    """

    folder: str | Path
    every: int = 100_000
    name: str | None = None

    def __post_init__(self) -> None:
        """Check the rules."""
        store_plain(self)
        require_count("checkpoint_every", self.every)
        is_name = self.name is None or ("/" not in self.name and os.sep not in self.name and "\0" not in self.name)
        require(is_name, f"name is {self.name!r}: it must be a file name, without separators")

    def path(self, arm: str, *, seed: int) -> Path:
        """Of the file of a run."""
        return Path(self.folder) / f"{self.name or slug(arm)}-{seed}{SUFFIX}"


class Keeper:
    """The checkpoints of one run; without `Checkpoints` it does nothing.

    Args:
        checkpoints: where and how often, if at all.
        env: what is trained in.
        arm: what is trained.
        config: budget, window and PPO settings.
        seed: of the run.

    Raises:
        ConfigError: there is a checkpoint of another run, or the folder cannot be made.
    """

    def __init__(
        self,
        checkpoints: Checkpoints | None,
        env: FunctionalEnv | AnyTask,
        arm: ArmConfig,
        config: TrainConfig,
        seed: int,
    ) -> None:
        self._env, self._arm, self._config, self._seed = env, arm, config, seed
        self._every = None if checkpoints is None else checkpoints.every
        self._path: Path | None = None
        if checkpoints is not None:
            folder = writable_folder(checkpoints.folder, name="checkpoints").absolute()  # wherever we are led
            self._path = folder / checkpoints.path(arm.name, seed=seed).name
            sweep(self._path)
        self.found = self._found()
        self._steps = 0 if self.found is None else self.found.steps  # of what the file holds

    def _found(self) -> TrainResult | None:
        """The run as its checkpoint left it, if there is one."""
        if self._path is None or not self._path.exists():
            return None
        kept = load_checkpoint(self._path, self._env)
        if other := changes(kept.versions, versions()):
            warnings.warn(f"{self._path} goes on, but maybe not bit for bit ({other})", stacklevel=2)
        changed = changes(_settings(kept.arm, kept.config, kept.result.seed), self._settings(kept.config))
        require(
            not changed,
            f"{self._path} is of a run with other settings ({changed}): give another folder, or delete it",
        )
        return kept.result

    def _settings(self, before: TrainConfig) -> dict[str, object]:
        """Ours; a budget that has grown since is none of them, unless the learning rate follows it."""
        config = self._config
        if not config.ppo.anneal_lr and config.total_timesteps > before.total_timesteps:
            config = dataclasses.replace(config, total_timesteps=before.total_timesteps)
        return _settings(self._arm, config, self._seed)

    def updates_until_due(self, done: int) -> int:
        """How many updates after `done` of them the next checkpoint is due."""
        if self._every is None:
            return self._config.num_updates
        per_update = self._config.steps_per_update
        due = (done * per_update // self._every + 1) * self._every
        return -(-due // per_update) - done

    def keep(self, result: TrainResult) -> None:
        """Write the run so far, unless the file holds as much of it or more.

        Raises:
            TrainingError: it cannot be written; what was written before is still there.
        """
        if self._path is None or result.steps <= self._steps:
            return
        try:
            save_checkpoint(self._path, self._env, self._arm, self._config, result)
        except OSError as error:
            raise TrainingError(f"{self._path} cannot be written ({error.strerror or error})") from error
        self._steps = result.steps

    def told(self) -> str:
        """What there is to go on from, for the message of a fault; empty where nothing is to be kept."""
        if self._path is None:
            return ""
        if not self._steps:
            return "no update had been finished, so there is no checkpoint"
        return f"checkpoint after {self._steps:,} steps: {self._path}"


def _settings(arm: ArmConfig, config: TrainConfig, seed: int) -> dict[str, object]:
    return {"arm": dataclasses.asdict(arm), "config": dataclasses.asdict(config), "seed": seed}


@contextlib.contextmanager
def kept_on_error(keepers: Sequence[Keeper], so_far: Callable[[], Sequence[TrainResult]]) -> Iterator[None]:
    """Write the runs as they were after their last update when the block is left early; a fault says where."""
    try:
        yield
    except BaseException as error:
        said = []
        try:
            for keeper, result in zip(keepers, so_far(), strict=True):
                keeper.keep(result)
        except TrainingError as failed:
            said.append(str(failed) if str(failed) != str(error) else "")
        if type(error) in (EnvError, TrainingError):  # no one else's, which may be built from other arguments
            said += [keeper.told() for keeper in keepers]
            raise type(error)("; ".join(filter(None, [str(error), *said]))) from error
        raise
