"""Callables that build vector environments, as a module of a user's would."""

import functools

import gymnasium
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from autoreset_for_tests import vector_of
from host_envs_for_tests import Failing, Telling
from host_rollouts_for_tests import Mixed


def vectors(num_envs, mode="NEXT_STEP", limit=4):
    make_env = functools.partial(Telling, limit=limit)
    return vector_of(make_env, AutoresetMode.__members__.get(mode, mode), num_envs)


def mixed(num_envs, mode):
    return vector_of(Mixed, AutoresetMode[mode], num_envs)


def failing(num_envs):
    return AsyncVectorEnv(
        [*[Telling] * (num_envs - 1), functools.partial(Failing, "raise")],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def without_a_number():
    return vectors(2)


def of_one(num_envs=1):
    return Telling()


class Alone(Telling):
    """A single environment, whatever it takes."""

    def __init__(self, num_envs=3):
        super().__init__(limit=num_envs)


def broken(num_envs):
    raise RuntimeError("no motor")


def registered(num_envs):
    return gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="vector_entry_point")


def stated(num_envs):
    vector = vectors(num_envs)
    vector.metadata = {**vector.metadata, "return_range": (-1, 2)}
    return vector


gymnasium.register("OnlyVector-v0", vector_entry_point=vectors)
gymnasium.register("BothWays-v0", entry_point=Telling, vector_entry_point=vectors)


def listed(num_envs, limits):
    return vectors(num_envs, limit=limits[0])


def listed_one(limits):
    return Telling(limit=limits[0])
