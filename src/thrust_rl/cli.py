"""The `thrust` command."""

import dataclasses
import functools
import importlib.metadata
import io
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from thrust_rl.arguments import key_values, parsed
from thrust_rl.config import ConfigError, TrainConfig, require


@dataclasses.dataclass(frozen=True)
class Compare:
    """Does memory help here? Train arms with and without memory on the identical stream, and say.

    Every arm gets the same seeds. After training, each policy plays fresh episodes; their mean return is its score. The
    scores are subtracted seed by seed, and the interval of the mean difference decides: memory helps, does not help,
    hurts, or more seeds are needed. Ends with a table, that sentence, result.json and a report.

    Ctrl-C keeps what was finished; the same command with the same --out goes on from there.

    For example:

    thrust compare FlickeringCartPole-v0 --twin

    thrust compare gymnasium:CartPole-v1 --observe mask:cart_velocity,pole_velocity --arms gru framestack:4

    thrust compare CartPole-v1 MaskedCartPole-v0 --seeds 20 --out runs/two

    thrust compare my_module:MyEnv-v0 --env-param size=7 --env-workers 4

    thrust compare FlickeringCartPole-v0 --arms lstm,mlp,my_module:my_arm
    """

    envs: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="ENV [ENV ...]", help_behavior_hint="(at least one)"),
    ]
    """Environments, each a task with a verdict of its own: names that thrust envs lists, any id of Gymnasium's,
    module:Env-v0, or module:callable, which builds one environment, or a vector of them if it takes num_envs. Modules
    are looked for in the current directory too."""
    arms: tuple[str, ...] = ("lstm", "mlp")
    """Arms to compare: lstm, gru, lstm-reset (the lstm with its memory emptied at every step), mlp, framestack:K (the
    mlp fed with K frames), module:name (an ArmConfig of your own); +action and +reward feed the previous ones, as in
    lstm+action. The verdict is about the first with memory and the first without: rather one that stacks no frames,
    and rather framestack than a reset arm."""
    seeds: int = 10
    """How many seeds each arm gets; the same ones in every arm. With fewer than 5 no verdict is given."""
    seed: int = 0
    """The first seed."""
    twin: bool = False
    """Run all arms on the fully observable twin too: how much of the effect is due to what the task hides?"""
    observe: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """What hides or blurs, such as "mask:1,3", "noise:0.1" or "flicker:0.5"; may be given again, the first nearest
    to the environment."""
    env_param: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A parameter of the environments as key=value, the value as JSON or plain text; may be given again."""
    flicker_prob: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Share of frames blanked to zeros (FlickeringCartPole-v0; 0.5 by default)."""
    burst_len: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Mean length of a blank run in frames; blanks are independent without it (FlickeringCartPole-v0)."""
    integrator: Annotated[
        Literal["euler", "semi-implicit"] | None,
        tyro.conf.arg(metavar="{euler,semi-implicit}", help_behavior_hint=""),
    ] = None
    """Integrator of the cart-pole physics; euler, Gymnasium's, by default."""
    env_workers: int = 0
    """Processes that step the environments of one run, at most --num-envs; only for those that are not compiled."""
    on_env_error: Literal["stop", "restart"] = "stop"
    """When an environment fails, or a process of --env-workers dies or hangs: stop, or put a new one in its place and
    count that."""
    step_timeout: float = 300.0
    """Seconds that one step of the environments of a process of --env-workers may take; longer counts as hung."""
    allow_out_of_range: bool = False
    """Accept observations outside of the environment's own observation space."""
    input_previous_action: bool = False
    """Feed every arm its previous action: a memory channel of its own, shown in the names of the arms."""
    input_previous_reward: bool = False
    """Feed every arm its previous reward: likewise."""
    match_params: bool = False
    """Widen or narrow the arms without memory to within 2 % of the parameters of the first with memory."""
    eval_episodes: int = 100
    """Fresh episodes that score a trained policy."""
    eval_steps: int = 10_000
    """Steps after which such an episode is cut, if it has not ended; its return is then what it got so far, and the
    report says so. To be raised for tasks with longer episodes, and lowered for those that never end."""
    min_effect: float = 0.05
    """Smallest effect of interest, as a share of the return scale; to be chosen before the first run."""
    return_range: Annotated[str | None, tyro.conf.arg(metavar="LOW,HIGH", help_behavior_hint="")] = None
    """The lowest and the highest return of an episode, which the smallest effect is a share of. Where neither
    this nor the environment says, the scale comes from the results."""
    train: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig()
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Processes that train, each one run at a time; one per core by default. Those of --env-workers come on top."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")] = None
    """Folder for the result; runs/ENV-DATE-TIME by default. Runs that finished there before are not run again."""
    fresh: bool = False
    """Start over in a folder that holds earlier runs; they are deleted."""
    checkpoint_every: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Environment steps after which an unfinished run is written to the folder, as also at its end and when an
    environment fails; the same command goes on from there. None are written by default."""
    quiet: bool = False
    """Print only the path of result.json."""

    def arm_names(self) -> list[str]:
        """The arms that were given, with spaces or commas between them.

        Raises:
            ConfigError: there is nothing before or after a comma.
        """
        names = [name.strip() for given in self.arms for name in given.split(",")]
        said = " ".join(self.arms)
        require(all(names), f"arms are {said!r}: an empty name, from a stray comma or quotes; leave it out")
        return names

    def returns(self) -> tuple[float, float] | None:
        """The return range that was given.

        Raises:
            ConfigError: it is no range.
        """
        from thrust_rl.envs.returns import checked_range

        return None if self.return_range is None else checked_range(self.return_range.split(","), "return_range")

    def env_params(self) -> dict[str, Any]:
        """The environment parameters that were given.

        Raises:
            ConfigError: one is no key=value.
        """
        given = {name: getattr(self, name) for name in ("flicker_prob", "burst_len", "integrator")}
        return {name: value for name, value in given.items() if value is not None} | key_values(self.env_param)


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the report of a comparison anew; several are merged: the same settings with other seeds or arms.

    For example:

    thrust report runs/mine

    thrust report runs/seeds-0-to-9 runs/seeds-10-to-19 --out runs/all
    """

    folders: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR [DIR ...]")]
    """Folders that thrust compare wrote to."""
    out: Path | None = None
    """Folder for the report; by default the one that was given, or runs/merged-DATE-TIME for several."""
    quiet: bool = False
    """Print only the path of result.json."""


