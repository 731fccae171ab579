"""What three environments show over their episodes, whoever steps them; environments that show anything."""

import copy

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

HIDING = "flicker:0.3|flicker:0.4,3|drop:0.3|delay:1"
SEEN = {  # spaces, and what is around them
    "box": (Box(-9.0, 9.0, (3,), np.float32), f"mask:b|noise:0.2|{HIDING}"),
    "dict": (
        Dict(x=Box(-9.0, 9.0, (3,)), y=Discrete(4), action_mask=MultiBinary(2)),
        f"mask:y|{HIDING}|mask:1|noise:1",
    ),
    "discrete": (Discrete(5, start=-1), HIDING),
    "image": (Box(0, 255, (9, 8, 3), np.uint8), HIDING),
}


class Showing(gymnasium.Env):
    """Draws what it shows, sometimes blank; an episode terminates or is truncated after some steps."""

    metadata = {"coordinates": ("a", "b", "c")}
    action_space = Discrete(2)

    def __init__(self, space):
        self.observation_space = copy.deepcopy(space)  # draws are its own

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self._seen()

    def step(self, action):
        ends = self.np_random.random(2) < 0.15
        return self._seen()[0], float(action), bool(ends[0]), bool(ends[1]), self._seen()[1]

    def _seen(self):
        obs = self.observation_space.sample()
        if isinstance(obs, dict):
            obs["action_mask"] = np.array([1, self.np_random.integers(2)], np.int8)
        return obs, {"blank": True} if self.np_random.random() < 0.2 else {}


def lives(task, steps=60):
    """Of each of three environments, all that it shows; what only a reset gives in steps that it takes is left out."""
    envs, seen, count = task.start(3), [[] for _ in range(3)], np.zeros(3, int)

    def show(i, frames, *rest):
        obs = [leaf[i] for leaf in jax.tree.leaves(frames.obs)]
        seen[i].append((*obs, frames.info["blank"][i], *rest))

    try:
        first = envs.begin(7)
        for i in range(3):
            show(i, first)
        while count.min() < steps:
            hosted = envs.step(count % 2)
            result, valid = hosted.result, np.broadcast_to(hosted.valid if len(hosted.valid) else True, 3)
            for i in range(3):
                if valid[i]:
                    show(i, result, result.reward[i], result.terminated[i], result.truncated[i])
                if hosted.episode_start[i]:
                    show(i, hosted.frames)
            count += valid
        return seen
    finally:
        envs.close()


def assert_same(mine, theirs, least=60):
    for life, other in zip(mine, theirs, strict=True):
        length = min(len(life), len(other))
        assert length >= least
        jax.tree.map(np.testing.assert_array_equal, life[:length], other[:length])
