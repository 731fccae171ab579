"""Every setting that breaks a rule is refused with its value, and every valid one survives a trip through JSON."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from thrust_rl.config import ARMS, ArmConfig, ConfigError, PPOConfig, TrainConfig, arm_from, from_dict

NAN, INF = float("nan"), float("inf")
POSITIVE = ["clip_range", "max_grad_norm", "reward_scale", "clip_range_vf", "target_kl", "learning_rate"]
NOT_NEGATIVE = ["vf_coef", "ent_coef"]
COUNTS = ["n_epochs", "envs_per_minibatch", "batch_size"]


def refused(make, name, value, rule):
    """The message names the setting, the value and the rule."""
    with pytest.raises(ConfigError) as error:
        make(**{name: value})
    assert name in str(error.value) and str(value) in str(error.value) and rule in str(error.value)


@pytest.mark.parametrize("name", ["gamma", "gae_lambda"])
@pytest.mark.parametrize("value", [-0.01, 1.01, NAN, INF])
def test_factors_lie_between_0_and_1(name, value):
    refused(PPOConfig, name, value, "[0.0, 1.0]")
    assert PPOConfig(**{name: 0.0}) and PPOConfig(**{name: 1.0})


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("value", [0.0, -1.0, NAN, INF])
def test_scales_are_positive_and_finite(name, value):
    refused(PPOConfig, name, value, "greater than 0")
    assert PPOConfig(**{name: 1e-9})


@pytest.mark.parametrize("name", NOT_NEGATIVE)
@pytest.mark.parametrize("value", [-0.5, NAN, INF])
def test_weights_are_not_negative(name, value):
    refused(PPOConfig, name, value, "at least 0")
    assert PPOConfig(**{name: 0.0})


@pytest.mark.parametrize(
    ("make", "name"),
    [(PPOConfig, name) for name in COUNTS]
    + [(TrainConfig, name) for name in ("num_envs", "num_steps", "total_timesteps")],
)
@pytest.mark.parametrize(("value", "rule"), [(0, "at least 1"), (-3, "at least 1"), (1.5, "whole"), (True, "whole")])
def test_counts_are_whole_numbers_of_at_least_1(unchecked, make, name, value, rule):
    refused(make, name, value, rule)


@pytest.mark.parametrize("name", ["clip_range_vf", "target_kl", "learning_rate"])
def test_optional_settings_may_be_absent(name):
    assert getattr(PPOConfig(**{name: None}), name) is None


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        *(("name", name, "an arm needs a name of 1 to 80") for name in ("", "  ", "a" * 81)),
        *(("name", name, "printable") for name in (5, None)),
        ("cell", "rnn", "none, lstm, gru"),
        ("activation", "gelu", "'relu' or 'tanh'"),
        ("hidden_dim", 0, "at least 1"),
        ("learning_rate", 0.0, "greater than 0"),
        ("learning_rate", NAN, "greater than 0"),
        ("hidden_dim", 2.5, "whole"),
        ("encoder_sizes", (64, 0), "at least 1"),
        ("encoder_sizes", (64, 0.5), "whole"),
        ("encoder_sizes", 8, "tuple of widths"),
        ("encoder_sizes", "64", "tuple of widths"),
        ("encoder_sizes", [64, True], "whole"),
        ("learning_rate", "1e-3", "must be a number"),
        ("learning_rate", True, "must be a number"),
        ("orthogonal_init", "no", "True or False"),
        ("reset_memory", 1, "True or False"),
        ("previous_action", None, "True or False"),
    ],
)
def test_arms_that_cannot_be_built(unchecked, name, value, rule):
    with pytest.raises(ConfigError) as error:
        ArmConfig(**{"name": "arm", **{name: value}})
    bad = value[-1] if isinstance(value, tuple | list) else value
    assert name in str(error.value) and str(bad) in str(error.value) and rule in str(error.value)


@pytest.mark.parametrize("name", ["two\nlines", "a\ttab", "\x1b[31mred", "\u200b"])
def test_an_arms_name_is_printable(name):
    with pytest.raises(ConfigError, match="printable") as error:
        ArmConfig(name)
    assert str(error.value).isprintable()


def in_numpys_numbers(config):
    """Every field of a configuration as what a sweep over an array gives."""
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    values = {name: kinds.get(type(value), lambda same: same)(value) for name, value in values.items()}
    if "encoder_sizes" in values:
        values["encoder_sizes"] = [np.int32(width) for width in values["encoder_sizes"]]
    return values


@pytest.mark.parametrize("config", [PPOConfig(target_kl=0.5, learning_rate=1.0), TrainConfig(), ARMS["mlp"]])
def test_numbers_of_numpys_are_stored_as_pythons_own(unchecked, config):
    given = in_numpys_numbers(config)
    assert sum(type(value).__module__ == "numpy" for value in given.values()) >= 3
    same = type(config)(**given)
    assert same == config and hash(same) == hash(config) and repr(same) == repr(config)
    assert from_dict(type(config), json.loads(json.dumps(dataclasses.asdict(same)))) == config


@pytest.mark.parametrize(
    "number", [np.float32(0.5), np.float64(0.5), np.longdouble(0.5), Fraction(1, 2), np.int8(1), 1]
)
def test_any_sort_of_number_survives_a_file(unchecked, number):
    arm, ppo = ArmConfig("own", encoder_sizes=[8], learning_rate=number), PPOConfig(gamma=number, target_kl=number)
    for config, value in ((arm, arm.learning_rate), (ppo, ppo.gamma), (ppo, ppo.target_kl)):
        assert type(value) is float and value == number
        assert from_dict(type(config), json.loads(json.dumps(dataclasses.asdict(config)))) == config
        assert hash(config) is not None


@pytest.mark.parametrize("value", [np.array([0.5]), np.bool_(True), "0.5", 0.5j])
def test_what_is_no_number_is_none_either_way(unchecked, value):
    with pytest.raises(ConfigError, match="gamma is .*: it must be a number"):
        PPOConfig(gamma=value)
    with pytest.raises(ConfigError, match="num_envs is .*: it must be a whole number"):
        TrainConfig(num_envs=value)


@pytest.mark.parametrize("name", ["normalize_advantage", "normalize_obs", "anneal_lr"])
def test_a_switch_is_on_or_off(unchecked, name):
    refused(PPOConfig, name, "no", "True or False")


def test_an_unknown_window_start_is_refused(unchecked):
    refused(TrainConfig, "window_start", "warm", "'cold' or 'stored'")


def test_the_budget_holds_whole_windows():
    # 4 environments x 32 steps are 128 steps an update; 1000 = 7 x 128 + 104.
    config = TrainConfig(total_timesteps=1000, num_envs=4, num_steps=32)
    assert (config.steps_per_update, config.num_updates) == (128, 7)
    assert TrainConfig(total_timesteps=128, num_envs=4, num_steps=32).num_updates == 1
    with pytest.raises(ConfigError) as error:
        TrainConfig(total_timesteps=127, num_envs=4, num_steps=32)
    assert all(part in str(error.value) for part in ("127", "4 environments", "32 steps", "at least 128"))


# With memory, minibatches are whole environments; without, single transitions of 12 x 10 = 120.
@pytest.mark.parametrize(
    ("arm", "setting", "size", "total", "suggested"),
    [
        ("lstm", "envs_per_minibatch", 5, 12, 4),  # 4 and 6 are as near: the smaller
        ("lstm", "envs_per_minibatch", 11, 12, 12),
        ("lstm", "envs_per_minibatch", 100, 12, 12),
        ("mlp", "batch_size", 7, 120, 6),  # 6 and 8 are as near: the smaller
        ("mlp", "batch_size", 50, 120, 40),
        ("mlp", "batch_size", 121, 120, 120),
    ],
)
def test_minibatches_divide_the_window_and_the_nearest_divisor_is_suggested(arm, setting, size, total, suggested):
    def config(value):
        return TrainConfig(num_envs=12, num_steps=10, ppo=PPOConfig(**{setting: value}))

    with pytest.raises(ConfigError) as error:
        config(size).rows_per_minibatch(ARMS[arm])
    message = str(error.value)
    assert f"is {total}," in message and f"{setting} {size} " in message and f"set {setting} to {suggested}," in message
    assert config(suggested).rows_per_minibatch(ARMS[arm]) == suggested


def test_a_minibatch_of_one_cannot_be_standardized():
    with pytest.raises(ConfigError, match="batch_size is 1:.*normalize_advantage"):
        TrainConfig(ppo=PPOConfig(batch_size=1)).rows_per_minibatch(ARMS["mlp"])
    plain = PPOConfig(batch_size=1, normalize_advantage=False)
    assert TrainConfig(ppo=plain).rows_per_minibatch(ARMS["mlp"]) == 1


def test_an_arm_is_not_held_to_the_other_kinds_minibatch():
    config = TrainConfig(num_envs=12, num_steps=10, ppo=PPOConfig(envs_per_minibatch=5, batch_size=40))
    assert config.rows_per_minibatch(ARMS["mlp"]) == 40


def test_defaults_fit_every_preset():
    assert TrainConfig().rows_per_minibatch(ARMS["lstm"]) == 4
    assert TrainConfig().rows_per_minibatch(ARMS["mlp"]) == 128


def test_the_learning_rate_is_the_arms_unless_ppo_sets_one():
    assert TrainConfig().learning_rate(ARMS["lstm"]) == 1.5e-3
    assert TrainConfig().learning_rate(ARMS["mlp"]) == 3e-4
    assert TrainConfig(ppo=PPOConfig(learning_rate=0.1)).learning_rate(ARMS["lstm"]) == 0.1


def test_the_name_of_an_arm_shows_what_it_is_fed():
    wide = ArmConfig("wide", previous_reward=True).with_inputs()
    assert wide.name == "wide+reward" and wide.with_inputs() == wide
    assert wide.with_inputs(previous_action=True, previous_reward=True).name == "wide+reward+action"
    both = ArmConfig("x+reward+action", previous_action=True, previous_reward=True)
    assert both.with_inputs() == both
    before = {**dataclasses.asdict(wide), "name": "wide"}  # as files of earlier releases may say
    assert from_dict(ArmConfig, before).name == "wide"


def test_arms_are_found_by_name():
    assert arm_from("lstm").has_memory and not arm_from("mlp").has_memory
    mine = ArmConfig("mine", cell="lstm")
    assert arm_from(mine) is mine
    stacked = arm_from("framestack:4+reward+action")
    assert stacked == ArmConfig(
        "framestack:4+action+reward",
        encoder_sizes=(128, 128),
        frame_stack=4,
        previous_action=True,
        previous_reward=True,
    )
    with pytest.raises(ConfigError, match="at least 2, for example framestack:4"):
        arm_from("framestack")
    with pytest.raises(ConfigError, match="input 'actoin': did you mean 'action'"):
        arm_from("lstm+actoin")
    with pytest.raises(ConfigError, match="no arm is called 'lsmt': did you mean 'lstm'.*lstm.*framestack:K"):
        arm_from("lsmt")


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(),
        TrainConfig(
            num_envs=3,
            window_start="stored",
            ppo=PPOConfig(gamma=0.9, clip_range_vf=None, target_kl=0.01, normalize_obs=False),
        ),
        PPOConfig(learning_rate=1e-3),
        *ARMS.values(),
        ArmConfig("deep", cell="lstm", encoder_sizes=(32, 16), hidden_dim=8),
    ],
)
def test_settings_survive_json(config):
    text = json.dumps(dataclasses.asdict(config))
    back = from_dict(type(config), json.loads(text))
    assert back == config and hash(back) == hash(config)


def test_settings_read_from_a_file_are_checked_too():
    data = dataclasses.asdict(TrainConfig())
    data["ppo"]["gamma"] = 2.0
    with pytest.raises(ConfigError, match="gamma is 2.0"):
        from_dict(TrainConfig, data)


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PPOConfig().gamma = 0.5
