"""The list of environments: one line each, as soon as it is known, whatever building one does."""

import os
import re
import subprocess
import sys

import gymnasium
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.catalogue import own_names, packages
from thrust_rl.experiment import listing
from thrust_rl.experiment.listing import everything, names_alone, show

SPACES = "space_for_tests"
MISSING = "gymnax cannot be imported (gone): install it with pip install 'thrust-rl[gymnax]'"


def talkative():
    print("pygame says hello")
    print("and complains", file=sys.stderr)
    os.write(1, b"so does native code")
    os.write(2, b"twice")
    return gymnasium.make("Pendulum-v1")


def leaves():
    sys.exit("no display")


def shows_nothing():
    env = gymnasium.make("Pendulum-v1").unwrapped
    del env.observation_space
    return env


@pytest.fixture
def installed(monkeypatch):
    """`installed(gymnasium=[...])` is what is installed; of the library's own there is nothing."""

    def use(**groups):
        monkeypatch.setattr(listing, "packages", lambda: groups)
        monkeypatch.setattr(listing, "own_names", lambda: [])

    return use


def test_each_is_one_line_with_its_spaces_under_the_heading_of_its_package(installed):
    masked = "VelocityMaskedPendulum-v1"
    installed(gymnasium=["Pendulum-v1", masked], gymnax=MISSING, popgym=[])
    assert "\n".join(everything()).splitlines() == [
        "",
        "gymnasium, stepped by Python: name, observation, action, and twin if known",
        "  Pendulum-v1                Box 3 float32             Box 1 float32",
        "  VelocityMaskedPendulum-v1  Box 2 float32             Box 1 float32      twin",
        "",
        f"gymnax: {MISSING}",
        "",
        "popgym, stepped by Python: name, observation, action, and twin if known",
    ]


def test_one_that_cannot_be_built_says_why_and_the_list_goes_on(installed, capfd):
    """Whether it raises, ends the process, or is nothing that can be described."""
    here = __name__.rpartition(".")[2]
    broken = [f"{SPACES}:broken", f"{here}:leaves", f"{here}:shows_nothing", f"{SPACES}:misstated"]
    installed(gymnasium=[*broken, "gymnax:MNISTBandit-bsuite", "Pendulum-v1"])
    assert show([], names_only=False)
    said = capfd.readouterr()
    rows = [line.split(maxsplit=1) for line in said.out.splitlines()[2:]]
    assert [name for name, _ in rows] == [*broken, "gymnax:MNISTBandit-bsuite", "Pendulum-v1"]
    assert [what for _, what in rows][:4] == [
        "cannot be built: RuntimeError: the motor is off",
        "cannot be built: SystemExit: no display",
        "cannot be built: AttributeError: 'PendulumEnv' object has no attribute 'observation_space'",
        'metadata["return_range"] is (0, -3): give two finite numbers, the lowest and the highest return of an episode',
    ]
    assert rows[4][1].startswith("not built, since it downloads") and rows[5][1].startswith("Box 3 float32")


def test_what_an_environment_prints_is_not_in_the_list(installed, capfd):
    here = __name__.rpartition(".")[2]
    installed(gymnasium=[f"{here}:talkative"])
    assert show([], names_only=False)
    said = capfd.readouterr()
    assert said.out.splitlines()[2:] == [f"  {here}:talkative  Box 3 float32             Box 1 float32"]
    assert said.err == ""
    print("and afterwards")
    os.write(2, b"all is as before")
    assert capfd.readouterr() == ("and afterwards\n", "all is as before")


def test_a_line_is_there_before_the_next_is_built(installed, monkeypatch):
    installed(gymnasium=["Pendulum-v1", "Acrobot-v1"])
    built, really = [], listing.described
    monkeypatch.setattr(listing, "described", lambda name: built.append(name) or really(name))
    lines = everything()
    next(lines)
    assert next(lines).startswith("  Pendulum-v1 ") and built == ["Pendulum-v1"]


def test_names_come_without_building_anything(monkeypatch, capsys):
    monkeypatch.setattr(listing, "described", None)
    monkeypatch.setenv("COLUMNS", "100")
    assert show([], names_only=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    headings = [line for line in lines if not line.startswith("  ")]
    assert headings == ["thrust-rl:", "gymnasium:", *(f"{name}, as {name}:NAME:" for name in list(packages())[1:])]
    words = " ".join(lines).replace(",", " ").split()
    assert {*own_names(), "Pendulum-v1", "gymnasium:CartPole-v1", "Catch-bsuite", "popgym-HigherLowerEasy-v0"} <= {
        *words
    }
    alone = list(names_alone(["popgym"]))
    assert alone[0] == "popgym, as popgym:NAME:" and "Pendulum-v1" not in alone[1].split(", ")
    with pytest.raises(ConfigError, match="'Pendulum-v1' is none of them: give thrust-rl, gymnasium, gymnax"):
        show(["Pendulum-v1"], names_only=True)


def test_a_package_that_is_missing_says_so_among_the_names(installed):
    installed(gymnax=MISSING)
    assert " ".join(" ".join(names_alone()).split()).endswith(MISSING)


def run(*arguments):
    command = [sys.executable, "-c", "from thrust_rl.cli import main; main()", "envs", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def groups_of(names):
    """What `--names` prints: the names of every package, prefix included."""
    found = re.findall(r"^(\S+?)(?:, as (\S+:)NAME)?:\n((?:  .*\n)+)", names, re.MULTILINE)
    return {package: [prefix + name for name in re.split(r",\s+", text.strip())] for package, prefix, text in found}


@pytest.mark.slow
def test_everything_that_is_installed_is_listed():
    """All that `--names` names, in lines of their own, nothing else; and of the few that are not built, why."""
    with run() as everything_said, run("--names") as names:
        out, err = everything_said.communicate()
        groups = groups_of(names.communicate()[0])
    assert (everything_said.returncode, err) == (0, "")
    own, *rest = out.split("\n\n")
    assert [line for line in own.splitlines() if not line.startswith("  ")] == groups.pop("thrust-rl") == own_names()
    for text, (package, names) in zip(rest, groups.items(), strict=True):
        heading, *lines = text.splitlines()
        assert heading.startswith(f"{package}, ") and heading.endswith(": name, observation, action, and twin if known")
        assert [line.split()[0] for line in lines] == names
        unbuilt = [line.split()[0].partition(":")[2] for line in lines if " built" in line]
        assert all(name.startswith(("MNISTBandit-", "MiniGrid-WFC-")) for name in unbuilt)
        twins = sum(line.endswith(" twin") for line in lines)
        assert twins == (len(names) - len(unbuilt) if package in ("minigrid", "popgym") else 0)


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_ends_it():
    with run() as process:
        assert process.stdout.readline() == "CartPole-v1\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
