"""A vector environment in which something fails is built anew where that is asked for: all its episodes were cut."""

import functools
import multiprocessing

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from autoreset_for_tests import IN_A_STEP, MODES, of_mode
from host_envs_for_tests import Failing, Telling
from host_rollouts_for_tests import ARM, CONFIG
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.task import VectorTask
from thrust_rl.training.train import train

SOUND = functools.partial(Telling, limit=4)
ACTIONS = np.zeros(2, int)


class FirstFails:
    """Builds vectors of two environments, of which the second fails in the first one that is built."""

    def __init__(self, build, how="raise", *, later=SOUND):
        self.build, self.how, self.later, self.built = build, how, later, 0

    def __call__(self, num_envs):
        if num_envs == 1:  # to ask for the spaces
            return self.build([SOUND])
        self.built += 1
        fails = functools.partial(Failing, self.how, at=5, limit=9)
        return self.build([SOUND, fails if self.built == 1 else self.later])


def stepped(make_vector, steps):
    envs = VectorTask("test", make_vector, on_env_error="restart").start(2)
    try:
        return envs.begin(0), [envs.step(ACTIONS) for _ in range(steps)], envs.restarts()
    finally:
        envs.close()


@pytest.mark.parametrize("how", ["raise", "nan"])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_episode_was_cut_where_it_was_last_seen_and_others_begin(mode, how):
    """The first environment ended at step 4; where a reset takes a step, that is step 5, and no transition."""
    first, steps, restarts = stepped(FirstFails(functools.partial(of_mode, mode=mode), how), 9)
    before, failed, after = steps[3], steps[4], steps[5:]
    assert failed.result.truncated.tolist() == [mode != IN_A_STEP, True]
    assert not failed.result.terminated.any() and not failed.result.reward.any() and failed.episode_start.all()
    np.testing.assert_array_equal(failed.result.obs, before.frames.obs)
    assert failed.valid == () if mode != IN_A_STEP else failed.valid.tolist() == [False, True]
    assert failed.frames.obs[:, 1].tolist() == [0.0, 0.0]
    assert not set(failed.frames.obs[:, 0]) & set(first.obs[:, 0])  # drawn anew
    assert [step.frames.obs[0, 1] for step in after[:3]] == [1.0, 2.0, 3.0]
    assert after[3].result.truncated.all() and restarts == 2
    if mode == IN_A_STEP:
        assert all(step.valid.all() for step in after)


def test_one_that_fails_right_after_is_built_again_and_no_reset_is_pending():
    """Twice in a row, so the second failure meets environments that have just begun."""
    make_vector = FirstFails(functools.partial(of_mode, mode=IN_A_STEP))
    sound = make_vector.build

    def build(envs):
        again = make_vector.built == 2
        return sound([envs[0], functools.partial(Failing, "raise", at=1)] if again else envs)

    make_vector.build = build
    _, steps, restarts = stepped(make_vector, 7)
    assert restarts == 4
    assert steps[4].valid.tolist() == [False, True] and steps[5].valid.all() and steps[5].result.truncated.all()
    assert not set(steps[4].frames.obs[:, 0]) & set(steps[5].frames.obs[:, 0])


def test_one_that_fails_at_its_first_reset_is_built_again():
    """As every evaluation begins with one."""

    class Shy(Telling):
        def reset(self, *, seed=None, options=None):
            if make_vector.built == 1:
                raise RuntimeError("not yet")
            return super().reset(seed=seed)

    make_vector = FirstFails(lambda envs: of_mode([envs[0], Shy][: len(envs)], AutoresetMode.NEXT_STEP))
    _, steps, restarts = stepped(make_vector, 3)
    assert restarts == 2 and [step.frames.obs[1, 1] for step in steps] == [1.0, 2.0, 3.0]


def test_what_always_fails_is_given_up():
    always = functools.partial(Failing, "raise", at=1)
    make_vector = FirstFails(functools.partial(of_mode, mode=AutoresetMode.DISABLED), later=always)
    said = "^environment 1 at step 8: it raised RuntimeError: .*, as 3 times before: it is not built again$"
    with pytest.raises(EnvError, match=said):
        stepped(make_vector, 9)


def test_what_cannot_be_built_again_says_so():
    def broken():
        raise RuntimeError("only one licence")

    make_vector = FirstFails(functools.partial(of_mode, mode=AutoresetMode.DISABLED), later=broken)
    said = (
        "^environment 1 at step 5: .* on fire; it could not be built again: it raised RuntimeError: only one licence$"
    )
    with pytest.raises(EnvError, match=said):
        stepped(make_vector, 9)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # as which Gymnasium prints the traceback
@pytest.mark.parametrize("how", ["raise", "die"])
def test_training_goes_on_and_counts_them(how):
    """Also where a process dies; of that nothing is left."""
    build = functools.partial(AsyncVectorEnv, context="forkserver", autoreset_mode=AutoresetMode.SAME_STEP)

    def padded(envs):
        return build([*envs, SOUND] if len(envs) == 2 else envs)

    make_vector = FirstFails(padded, how)
    task = VectorTask("test", lambda n: make_vector(2 if n == 3 else n), on_env_error="restart")
    [result] = train(task, ARM, CONFIG)
    assert result.env_restarts == 3 and make_vector.built == 2
    assert np.isfinite(result.curve.mean_return).all()
    assert not multiprocessing.active_children()
