"""Observation spaces: what every part is stored as, and what an environment's faults are called."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

from thrust_rl.config import ConfigError
from thrust_rl.envs.faults import Fault, bounds_of, faulty_rows, taken_frame
from thrust_rl.envs.spaces import ActionMask, Choices, Image, Numbers, Switches, obs_spec

EVERYTHING = Dict(
    speed=Box(-1.0, 1.0, (3,)),
    camera=Box(0, 255, (8, 9, 3), np.uint8),
    chosen=Discrete(4, start=2),
    several=Tuple((MultiDiscrete([2, 5]), MultiBinary(3))),
    matrix=Box(0, 7, (2, 2), np.int64),
    action_mask=MultiBinary(2),
)


def test_every_kind_of_space_is_read_as_what_it_is():
    parts = obs_spec(EVERYTHING).tree
    assert parts == {
        "speed": Numbers((3,)),
        "camera": Image((8, 9, 3), 255.0),
        "chosen": Choices((4,), (2,), ()),
        "several": (Choices((2, 5), (0, 0), (2,)), Switches((3,))),
        "matrix": Numbers((2, 2)),
        "action_mask": ActionMask((2,)),
    }


@pytest.mark.parametrize(
    ("shape", "stored"), [((6, 7), (6, 7, 1)), ((3, 6, 7), (6, 7, 3)), ((6, 7, 3), (6, 7, 3)), ((1, 6, 7), (6, 7, 1))]
)
def test_images_have_their_channels_last(shape, stored):
    spec = obs_spec(Box(0, 255, shape, np.uint8))
    assert spec.parts[0].shape == stored
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    (taken,) = taken_frame(spec, image)
    assert taken.shape == stored
    expected = np.moveaxis(image, 0, -1) if len(shape) == 3 and shape != stored else image.reshape(stored)
    np.testing.assert_array_equal(taken, expected)


def test_what_lies_in_the_space_is_taken_without_a_fault():
    spec, bounds = obs_spec(EVERYTHING), bounds_of(EVERYTHING)
    EVERYTHING.seed(0)
    for _ in range(50):
        sample = EVERYTHING.sample()
        sample["action_mask"][0] = 1
        taken = taken_frame(spec, sample)
        rows = [np.asarray(part)[None] for part in taken]
        assert [row.dtype for row in rows] == [part.dtype for part in spec.parts]
        assert faulty_rows(spec, bounds, rows, np.zeros(1, bool)) == {}
        values = spec.treedef.unflatten(taken)
        assert int(values["chosen"]) == sample["chosen"] - 2
        np.testing.assert_array_equal(values["camera"], sample["camera"])


def changed(name, value):
    sample = {**EVERYTHING.sample(), "action_mask": np.ones(2, np.int8)}
    return {**sample, name: value}


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("speed", np.array([0.0, np.nan, 0.0], np.float32), "not finite"),
        ("speed", np.array([0.0, 1.5, 0.0], np.float32), "outside its space.*allow-out-of-range"),
        ("chosen", 6, "outside its space"),
        ("chosen", 1, "outside its space"),
        ("several", (np.array([1, 5]), np.zeros(3, np.int8)), "outside its space"),
        ("action_mask", np.zeros(2, np.int8), "allows no action"),
    ],
)
def test_faults_in_numbers_are_found_in_the_row_that_has_them(name, value, fault):
    spec, bounds = obs_spec(EVERYTHING), bounds_of(EVERYTHING)
    good, bad = changed("chosen", 3), changed(name, value)
    rows = [np.stack(pair) for pair in zip(*(taken_frame(spec, obs) for obs in (good, bad)), strict=True)]
    faults = faulty_rows(spec, bounds, rows, np.zeros(2, bool))
    assert list(faults) == [1]
    with pytest.raises(AssertionError, match=fault):
        raise AssertionError(faults[1])


def test_nobody_acts_on_a_final_observation_so_its_mask_may_allow_nothing():
    spec, bounds = obs_spec(EVERYTHING), bounds_of(EVERYTHING)
    rows = [part[None] for part in taken_frame(spec, changed("action_mask", np.zeros(2, np.int8)))]
    assert faulty_rows(spec, bounds, rows, np.ones(1, bool)) == {}


@pytest.mark.parametrize("value", [np.zeros(4, np.float32), np.zeros((1, 3), np.float32), 0.0])
def test_a_wrong_shape_is_a_fault_and_never_broadcast(value):
    with pytest.raises(Fault, match=r"observation of shape .*: its space says \(3,\)"):
        taken_frame(obs_spec(EVERYTHING), changed("speed", value))


def test_a_missing_key_is_a_fault():
    sample = changed("chosen", 3)
    del sample["speed"]
    with pytest.raises(Fault, match="structure"):
        taken_frame(obs_spec(EVERYTHING), sample)


def test_bounds_are_in_the_order_of_the_parts():
    spec, bounds = obs_spec(EVERYTHING), bounds_of(EVERYTHING)
    assert len(spec.parts) == len(bounds)
    for part, limits in zip(spec.parts, bounds, strict=True):
        assert (limits is None) == isinstance(part, Image | Choices)
        assert limits is None or limits.low.shape == part.shape


@pytest.mark.parametrize("space", [Text(3), Sequence(Discrete(2)), Graph(Box(0, 1), None)])
def test_other_spaces_are_refused_where_they_stand(space):
    with pytest.raises(ConfigError, match=r"observation_space\['note'\]\[1\] is .*TransformObservation"):
        obs_spec(Dict(note=Tuple((Discrete(2), space))))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ConfigError, match="one number for every action"):
        obs_spec(Dict(action_mask=Discrete(3)))


def test_stacks_put_the_newest_frame_last_and_zeros_have_the_stored_types():
    spec = obs_spec(EVERYTHING)
    stacked = jax.tree.map(lambda part: part.stacked(3), spec.tree)
    assert stacked["camera"].shape == (3, 8, 9, 3)
    several = stacked["several"][0]
    assert (several.sizes, several.shape, several.frames) == ((2, 5), (3, 2), 3)
    zeros = spec.zeros(2)
    assert zeros["camera"].dtype == np.uint8 and zeros["camera"].shape == (2, 8, 9, 3)


def test_specs_are_hashable_and_equal_when_their_spaces_are():
    again = gymnasium.spaces.Dict(EVERYTHING.spaces)
    assert hash(obs_spec(EVERYTHING)) == hash(obs_spec(again)) and obs_spec(EVERYTHING) == obs_spec(again)
