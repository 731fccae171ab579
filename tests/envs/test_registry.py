"""Environments are found by name; a wrong name or parameter is answered with what was probably meant."""

import jax
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.cartpole import CartPolePhysics
from thrust_rl.envs.observation import Flicker, Mask
from thrust_rl.envs.registry import ENVIRONMENTS, env_parameters, make


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_every_environment_is_made_under_its_name_with_the_defaults_it_states(name):
    assert make(name).name == name
    assert make(name) == make(name, **env_parameters(name))


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("CartPole-v0", "CartPole-v1"),
        ("FlickeringCartpole", "FlickeringCartPole-v0"),
        ("maskedCartPole-v0", "MaskedCartPole-v0"),
    ],
)
@pytest.mark.parametrize("ask", [make, env_parameters])
def test_an_unknown_name_suggests_the_nearest(ask, wrong, meant):
    with pytest.raises(ConfigError) as error:
        ask(wrong)
    assert repr(wrong) in str(error.value) and f"did you mean {meant!r}?" in str(error.value)
    assert all(name in str(error.value) for name in ENVIRONMENTS)


def test_a_name_like_no_other_gets_the_list_and_no_guess():
    with pytest.raises(ConfigError) as error:
        make("Zzz")
    assert "did you mean" not in str(error.value) and "CartPole-v1" in str(error.value)


def test_an_unknown_parameter_is_answered_with_those_there_are():
    with pytest.raises(ConfigError) as error:
        make("FlickeringCartPole-v0", flicker=0.5)
    assert all(part in str(error.value) for part in ("'flicker'", "flicker_prob", "burst_len", "integrator"))
    with pytest.raises(ConfigError, match="CartPole-v1 has no parameter 'flicker_prob'"):
        make("CartPole-v1", flicker_prob=0.5)


def test_parameters_reach_what_they_name():
    env = make("FlickeringCartPole-v0", flicker_prob=0.25, burst_len=8.0, integrator="semi-implicit")
    assert env.sensor == Flicker(0.25, 8.0)
    assert env.physics == CartPolePhysics("semi-implicit")
    assert make("MaskedCartPole-v0").sensor == Mask((0, 2))


def test_values_out_of_range_are_refused(unchecked):
    with pytest.raises(ConfigError, match="flicker_prob is 2.0"):
        make("FlickeringCartPole-v0", flicker_prob=2.0)
    with pytest.raises(ConfigError, match="integrator is 'rk4'.*'euler' or 'semi-implicit'"):
        make("CartPole-v1", integrator="rk4")


def test_masking_hides_both_rates():
    # Two states that differ in their rates alone look the same.
    env, full = make("MaskedCartPole-v0"), make("CartPole-v1")
    state, frame = full.init(jax.random.key(0))
    faster = state.physics._replace(velocity=state.physics.velocity + 1, angular_velocity=state.physics.velocity - 1)
    shown = [env.sensor.emit(jax.random.key(0), (), env.physics.observe(s))[1] for s in (state.physics, faster)]
    assert shown[0].obs.tolist() == shown[1].obs.tolist() == frame.obs[jax.numpy.array([0, 2])].tolist()
