"""A plan checks everything before the first step, and lists one job per task, condition, arm and seed."""

import dataclasses
import json
import sys

import pytest
from gymnasium.spaces import Discrete

from space_for_tests import Spaces
from thrust_rl.config import ARMS, ArmConfig, ConfigError, TrainConfig, arm_from
from thrust_rl.differences import differing
from thrust_rl.envs.named import make
from thrust_rl.envs.task import HostTask
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import Job
from thrust_rl.experiment.matching import matched, parameters
from thrust_rl.experiment.plan import Options, jobs_of, plan
from thrust_rl.experiment.schema import plain
from thrust_rl.experiment.settings import settings_of

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
    own = plan(FLICKER, Options(arms=["lstm", ArmConfig("own", previous_reward=True)]))
    assert [arm.name for arm in own.arms] == ["lstm", "own+reward"]
    planned = plan(FLICKER, Options(arms=["lstm", "mlp+action"], previous_action=True, previous_reward=True))
    assert [arm.name for arm in planned.arms] == ["lstm+action+reward", "mlp+action+reward"]
    assert all(arm.arm.previous_action and arm.arm.previous_reward for arm in planned.arms)


def test_the_twin_of_a_host_environment_sees_everything():
    spec = EnvSpec("gymnasium:CartPole-v1", observe=("mask:1,3",), twin=True)
    assert spec.build().observation_space.shape == (4,)
    with pytest.raises(ConfigError, match="no fully observable twin is known for gymnasium:CartPole-v1: .*--observe"):
        EnvSpec("gymnasium:CartPole-v1", twin=True).build()


def bounds_of(planned):
    return planned.tasks[0].task.environment.bounds


def test_the_return_range_is_what_was_given_else_what_the_class_states_else_what_is_known():
    assert bounds_of(plan("space_for_tests:Stated", Options(config=TINY))) == (0.0, 5.0)
    given = plan("space_for_tests:Stated", Options(config=TINY, return_range=(-1, 7)))
    assert bounds_of(given) == (-1.0, 7.0)
    assert bounds_of(plan("CartPole-v1", Options(config=TINY))) == (0.0, 500.0)
    assert bounds_of(plan("CartPole-v1", Options(config=TINY, return_range=(0, 100)))) == (0.0, 100.0)
    behind = plan("space_for_tests:Stated", Options(config=TINY, observe="mask:0", twin=True))
    assert [each.environment.bounds for each in behind.tasks[0].conditions] == [(0.0, 5.0)] * 2


def test_the_return_range_goes_through_json_and_is_a_setting_that_older_folders_lack():
    planned = plan("space_for_tests:Stated", Options(config=TINY))
    spec = planned.tasks[0].task.environment
    assert EnvSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    other = plan("space_for_tests:Stated", Options(config=TINY, return_range=(0, 6)))
    [(path, *_)] = differing(plain(settings_of(planned)), plain(settings_of(other)))
    assert path.endswith("environment.return_range")
    assert "return_range" not in json.dumps(settings_of(plan("CartPole-v1", Options(config=TINY))))


