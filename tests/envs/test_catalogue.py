"""The catalogue names what can be built, and says of each what there is to know."""

import gymnasium
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.catalogue import described, host_names, own_names, packages
from thrust_rl.envs.named import VELOCITY_MASKED
from thrust_rl.envs.registry import ENVIRONMENTS


def test_our_own_come_with_spaces_parameters_and_twins():
    assert own_names() == [*ENVIRONMENTS, *VELOCITY_MASKED]
    entries = {name: described(name) for name in own_names()}
    flicker = entries["FlickeringCartPole-v0"]
    assert (flicker.kind, flicker.observation, flicker.action) == ("compiled", "Box 4 float32", "Discrete 2")
    assert flicker.has_twin and not entries["CartPole-v1"].has_twin
    assert flicker.params == {"flicker_prob": 0.5, "burst_len": None, "integrator": "euler"}
    assert entries["VelocityMaskedPendulum-v1"].has_twin and entries["VelocityMaskedPendulum-v1"].bounds[1] == 0.0


def test_names_are_the_newest_versions_of_what_is_installed(monkeypatch):
    names = host_names()
    assert "CartPole-v1" in names and "CartPole-v0" not in names
    assert not any(name.startswith("thrust/") for name in names)
    assert "GymV26Environment-v0" not in names, "it only says where it has moved to"
    monkeypatch.setitem(
        gymnasium.registry, "Absent-v0", gymnasium.envs.registration.EnvSpec("Absent-v0", "no_such_package:Env")
    )
    assert "Absent-v0" not in host_names()


def test_what_an_adapter_builds_is_not_gymnasiums_too():
    """Their packages register with Gymnasium, so whether they are imported must not matter."""
    found = packages()
    assert any(name.startswith("MiniGrid-") for name in gymnasium.registry), "they were imported by asking"
    assert not any(name.startswith(("MiniGrid-", "BabyAI-", "popgym-")) for name in packages()["gymnasium"])
    assert found["gymnasium"] == packages()["gymnasium"] and "gymnasium:CartPole-v1" in found["gymnasium"]


def test_what_cannot_be_built_says_why_and_what_is_unknown_is_refused():
    broken = described("space_for_tests:broken")
    assert broken.problem == "space_for_tests:broken cannot be built: RuntimeError: the motor is off"
    with pytest.raises(ConfigError, match="no environment is called"):
        described("Nowhere-v0")


def test_a_return_range_is_the_one_that_the_environment_states():
    """As a comparison reads it, of single environments and of vectors."""
    assert described("space_for_tests:Stated").bounds == (0.0, 5.0)
    assert described("vector_envs_for_tests:stated").bounds == (-1.0, 2.0)
    wrong = described("space_for_tests:misstated")
    assert wrong.bounds is None and wrong.problem.startswith('metadata["return_range"] is (0, -3): give two finite')
