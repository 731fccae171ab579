"""Environments made as MiniGrid's are, of a module of one's own."""

import gymnasium
from minigrid.envs.gotoobject import GoToObjectEnv
from minigrid.wrappers import RGBImgPartialObsWrapper


class GoToObject(GoToObjectEnv):
    """With the size that MiniGrid's own of that name has."""

    def __init__(self, **params):
        super().__init__(size=6, numObjs=2, **params)


def mine():
    return gymnasium.wrappers.TimeLimit(GoToObject(), 50)


def pictures():
    return RGBImgPartialObsWrapper(GoToObject(), tile_size=4)


gymnasium.register("Mine-v0", GoToObject, max_episode_steps=50)
