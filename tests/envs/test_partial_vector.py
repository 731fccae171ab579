"""A vector environment seen through observation models shows what separate environments show, however it resets."""

import dataclasses
import functools

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from autoreset_for_tests import MODES, vector_of
from host_envs_for_tests import Telling
from shown_for_tests import SEEN, Showing, assert_same, lives
from thrust_rl.config import ConfigError
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.partial import PartialObservation, observed
from thrust_rl.envs.partial_vector import PartialVectorObservation
from thrust_rl.envs.registry import make
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.envs.task import HostTask, VectorTask
from thrust_rl.envs.vector import CompiledVectorEnv

PHYSICS = dataclasses.replace(make("CartPole-v1"), max_steps=15)
ONES = np.ones(2, int)


def wrapped(make_env, mode, *observe):
    """All in one wrapper around the vector, or in one each."""

    def make_vector(num_envs):
        vector = vector_of(make_env, mode, num_envs)
        return functools.reduce(PartialVectorObservation, observe, vector)

    return VectorTask("together", make_vector)


@functools.cache
def apart(what):
    space, observe = SEEN[what]
    return lives(HostTask("apart", lambda: PartialObservation(Showing(space), observe)))


EVERY_MODE = [(what, mode) for what in SEEN for mode in MODES if what == "box" or mode not in ("dense", "sparse")]


@pytest.mark.parametrize(("what", "mode"), EVERY_MODE, ids=str)
def test_in_every_autoreset_mode_it_shows_what_separate_environments_show(what, mode):
    """F9: frames, blanks, action masks, rewards and ends, to the last bit; final frames too."""
    space, observe = SEEN[what]
    mine, theirs = lives(wrapped(lambda: Showing(space), mode, observe)), apart(what)
    assert_same(mine, theirs)


class DenseTree(VectorWrapper):
    """Final observations batched as observations are, with those of others where nothing ended."""

    def step(self, actions):
        obs, *rest, info = self.env.step(actions)
        if "final_obs" in info:
            rows = list(iterate(self.observation_space, obs))
            for i in np.flatnonzero(info["_final_obs"]):
                rows[i] = info["final_obs"][i]
            empty = create_empty_array(self.single_observation_space, self.num_envs)
            info = {**info, "final_obs": concatenate(self.single_observation_space, rows, empty)}
        return obs, *rest, info


@pytest.mark.parametrize("what", ["dict", "discrete"])
def test_final_observations_may_come_in_a_batch(what):
    space, observe = SEEN[what]

    def make_vector(num_envs):
        vector = DenseTree(vector_of(lambda: Showing(space), AutoresetMode.SAME_STEP, num_envs))
        return PartialVectorObservation(vector, observe)

    assert_same(lives(VectorTask("dense", make_vector)), apart(what))


@pytest.mark.parametrize("what", ["box", "dict"])
def test_arrays_may_be_written_into_again(what):
    space, observe = SEEN[what]
    build = functools.partial(SyncVectorEnv, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    task = VectorTask("reused", lambda n: PartialVectorObservation(build([lambda: Showing(space)] * n), observe))
    assert_same(lives(task), apart(what))


def flickering():
    """Shows through a model of its own."""
    return PartialObservation(Telling(limit=5), "flicker:0.5")


def compiled():
    return StatefulEnv(observed(PHYSICS, "flicker:0.5"))


@pytest.mark.parametrize("make_env", [flickering, compiled])
def test_models_inside_count_so_that_none_draws_what_another_draws(make_env):
    """In one wrapper or in several, around what steps its environments itself or has processes do it."""
    text = "flicker:0.4|flicker:0.3"
    theirs = lives(HostTask("apart", lambda: PartialObservation(make_env(), text)), 40)
    several = wrapped(make_env, AutoresetMode.SAME_STEP, *text.split("|"))
    processes = functools.partial(AsyncVectorEnv, context="forkserver")
    in_processes = VectorTask("processes", lambda n: PartialVectorObservation(processes([make_env] * n), text))
    tasks = [wrapped(make_env, AutoresetMode.NEXT_STEP, text), several]
    for task in tasks if make_env is compiled else [*tasks, in_processes]:
        assert_same(lives(task, 40), theirs, least=40)


@pytest.mark.parametrize("first", ["mask:cart_velocity", "flicker:0.4"])
def test_around_the_librarys_own_vector_it_is_the_vector_of_the_environment_with_the_models(first):
    """On the streams of that, seeded or not; the physics are compiled twice, which may round a last bit differently."""
    inner, text = observed(PHYSICS, first), "noise:0.1|flicker:0.3|delay:1"
    inside = CompiledVectorEnv(observed(inner, text), 3, seed=4)
    outside = PartialVectorObservation(CompiledVectorEnv(inner, 3, seed=4), text)
    for seed in (None, 5, None):
        for ours, theirs in zip(walked(outside, seed), walked(inside, seed), strict=True):
            jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), ours, theirs)


