"""An environment whose observations no arm can read, and one that cannot be built."""

import gymnasium


class Text(gymnasium.Env):
    observation_space = gymnasium.spaces.Text(5)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return "a", {}

    def step(self, action):
        return "a", 0.0, True, False, {}


def broken():
    raise RuntimeError("the motor is off")
