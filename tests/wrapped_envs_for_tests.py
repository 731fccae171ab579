"""Environments that a module has wrapped in observation models, as a user would."""

import gymnasium

from host_envs_for_tests import Telling
from thrust_rl.envs.partial import PartialObservation


class Secretive(gymnasium.Wrapper):
    """Does not tell how it was built."""


def bare():
    return Telling(limit=4)


def hidden():
    return PartialObservation(PartialObservation(bare(), "mask:1"), "noise:0.1")


def limited():
    """Something else is around it, which tells how it was built."""
    return gymnasium.wrappers.TimeLimit(hidden(), 3)


def secretive():
    return Secretive(hidden())


gymnasium.register("HiddenTelling-v0", hidden, max_episode_steps=3)
