"""The `thrust` command."""

import contextlib
import dataclasses
import importlib.metadata
import io
import itertools
import re
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from thrust_rl.config import ConfigError, TrainConfig


@dataclasses.dataclass(frozen=True)
class Compare:
    """Train arms with and without memory on the identical stream, and say which wins.

    Ends with a table, one sentence, result.json and curve.png. Ctrl-C keeps what was finished.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """Environment: CartPole-v1, FlickeringCartPole-v0 or MaskedCartPole-v0."""
    arms: tuple[str, ...] = ("lstm", "mlp")
    """Arms to compare: lstm (LSTM 64, no encoder), mlp (2 x 128 ReLU, no memory)."""
    seeds: int = 3
    """How many seeds each arm gets; the same ones in every arm."""
    seed: int = 0
    """The first seed."""
    flicker_prob: float | None = None
    """Share of frames blanked to zeros (FlickeringCartPole-v0; 0.5 by default)."""
    burst_len: float | None = None
    """Mean length of a blank run in frames; blanks are independent without it (FlickeringCartPole-v0)."""
    integrator: Literal["euler", "semi-implicit"] | None = None
    """Integrator of the cart-pole physics; euler, Gymnasium's, by default."""
    train: tyro.conf.OmitArgPrefixes[TrainConfig] = TrainConfig()
    workers: int | None = None
    """Worker processes; one per core by default."""
    out: Path | None = None
    """Folder for result.json and curve.png; runs/ENV-DATE-TIME by default."""
    quiet: bool = False
    """Print only the path of result.json."""

    def env_params(self) -> dict[str, Any]:
        """The environment parameters that were given."""
        given = {name: getattr(self, name) for name in ("flicker_prob", "burst_len", "integrator")}
        return {name: value for name, value in given.items() if value is not None}


def main(argv: list[str] | None = None) -> None:
    """Run the command line; exits with 2 on bad input, 1 on a failed run, 130 when interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # no ≤ in the terminal's encoding is no reason to fail
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as tidily as on Ctrl-C
    if arguments == ["--version"]:
        print(f"thrust-rl {importlib.metadata.version('thrust-rl')}")
        return
    try:
        sys.exit(_compare(_parse(arguments)))
    except ConfigError as error:
        _fail(str(error), status=2)
    except KeyboardInterrupt:
        _fail("interrupted", status=130)


def _parse(arguments: list[str]) -> Compare:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict({"compare": Compare}, prog="thrust", args=arguments)
    except SystemExit as stop:
        if stop.code:
            _fail(one_line(complaint.getvalue()), status=2)
        raise


def one_line(box: str) -> str:
    """The argument parser's boxed message as one line: its first section, and the option it suggests."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:] if not line.startswith("╰")]  # the first is the title
    text = itertools.dropwhile(_is_rule, lines)  # where the box is drawn in ASCII, a rule is under the title
    first = " ".join(itertools.takewhile(lambda line: not _is_rule(line), text))
    first = re.sub(r"^Error parsing __tyro-dummy-inner__[\w.]*: ", "", first)
    meant = re.search(r"Perhaps you meant:\s+(--[\w-]+)", " ".join(lines))
    return f"{first}: did you mean {meant.group(1)}?" if meant else f"{first} (see thrust compare --help)"


def _is_rule(line: str) -> bool:
    return not line.strip("─-")


def _fail(message: str, *, status: int) -> None:
    print(f"thrust: {message}", file=sys.stderr)
    sys.exit(status)


def _compare(options: Compare) -> int:
    from rich.console import Console

    from thrust_rl.experiment.compare import compare, plan, writable_folder
    from thrust_rl.experiment.runner import RunError
    from thrust_rl.experiment.terminal import LiveProgress, results_table

    settings: dict[str, Any] = dict(
        arms=options.arms,
        seeds=options.seeds,
        seed=options.seed,
        config=options.train,
        env_params=options.env_params(),
        workers=options.workers,
    )
    jobs = plan(options.env, **settings)
    folder = writable_folder(options.out or Path("runs") / f"{options.env}-{time.strftime('%Y%m%d-%H%M%S')}")
    console = Console(quiet=options.quiet)
    config = options.train
    steps_per_arm = config.num_updates * config.steps_per_update * options.seeds
    arms = list(dict.fromkeys(job.arm.name for job in jobs))
    try:
        with LiveProgress(console, arms, steps_per_arm=steps_per_arm) as progress:
            comparison = compare(options.env, **settings, out=folder, listener=progress)
    except RunError as error:
        _fail(f"{error}; what had finished is in {folder / 'result.json'}", status=1)
    console.print(results_table(comparison))
    console.print(comparison.sentence, highlight=False)
    print(folder / "result.json")
    if not options.quiet:
        print(folder / "curve.png")
    return 0 if comparison.status == "complete" else 130