@pytest.mark.parametrize("given", [(1.0, 1.0), (5.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_return_range_is_two_finite_numbers_the_lower_first(given):
    with pytest.raises(ConfigError, match="return_range is .*: give two finite numbers"):
        plan("CartPole-v1", Options(config=TINY, return_range=given))


@pytest.mark.parametrize("highest", [0, "much", float("inf")])
def test_a_class_that_states_no_return_range_is_told_so(highest):
    with pytest.raises(ConfigError, match=r'metadata\["return_range"\] is .*: give two finite numbers'):
        plan("space_for_tests:Stated", Options(config=TINY, env_params={"highest": highest}))


EVERY_ARM = ("lstm", "gru", "lstm-reset", "mlp", "framestack:2", "lstm+action+reward", "framestack:3+action+reward")
CANNOT = [
    ("nothing", "mlp+action", "observation_space is Dict.*, which holds nothing"),
    ("no number", "lstm", "nothing that lstm could read.*lstm\\+action"),
    ("no number", "framestack:2", "nothing that framestack:2 could read"),
    ("mask alone", "mlp", "nothing that mlp could read"),
    ("long mask", "lstm", "the action mask has 3 numbers for 2 alternatives"),
    ("mask of numbers", "framestack:4", "cannot be masked: drop it"),
    ("dict of actions", "mlp", "action_space is Dict.*actions must be Discrete"),
]


def test_an_arm_that_cannot_handle_a_space_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="Graph|Sequence|Text"):
        plan("space_for_tests:Text", Options(config=TINY))


@pytest.mark.parametrize(("kind", "arm", "said"), CANNOT, ids=[f"{kind}, {arm}" for kind, arm, _ in CANNOT])
def test_what_an_arm_cannot_read_or_draw_is_named(kind, arm, said):
    with pytest.raises(ConfigError, match=said):
        plan("space_for_tests:of", Options(arms=[arm], env_params={"kind": kind}, config=TINY))


@pytest.mark.parametrize("kind", ["image", "nested", "masked", "bits", "continuous"])
def test_every_arm_handles_every_other_space(kind):
    planned = plan("space_for_tests:of", Options(arms=EVERY_ARM, env_params={"kind": kind}, config=TINY))
    assert all(arm.params > 0 for arm in planned.arms)


def test_an_input_is_something_to_read():
    env = Options(arms=["mlp+action"], env_params={"kind": "mask alone"}, config=TINY)
    assert plan("space_for_tests:of", env).arms[0].params > 0


MODULE = """
from thrust_rl import ArmConfig

wide = ArmConfig("wide-gru", cell="gru", hidden_dim=128)
no_arm = 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of arms, which Python finds."""
    (tmp_path / "arms_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "arms_of_a_test"
    sys.modules.pop("arms_of_a_test", None)


def test_an_arm_of_ones_own_module_goes_by_its_own_name_and_takes_inputs(module):
    planned = plan(FLICKER, Options(arms=["mlp", f"{module}:wide", f"{module}:wide+action"], seeds=1, config=TINY))
    assert [arm.name for arm in planned.arms] == ["mlp", "wide-gru", "wide-gru+action"]
    assert planned.arms[1].arm == ArmConfig("wide-gru", cell="gru", hidden_dim=128)
    assert planned.arms[2].arm.previous_action
    [job] = [job for job in jobs_of(planned) if job.arm.name == "wide-gru"]
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))).arm == planned.arms[1].arm


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module_here:arm", "'no_such_module_here' cannot be imported .ModuleNotFoundError.*current directory"),
        ("arms_of_a_test:narrow", "arms_of_a_test has no 'narrow' .its arms are wide"),
        ("arms_of_a_test:no_arm", "that is a int, and an ArmConfig is needed .its arms are wide"),
        ("json:dumps", "that is a function, and an ArmConfig is needed .it has no ArmConfig"),
        ("arms_of_a_test:wide+acton", "asks for the input 'acton': did you mean 'action'"),
        ("framestack:1", "how many frames are stacked"),
    ],
)
def test_what_is_no_arm_of_a_module_is_named(module, name, said):
    with pytest.raises(ConfigError, match=said):
        plan(FLICKER, Options(arms=[name], config=TINY))


@pytest.mark.parametrize("arms", [("lstm", "mlp"), ("gru", "mlp", "framestack:4"), ("mlp", "lstm")])
def test_matched_arms_are_within_two_percent_in_parameters_on_every_task(arms):
    for name in (FLICKER, "MaskedCartPole-v0"):
        env = make(name)
        planned = plan(name, Options(arms=arms, match_params=True, config=TINY))
        counts = {arm.name: arm.params for arm in planned.arms}
        target = next(arm.params for arm in planned.arms if arm.arm.has_memory)
        assert all(abs(count - target) <= 0.02 * target for count in counts.values()), counts
        assert counts == {arm.name: parameters(env, arm.arm) for arm in planned.arms}


@pytest.mark.parametrize("given", [{"seeds": [0, 1]}, {"seed": 0.5}, {"seeds": True}], ids=str)
def test_how_many_seeds_is_a_number_and_no_list(unchecked, given):
    with pytest.raises(ConfigError, match="seeds is how many seeds each arm gets, and seed the first of them"):
        plan(FLICKER, Options(config=TINY, **given))


def test_tables_of_many_choices_are_not_counted_when_arms_are_matched():
    """Of 100,000 rows, beside which an mlp of any width would be within 2 %; all arms have the same."""
    task, table = HostTask("words", lambda: Spaces(Discrete(100_000), Discrete(2))), 64 * 100_000
    for arm in ("mlp", "framestack:3"):
        lstm, other = (parameters(task, each) - table for each in matched(task, [ARMS["lstm"], arm_from(arm)]))
        assert abs(other - lstm) <= 0.02 * lstm
    assert abs(parameters(task, ARMS["mlp"]) - table - lstm) > 0.02 * lstm


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


def test_what_host_environments_are_told_reaches_them():
    options = Options(arms=["mlp"], env_workers=2, on_env_error="restart", check_range=False, step_timeout=7.0)
    [job] = jobs_of(plan("gymnasium:CartPole-v1", dataclasses.replace(options, seeds=1)))
    task = job.env.build()
    assert (task.workers, task.on_env_error, task.check_range, task.step_timeout) == (2, "restart", False, 7.0)


def test_how_long_a_step_may_take_is_no_setting_of_a_result():
    short, long = (plan("gymnasium:CartPole-v1", Options(step_timeout=seconds)) for seconds in (7.0, 70.0))
    assert settings_of(short) == settings_of(long)
