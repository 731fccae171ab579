"""Gymnasium environments whose observations say whose, when and by which action, and which fail on demand."""

import os
import signal
import time

import gymnasium
import numpy as np

FOREVER = 10**9


class Telling(gymnasium.Env):
    """Observation [tag of the episode, time, last action]; reward: time + 10 · action.

    Terminates after `ends` steps and is truncated after `limit`. The tag is drawn anew in every episode.
    """

    metadata = {"render_modes": []}

    def __init__(self, ends: int = FOREVER, limit: int = FOREVER, num_actions: int = 2):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1000.0, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(num_actions)
        self.ends, self.limit, self.time = ends, limit, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tag, self.time = self.np_random.uniform(0, 1), 0
        return self._obs(-1), {}

    def step(self, action):
        self.time += 1
        terminated = self.time >= self.ends
        return self._obs(action), float(self.time + 10 * action), terminated, self.time >= self.limit, {}

    def _obs(self, action):
        return np.array([self.tag, self.time, action], np.float32)


class Lottery(Telling):
    """Episodes of one step that pay their tag: what an episode gives is the seed's doing alone."""

    def __init__(self):
        super().__init__(ends=1)

    def step(self, action):
        obs, _, *rest = super().step(action)
        return obs, self.tag, *rest


class Failing(Telling):
    """Fails at one step of its life: in the way that is asked for."""

    def __init__(self, how: str, at: int = 5, **kwargs):
        super().__init__(**{"limit": 4, **kwargs})
        self.how, self.at, self.lived = how, at, 0

    def step(self, action):
        self.lived += 1
        obs, reward, terminated, truncated, info = super().step(action)
        if self.lived != self.at:
            return obs, reward, terminated, truncated, info
        match self.how:
            case "raise":
                raise RuntimeError("the motor is on fire")
            case "nan":
                obs[1] = np.nan
            case "shape":
                obs = obs[:2]
            case "range":
                obs[0] = 2000.0
            case "reward":
                reward = float("inf")
            case "four values":
                return obs, reward, terminated, info
            case "exit":
                raise SystemExit(3)
            case "unprintable":
                raise Unprintable
            case "surrogate":
                raise RuntimeError("no \udc80\nbyte")
            case "interrupt":
                raise KeyboardInterrupt
            case "die":
                os._exit(7)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(3600)
        return obs, reward, terminated, truncated, info


class Unprintable(Exception):
    """Has no message that could be shown."""

    def __str__(self):
        raise ValueError("no words")


class FailingAtClose(Telling):
    """Works until it is closed."""

    def close(self):
        raise RuntimeError("the door is stuck")


class FailingOnce(Failing):
    """Of all that live in whatever processes, only one fails: the one that comes to its fifth step as the `due`-th.

    They count by the length of a file.
    """

    def __init__(self, how: str, file: str, due: int = 1):
        super().__init__(how, at=5)
        self.file, self.due = file, due

    def step(self, action):
        if self.lived == self.at - 1:
            with open(self.file, "a+") as came:
                came.write(".")
                if came.tell() != self.due:
                    self.at = FOREVER
        return super().step(action)


class Masked(Telling):
    """Which of four actions is allowed changes with time: only one of them, time modulo 4."""

    def __init__(self, *, in_info: bool, empty_at: int = -1, **kwargs):
        super().__init__(num_actions=4, **{"limit": 6, **kwargs})
        self.in_info, self.empty_at = in_info, empty_at
        if not in_info:
            mask = gymnasium.spaces.MultiBinary(4)
            self.observation_space = gymnasium.spaces.Dict({"it": self.observation_space, "action_mask": mask})

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        return self._masked(obs, info)

    def step(self, action):
        assert action == self.time % 4, "a masked action was taken"
        obs, *rest, info = super().step(action)
        obs, info = self._masked(obs, info)
        return obs, *rest, info

    def _masked(self, obs, info):
        mask = np.zeros(4, np.int8)
        if self.time != self.empty_at:
            mask[self.time % 4] = 1
        return (obs, {**info, "action_mask": mask}) if self.in_info else ({"it": obs, "action_mask": mask}, info)


def telling(**kwargs):
    """A picklable way to build one: for worker processes."""
    return Telling(**kwargs)