@dataclasses.dataclass(frozen=True)
class Envs:
    """List the environments there are, with their spaces and whether a twin is known.

    Of those that are named, also kind, parameters and return range.

    For example:

    thrust envs

    thrust envs --names

    thrust envs Pendulum-v1 my_module:MyEnv-v0

    thrust envs popgym
    """

    envs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[ENV ...]")] = ()
    """Environments to describe, or gymnasium, gymnax, minigrid or popgym for all of that package's. Without any,
    all that are installed are listed: each is built and shown when it is known, and all take a while."""
    names: bool = False
    """List names alone, at once: of everything, or of the packages that are given."""


COMMANDS: dict[str, Any] = {"compare": Compare, "report": Report, "envs": Envs}
DESCRIPTION = "Does memory help on a task whose observation hides what matters? thrust compare ENV answers it."
PRINTED = ("result.json", "report.html", "report.md", "curve.png")


def main(argv: list[str] | None = None) -> None:
    """Run the command line; exits with 2 on bad input, 1 on a failed run, 130 when interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # no ≤ in the terminal's encoding is no reason to fail
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as tidily as on Ctrl-C
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # an installed script does not look there for modules
    if arguments == ["--version"]:
        print(f"thrust-rl {importlib.metadata.version('thrust-rl')}")
        return
    try:
        sys.exit(_run(parsed(COMMANDS, arguments, description=DESCRIPTION), arguments))
    except ConfigError as error:
        _fail(str(error), status=2)
    except KeyboardInterrupt:
        _fail("interrupted", status=130)
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _fail(message: str, *, status: int) -> None:
    print(f"thrust: {message}", file=sys.stderr)
    sys.exit(status)


def _run(options: Compare | Report | Envs, arguments: list[str]) -> int:
    match options:
        case Compare():
            return _compare(options, arguments)
        case Report():
            return _report(options)
        case Envs():
            return _envs(options)


def _compare(options: Compare, arguments: list[str]) -> int:
    from rich.console import Console

    from thrust_rl.experiment.command import repeating
    from thrust_rl.experiment.compare import run
    from thrust_rl.experiment.plan import Options, jobs_of, plan
    from thrust_rl.experiment.runner import RunError
    from thrust_rl.experiment.terminal import LiveProgress, opening
    from thrust_rl.files import writable_folder
    from thrust_rl.training.keeping import Checkpoints

    shared = {field.name for field in dataclasses.fields(Options)} & {
        field.name for field in dataclasses.fields(Compare)
    }
    settings = Options(
        **{name: getattr(options, name) for name in shared - {"arms", "return_range"}},
        arms=options.arm_names(),
        config=options.train,
        env_params=options.env_params(),
        check_range=not options.allow_out_of_range,
        previous_action=options.input_previous_action,
        previous_reward=options.input_previous_reward,
        return_range=options.returns(),
    )
    require(options.workers is None or options.workers >= 1, f"workers is {options.workers}: it must be at least 1")
    if options.checkpoint_every is not None:
        Checkpoints("", options.checkpoint_every)  # checks it
    planned = dataclasses.replace(plan(options.envs, settings), command=repeating(arguments))
    folder = writable_folder(options.out or _new_folder("+".join(options.envs)))
    console = Console(quiet=options.quiet, markup=False, emoji=False)
    jobs = jobs_of(planned)
    said = opening(jobs, workers=options.workers, folder=folder)
    starting = functools.partial(console.print, said, highlight=False, soft_wrap=True)
    try:
        with LiveProgress(console, jobs) as progress:
            comparison = run(
                planned,
                out=folder,
                fresh=options.fresh,
                checkpoint_every=options.checkpoint_every,
                workers=options.workers,
                listener=progress,
                starting=starting,
            )
    except RunError as error:
        result = folder / "result.json"
        rest = f"what had finished is in {result}" if result.exists() else "nothing had finished"
        _fail(f"{error}; {rest}", status=1)
    _show(comparison, folder, console)
    return 0 if comparison.status == "complete" else 130


def _report(options: Report) -> int:
    from rich.console import Console

    from thrust_rl.experiment.compare import save_whole
    from thrust_rl.experiment.comparison import Comparison
    from thrust_rl.experiment.merge import merged
    from thrust_rl.experiment.merge_notes import given_again
    from thrust_rl.experiment.store import PLAN_FILE
    from thrust_rl.files import writable_folder

    first_given: dict[Path, Path] = {}  # a folder may have several paths
    given = [path if path.is_dir() else path.parent for path in options.folders]
    folders = [first_given.setdefault(path.resolve(), path) for path in given]
    names = [str(folder) for folder in folders]
    comparisons = [Comparison.load(path) for path in options.folders]
    only = folders[0] if len(first_given) == 1 else None
    console = Console(quiet=options.quiet, markup=False, emoji=False)
    try:
        comparison = merged(comparisons, names)
        folder = writable_folder(options.out or only or _new_folder("merged"))
        stays = only is not None and folder.resolve() == only.resolve()
        require(
            stays or not (folder / "runs" / PLAN_FILE).exists(),
            f"out is {folder}: it holds the runs of a comparison, whose result would be lost; give another folder",
        )
        save_whole(comparison, folder)
        for said in given_again(names):
            console.print(said, highlight=False)
        _show(comparison, folder, console)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        _fail(
            f"{', '.join(names)}: what the result holds does not fit together ({type(error).__name__}: {error}); repeat"
            " the command that made it, with the same --out",
            status=2,
        )
    return 0


def _envs(options: Envs) -> int:
    from thrust_rl.experiment.listing import show

    return 0 if show(options.envs, names_only=options.names) else 2


def _new_folder(name: str) -> Path:
    """Under `runs`, with the date and time."""
    safe = re.sub(r"[^A-Za-z0-9.+-]", "_", name)[:80]
    return Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"


def _show(comparison: Any, folder: Path, console: Any) -> None:
    """The tables, the sentences, and where the files are."""
    from thrust_rl.experiment.tables import tell

    tell(comparison, console)
    for name in PRINTED[: 1 if console.quiet else None]:
        if (folder / name).exists():
            print(folder / name)
