"""What `--observe` says: read, written back, by index or by name, and answered helpfully where it makes no sense."""

from pathlib import Path

import gymnasium
import pytest

from thrust_rl.config import ConfigError
from thrust_rl.envs.core import FullyObserved
from thrust_rl.envs.observation import (
    COORDINATES,
    OBSERVATION_MODELS,
    Delay,
    Flicker,
    FrameDrop,
    GaussianNoise,
    Hide,
    Mask,
    Quantize,
    RandomDelay,
    Relay,
    Stacked,
    coordinate_names,
    format_observe,
    observation_model,
    parse_observe,
)

PAGE = Path(__file__).parents[2] / "docs" / "observe.md"
CART_POLE = ("cart_position", "cart_velocity", "pole_angle", "pole_velocity")
TEXTS = {
    "flicker:0.5": Flicker(0.5),
    "flicker:0.5,4": Flicker(0.5, 4.0),
    "mask:1,3": Hide((1, 3)),
    "show:2,0": Mask((2, 0)),
    "noise:0.1": GaussianNoise(0.1),
    "noise:0,1e-05,2.5": GaussianNoise((0.0, 1e-5, 2.5)),
    "delay:2": Delay(2),
    "random-delay:3": RandomDelay(3),
    "drop:0.2": FrameDrop(0.2),
    "quantize:0.1": Quantize(0.1),
    "quantize:0.1,10": Quantize((0.1, 10.0)),
    "mask:1,3|noise:0.1|flicker:0.3": Stacked((Hide((1, 3)), GaussianNoise(0.1), Flicker(0.3))),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_one_model_and_is_written_as_it_was_read(text):
    assert parse_observe(text) == TEXTS[text]
    assert format_observe(TEXTS[text]) == text
    assert observation_model([text]) == observation_model(TEXTS[text]) == TEXTS[text]


def test_every_kind_is_read_from_its_example_and_tested_here():
    for name, kind in OBSERVATION_MODELS.items():
        model = parse_observe(kind.example)
        assert type(model) is kind.model and kind.syntax.startswith(f"{name}:")
        assert any(text.startswith(f"{name}:") for text in TEXTS)
        assert f"| `{name}:" in PAGE.read_text(), f"{PAGE.name} has no row for {name}"


def test_spaces_do_not_matter_and_several_texts_are_a_stack_in_their_order():
    assert parse_observe(" mask: 1 , 3 | noise: 0.1") == Stacked((Hide((1, 3)), GaussianNoise(0.1)))
    assert observation_model(["noise:0.1", Hide((1,)), "delay:1|drop:0.5"]) == Stacked(
        (GaussianNoise(0.1), Hide((1,)), Delay(1), FrameDrop(0.5))
    )
    assert observation_model([]) == FullyObserved() and format_observe(FullyObserved()) == ""


def test_coordinates_may_be_named_and_a_second_mask_names_what_the_first_left():
    assert parse_observe("mask:cart_velocity,pole_velocity", CART_POLE) == Hide((1, 3))
    assert parse_observe("show:pole_angle,0", CART_POLE) == Mask((2, 0))
    twice = Stacked((Hide((1,)), Hide((2,))))
    assert observation_model(["mask:cart_velocity", "mask:pole_velocity"], CART_POLE) == twice
    assert parse_observe("mask:cart_velocity|mask:pole_velocity", CART_POLE) == twice
    with pytest.raises(ConfigError, match="no coordinate is called 'cart_velocity'"):
        observation_model(["mask:cart_velocity", "mask:cart_velocity"], CART_POLE)


def test_names_are_as_many_as_there_are_coordinates():
    for name in ("CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"):
        assert gymnasium.make(name).observation_space.shape == (len(coordinate_names(name)),)
    assert len(coordinate_names("LunarLander-v3")) == 8
    assert coordinate_names("thrust/MaskedCartPole-v0") == ("cart_position", "pole_angle")
    assert coordinate_names("somebody/CartPole-v1") is coordinate_names("Unheard-v0") is coordinate_names("?") is None
    assert all(len(set(names)) == len(names) for names in COORDINATES.values())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("noize:0.1", ["'noize:0.1'", "did you mean 'noise'?", "random-delay", "kind:value", "mask:1,3"]),
        ("", ["names no observation model", "flicker, mask"]),
        ("mask:1,3|", ["names no observation model"]),
        ("noise", ["'noise'", "value is missing", "noise:STD", "for example noise:0.1"]),
        ("noise:", ["value is missing"]),
        ("noise:a", ["'a' is not a number", "noise:STD"]),
        ("delay:1.5", ["'1.5' is not a whole number", "delay:STEPS", "delay:2"]),
        ("delay:1,2", ["2 values are too many", "at most 1"]),
        ("flicker:0.5,4,1", ["3 values are too many", "at most 2", "flicker:PROBABILITY,BURST"]),
        ("flicker:1.5", ["flicker_prob is 1.5", "[0, 1]", "flicker:0.5,4"]),
        ("noise:nan", ["std is nan", "finite"]),
        ("mask:1,,2", ["'' is not a whole number"]),
        ("mask:1,1", ["coordinate 1 twice", "mask:1,3"]),
        ("mask:-1", ["is -1", "at least 0"]),
        (
            "mask:pole_velocty",
            ["no coordinate is called 'pole_velocty'", "did you mean 'pole_velocity'?", "cart_position"],
        ),
    ],
)
def test_what_makes_no_sense_is_answered_with_syntax_and_example(text, parts):
    with pytest.raises(ConfigError) as error:
        parse_observe(text, CART_POLE)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_names_nobody_knows_are_answered_with_those_that_are_known():
    with pytest.raises(ConfigError, match=r"'velocity' is not an index.*known for CartPole, Pendulum.*give its index"):
        parse_observe("mask:velocity")


def test_a_model_of_ones_own_has_no_text():
    class Own(Relay):
        def relay(self, state, frame):
            return state, frame

    with pytest.raises(ConfigError, match="has no text: those that have are flicker, mask.*pass the object itself"):
        format_observe(Own())
