"""A plan checks everything before the first step, and lists one job per task, condition, arm and seed."""

import json

import pytest

from thrust_rl.config import ArmConfig, ConfigError, TrainConfig
from thrust_rl.envs.named import make
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.matching import matched, parameters
from thrust_rl.experiment.plan import Options, jobs_of, plan

TINY = TrainConfig(total_timesteps=512, num_envs=4, num_steps=32)
FLICKER = "FlickeringCartPole-v0"


def test_the_plan_is_one_job_per_arm_and_seed_with_every_parameter_spelled_out():
    jobs = jobs_of(plan(FLICKER, Options(seeds=2, seed=5, config=TINY, env_params={"flicker_prob": 0.25})))
    assert [job.label for job in jobs] == ["lstm seed 5", "lstm seed 6", "mlp seed 5", "mlp seed 6"]
    assert {json.dumps(job.env.params) for job in jobs} == {
        json.dumps({"flicker_prob": 0.25, "burst_len": None, "integrator": "euler"})
    }
    assert {job.recorded for job in jobs} == {5}


def test_where_there_are_several_conditions_a_job_says_which():
    jobs = jobs_of(plan([FLICKER, "MaskedCartPole-v0"], Options(arms=["mlp"], seeds=1, twin=True, config=TINY)))
    assert [job.label for job in jobs] == [
        "mlp seed 0 on FlickeringCartPole-v0",
        "mlp seed 0 on FlickeringCartPole-v0 twin",
        "mlp seed 0 on MaskedCartPole-v0",
        "mlp seed 0 on MaskedCartPole-v0 twin",
    ]
    assert len({job.program for job in jobs}) == 4


def test_inputs_are_added_to_every_arm_and_shown_in_its_name():
    planned = plan(FLICKER, Options(arms=["lstm", "mlp+action"], previous_action=True, previous_reward=True))
    assert [arm.name for arm in planned.arms] == ["lstm+action+reward", "mlp+action+reward"]
    assert all(arm.arm.previous_action and arm.arm.previous_reward for arm in planned.arms)


def test_the_twin_of_a_host_environment_sees_everything():
    spec = EnvSpec("gymnasium:CartPole-v1", observe=("mask:1,3",), twin=True)
    assert spec.build().observation_space.shape == (4,)
    with pytest.raises(ConfigError, match="no fully observable twin is known for gymnasium:CartPole-v1: .*--observe"):
        EnvSpec("gymnasium:CartPole-v1", twin=True).build()


def test_an_arm_that_cannot_handle_a_space_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="Graph|Sequence|Text"):
        plan("space_for_tests:Text", Options(config=TINY))


@pytest.mark.parametrize("arms", [("lstm", "mlp"), ("gru", "mlp", "framestack:4"), ("mlp", "lstm")])
def test_matched_arms_are_within_two_percent_in_parameters_on_every_task(arms):
    for name in (FLICKER, "MaskedCartPole-v0"):
        env = make(name)
        planned = plan(name, Options(arms=arms, match_params=True, config=TINY))
        counts = {arm.name: arm.params for arm in planned.arms}
        target = next(arm.params for arm in planned.arms if arm.arm.has_memory)
        assert all(abs(count - target) <= 0.02 * target for count in counts.values()), counts
        assert counts == {arm.name: parameters(env, arm.arm) for arm in planned.arms}


def test_arms_that_cannot_be_matched_are_refused_with_the_nearest():
    env = make("CartPole-v1")
    with pytest.raises(ConfigError, match=r"cannot widen bare"):
        matched(env, [ArmConfig("lstm", cell="lstm"), ArmConfig("bare")])
    with pytest.raises(ConfigError, match=r"the nearest widths are 3 with 27; change the arms"):
        matched(env, [ArmConfig("tiny", cell="lstm", hidden_dim=1), ArmConfig("wide", encoder_sizes=(64,))])
    with pytest.raises(ConfigError, match="needs an arm with memory"):
        matched(env, [ArmConfig("mlp", encoder_sizes=(64,))])


def test_labels_show_what_differs_from_the_defaults():
    assert EnvSpec(FLICKER).completed().label == FLICKER
    assert EnvSpec(FLICKER, {"burst_len": 4.0}).completed().label == f"{FLICKER}(burst_len=4.0)"
    assert EnvSpec("Pendulum-v1", {"g": 9.0}, ("mask:2",)).label == "Pendulum-v1(g=9.0)|mask:2"


def test_a_return_range_is_known_only_where_nothing_was_changed():
    assert EnvSpec(FLICKER, {"flicker_prob": 0.1}).bounds == (0.0, 500.0)
    assert EnvSpec("VelocityMaskedCartPole-v1").bounds == EnvSpec("gymnasium:CartPole-v1").bounds == (0.0, 500.0)
    assert EnvSpec("gymnasium:CartPole-v1", {"max_episode_steps": 50}).bounds is None
    assert EnvSpec("LunarLander-v3").bounds is None
