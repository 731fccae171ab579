"""No number of an observation becomes another one in silence: what a space does not hold is a fault with a place."""

import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from hypothesis import given
from hypothesis import strategies as st

from thrust_rl.envs.faults import EnvError, bounds_of, faulty_rows, taken_part
from thrust_rl.envs.partial import PartialObservation
from thrust_rl.envs.spaces import Choices, Image, obs_spec
from thrust_rl.envs.task import HostTask

BYTES = functools.partial(Box, 0, 255, dtype=np.uint8)
PIXELS = (4, 4, 3)


def pixels(value, dtype=np.int64):
    image = np.zeros(PIXELS, dtype)
    image[1, 2, 0] = value
    return image


class Giving(gymnasium.Env):
    """Gives what it is told to give at its third step, and what fits before and after."""

    action_space = Discrete(2)

    def __init__(self, space, odd):
        self.observation_space, self.odd, self.time = space, odd, 0

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        self.time += 1
        return self.odd if self.time == 3 else self.observation_space.sample(), 0.0, False, False, {}


OUTSIDE, NOT_FINITE = "it gave an observation outside its space: ", "it gave an observation that is not finite: "
ODD = {
    "image 300": (BYTES(PIXELS), pixels(300), OUTSIDE + r"\[300\], which is no uint8"),
    "image -1": (BYTES(PIXELS), pixels(-1), OUTSIDE + r"\[-1\], which is no uint8"),
    "image 0.5": (BYTES(PIXELS), pixels(0.5, np.float32), OUTSIDE + r"\[0.5\], which is no uint8"),
    "image nan": (BYTES(PIXELS), pixels(np.nan, np.float32), NOT_FINITE + r"\[nan\]"),
    "image inf": (BYTES(PIXELS), pixels(np.inf, np.float64), NOT_FINITE + r"\[inf\]"),
    "channels first": (BYTES((1, 4, 4)), np.full((1, 4, 4), 256), OUTSIDE + r"\[\[\[256, "),
    "few grey levels": (Box(0, 10, PIXELS, np.uint8), pixels(200, np.uint8), OUTSIDE + r"\[200\]; .*--allow-out"),
    "vector of bytes": (BYTES((3,)), np.array([0, 300, 1]), OUTSIDE + r"\[0.0, 300.0, 1.0\]; .*--allow-out"),
    "bits 5": (MultiBinary(2), np.array([1, 5]), OUTSIDE + r"\[1.0, 5.0\]; .*--allow-out"),
    "bits 0.5": (MultiBinary(2), np.array([1, 0.5]), OUTSIDE + r"\[1.0, 0.5\]"),
    "bits nan": (MultiBinary(2), np.array([1, np.nan]), NOT_FINITE),
    "choice 0.7": (Discrete(3), 0.7, OUTSIDE + "0.7, which is no int32"),
    "choice nan": (Discrete(3), float("nan"), NOT_FINITE + "nan"),
    "choice 2**32": (Discrete(3), 2**32, OUTSIDE + "4294967296, which is no int32"),
    "choice 3": (Discrete(3), 3, OUTSIDE + r"3 \(counted from 0\)"),
    "choices": (MultiDiscrete([3, 4]), np.array([0.0, 1.5]), OUTSIDE + r"\[0.0, 1.5\], which is no int32"),
    "in a tree": (Dict(a=Tuple((Discrete(3), BYTES(PIXELS)))), {"a": (1, pixels(300))}, OUTSIDE + r"\[300\]"),
    "a mask of nan": (
        Dict(x=Discrete(3), action_mask=Box(0, 1, (2,))),
        {"x": 0, "action_mask": np.array([1, np.nan])},
        r"its action mask is not finite: \[1.0, nan\]",
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_what_a_cast_would_hide_ends_the_run_with_a_place(what):
    space, odd, said = ODD[what]
    envs = HostTask("odd", lambda: Giving(space, odd)).start(2)
    envs.begin(0)
    for _ in range(2):
        envs.step(np.zeros(2, int))
    with pytest.raises(EnvError, match=f"^environment 0 at step 3: {said}"):
        envs.step(np.zeros(2, int))


@pytest.mark.parametrize("what", ODD)
def test_or_replaces_the_environment(what):
    space, odd, _ = ODD[what]
    envs = HostTask("odd", lambda: Giving(space, odd), on_env_error="restart").start(2)
    envs.begin(0)
    over = [envs.step(np.zeros(2, int)).result.truncated.tolist() for _ in range(4)]
    assert over == [[False, False], [False, False], [True, True], [False, False]] and envs.restarts() == 2


@pytest.mark.parametrize("what", ["vector of bytes", "bits 5", "few grey levels"])
def test_what_can_be_kept_passes_where_that_is_asked_for(what):
    space, odd, _ = ODD[what]
    envs = HostTask("odd", lambda: Giving(space, odd), check_range=False).start(1)
    envs.begin(0)
    kept = [envs.step(np.zeros(1, int)).result.obs[0] for _ in range(3)][2]
    np.testing.assert_array_equal(kept, odd)


def test_what_cannot_be_kept_never_passes():
    envs = HostTask("odd", lambda: Giving(BYTES(PIXELS), pixels(300)), check_range=False).start(1)
    envs.begin(0)
    with pytest.raises(EnvError, match=r"environment 0 at step 3: .*\[300\], which is no uint8"):
        [envs.step(np.zeros(1, int)) for _ in range(3)]


def test_an_observation_model_hides_no_fault():
    env = functools.partial(Giving, BYTES(PIXELS), pixels(300))
    envs = HostTask("odd", lambda: PartialObservation(env(), "drop:0.0")).start(1)
    envs.begin(0)
    with pytest.raises(EnvError, match=r"environment 0 at step 3: .*\[300\], which is no uint8"):
        [envs.step(np.zeros(1, int)) for _ in range(3)]


@given(value=st.integers(-(2**40), 2**40) | st.floats(width=64), choice=st.booleans())
def test_a_number_is_stored_as_it_is_or_is_a_fault(value, choice):
    """Whatever comes: kept and no fault where the space holds it, else a fault."""
    space = Discrete(5, start=-2) if choice else BYTES((1, 1))
    part = obs_spec(space).parts[0]
    assert isinstance(part, Choices | Image)
    low, high = (-2, 2) if choice else (0, 255)
    try:
        stored = taken_part(part, np.full(space.shape, value))
    except Exception as error:
        assert type(error).__name__ == "Fault"
        faulty = True
    else:
        faulty = bool(faulty_rows(obs_spec(space), bounds_of(space), [stored[None]], np.zeros(1, bool)))
        assert faulty or stored.ravel()[0] + (-2 if choice else 0) == value
    assert faulty == (not (low <= value <= high and value == int(value)))


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (BYTES(PIXELS), pixels(255.0, np.float32)),
        (BYTES(PIXELS), pixels(7).tolist()),
        (Discrete(3), 2.0),
        (Discrete(3), np.int64(1)),
        (MultiBinary(2), [True, False]),
        (MultiDiscrete([3, 4]), [2, 3]),
    ],
    ids=str,
)
def test_another_type_with_the_same_numbers_is_no_fault(space, value):
    envs = HostTask("fine", lambda: Giving(space, value)).start(1)
    envs.begin(0)
    kept = [envs.step(np.zeros(1, int)).result.obs[0] for _ in range(3)][2]
    np.testing.assert_array_equal(kept, value)
