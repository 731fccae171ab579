"""Environments with spaces that arms cannot handle, some with spaces that all can, and one that cannot be built."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


class Text(gymnasium.Env):
    observation_space = gymnasium.spaces.Text(5)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return "a", {}

    def step(self, action):
        return "a", 0.0, True, False, {}


class Spaces(gymnasium.Env):
    """Anything may be observed and done; an episode is five steps."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 5, False, {}


class Stated(Spaces):
    """States the range of its returns."""

    metadata = {"return_range": (0, 5)}

    def __init__(self, highest=5):
        super().__init__(VECTOR, TWO)
        self.metadata = {"return_range": (0, highest)}


VECTOR, IMAGE = Box(-1.0, 1.0, (3,), np.float32), Box(0, 255, (12, 12, 3), np.uint8)
MASK, TWO = MultiBinary(2), Discrete(2)
SPACES = {
    "image": (IMAGE, TWO),
    "nested": (Dict(a=VECTOR, b=Tuple((IMAGE, Discrete(3)))), MultiDiscrete([2, 3])),
    "masked": (Dict(x=VECTOR, action_mask=MASK), TWO),
    "bits": (MultiBinary((2, 3)), MultiBinary(3)),
    "continuous": (Box(-1.0, 1.0, (), np.float32), Box(-1.0, 1.0, (2,), np.float32)),
    "nothing": (Dict({}), TWO),
    "no number": (Box(-1.0, 1.0, (0,), np.float32), TWO),
    "mask alone": (Dict(action_mask=MASK), TWO),
    "long mask": (Dict(x=VECTOR, action_mask=MultiBinary(3)), TWO),
    "mask of numbers": (Dict(x=VECTOR, action_mask=MASK), Box(-1.0, 1.0, (2,), np.float32)),
    "dict of actions": (VECTOR, Dict(a=TWO)),
}


def of(kind):
    return Spaces(*SPACES[kind])


def broken():
    raise RuntimeError("the motor is off")


def misstated():
    return Stated(highest=-3)