def walked(vector, seed, steps=40):
    """All that it gives; final frames as arrays."""
    seen = [vector.reset(seed=seed)]
    for t in range(steps):
        obs, *rest, info = vector.step(np.full(3, t // 3 % 2))
        final = {i: info["final_obs"][i] for i in np.flatnonzero(info.get("_final_obs", []))}
        seen.append((obs, *rest, {**info, "final_obs": final}))
    assert any(outcome[-1]["final_obs"] for outcome in seen[1:])
    return seen


def stepped(vector, steps=4):
    """The frames of either environment, and which are blank."""
    seen = [vector.step(ONES) for _ in range(steps)]
    return [(np.array([out[0][i] for out in seen]), [out[4]["blank"][i] for out in seen]) for i in range(2)]


def two(mode=AutoresetMode.DISABLED):
    return PartialVectorObservation(vector_of(Telling, mode, 2), "noise:0.3|delay:1|flicker:0.4")


def assert_equal(mine, theirs):
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


def test_seeds_are_those_of_gymnasium():
    vector, after = two(), {}
    for seeds in (5, (5, 6), (6, 5), (None, 5), None):
        vector.reset(seed=list(seeds) if isinstance(seeds, tuple) else seeds)
        after[seeds] = stepped(vector)
    assert_equal(after[5], after[5, 6])
    assert_equal(after[6, 5], after[5, 6][::-1])
    assert_equal(after[None, 5][1], after[5][0])
    fives = [after[5][0], after[6, 5][0], after[None, 5][0], *after[None]]
    noise = [shown[:, 1] for shown, _ in fives]  # of the time, which all of them show
    assert len({tuple(row[row != 0].tolist()) for row in noise}) == 5, "without a seed a stream goes on"


def test_without_any_seed_a_stream_begins_at_random():
    first, second = (PartialVectorObservation(vector_of(Telling, AutoresetMode.DISABLED, 2), "noise:1") for _ in "12")
    times = np.array([vector.reset()[0][:, 1] for vector in (first, second)])
    assert len(np.unique(times)) == 4


def test_a_reset_of_some_leaves_the_others_as_they_were_shown():
    vector, twin = two(), two()
    for each in (vector, twin):
        each.reset(seed=1)
        stepped(each)
    before, *_, told_before = vector.step(ONES)
    twin.step(ONES)
    after, told = vector.reset(options={"reset_mask": np.array([True, False])})
    assert_equal((after[1], told["blank"][1]), (before[1], told_before["blank"][1]))
    mine, theirs = stepped(vector), stepped(twin)
    assert_equal(mine[1], theirs[1])
    assert (mine[0][0] != theirs[0][0]).any()


def test_nothing_is_stepped_before_it_has_begun():
    with pytest.raises(ValueError, match="call reset\\(\\) to begin every environment"):
        two().step(ONES)


@pytest.mark.parametrize("what", SEEN)
def test_spaces_hold_what_is_shown(what):
    space, observe = SEEN[what]
    vector = PartialVectorObservation(vector_of(lambda: Showing(space), AutoresetMode.SAME_STEP, 2), observe)
    assert vector.single_observation_space == PartialObservation(Showing(space), observe).observation_space
    assert vector.observation_space == batch_space(vector.single_observation_space, 2)
    obs, info = vector.reset(seed=0)
    assert vector.observation_space.contains(obs) and info["blank"].shape == info["_blank"].shape == (2,)


class Odd(VectorEnv):
    """A class of one's own, whose environments never end; it shows so many rows."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "coordinates": ("first", "second")}
    single_observation_space, single_action_space = Box(0.0, 1.0, (2,)), Discrete(2)

    def __init__(self, num_envs, rows=2):
        self.num_envs, self.rows = num_envs, rows
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(self, *, seed=None, options=None):
        return np.ones((self.num_envs, 2), np.float32), {}

    def step(self, actions):
        return np.ones((self.rows, 2), np.float32), *np.zeros((3, self.num_envs)), {}


NAMED = {
    "of one that is asked": (
        functools.partial(gymnasium.make_vec, "Pendulum-v1", vectorization_mode="sync"),
        "velocity",
    ),
    "of its spec": (functools.partial(gymnasium.make_vec, "CartPole-v1"), "cart_velocity"),
    "of the library's own": (functools.partial(gymnasium.make_vec, "thrust/CartPole-v1"), "cart_velocity"),
    "stated by one": (
        lambda num_envs: vector_of(lambda: Showing(SEEN["box"][0]), AutoresetMode.DISABLED, num_envs),
        "b",
    ),
    "stated by the vector": (Odd, "second"),
}


@pytest.mark.parametrize("what", NAMED)
def test_coordinates_have_names(what):
    make_vector, name = NAMED[what]
    bare = make_vector(num_envs=2)
    shown = PartialVectorObservation(bare, f"mask:{name}")
    size = bare.single_observation_space.shape[0]
    assert shown.single_observation_space.shape == (size - 1,) and name not in shown.names
    one = PartialVectorObservation(VectorWrapper(shown), f"show:{shown.names[-1]}")
    assert one.single_observation_space.shape == (1,) and one.names == shown.names[-1:]


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="asks for coordinate 7"):
        PartialVectorObservation(Odd(2), "mask:7")


def test_another_number_of_observations_is_a_fault():
    envs = VectorTask("odd", lambda n: PartialVectorObservation(Odd(n, rows=3), "flicker:0")).start(2)
    envs.begin(0)
    with pytest.raises(EnvError, match="at step 1: it gave 3 observations for 2 environments"):
        envs.step(ONES)
