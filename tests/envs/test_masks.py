"""Action masks: obeyed in every form and every autoreset mode; what is wrong with one is said of it, with its place."""

import functools

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from autoreset_for_tests import IN_A_STEP, MODES, RESETS_TAKE_NO_STEP, stepped
from host_envs_for_tests import FOREVER, Masked, Telling
from host_rollouts_for_tests import collected
from thrust_rl.config import ConfigError
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.pool import EnvPool
from thrust_rl.envs.task import HostTask, VectorTask

WAYS = [None, *MODES]  # one by one, and side by side
TWO_CHOICES = MultiDiscrete([2, 3])
ALL = np.ones(5, np.int8)


class Saying(Telling):
    """Reports its masks by a function of the time of the episode; None reports none."""

    def __init__(self, mask_at, *, actions=TWO_CHOICES, in_info=True, limit=4):
        super().__init__(limit=limit)
        self.action_space, self.mask_at, self.in_info = actions, mask_at, in_info
        if not in_info:
            mask = Box(-1.0, 1.0, (5,), np.float64)
            self.observation_space = Dict({"it": self.observation_space, "action_mask": mask})

    def reset(self, *, seed=None, options=None):
        return self._said(*super().reset(seed=seed))

    def step(self, action):
        obs, _, *rest, info = super().step(0)
        obs, info = self._said(obs, info)
        return obs, float(self.time), *rest, info

    def _said(self, obs, info):
        mask = self.mask_at(self.time)
        if not self.in_info:
            return {"it": obs, "action_mask": mask}, info
        return obs, info if mask is None else {**info, "action_mask": mask}


def at(when, mask, otherwise=ALL):
    """A mask at one time of an episode, and another one at all others."""
    return lambda time: mask if time == when else otherwise


def driven(make_env, way, steps=4):
    """Two environments, stepped until something is wrong."""
    envs = stepped(make_env, way).start(2)
    try:
        envs.begin(0)
        return [envs.step(np.zeros((2, 2), int)) for _ in range(steps)]
    finally:
        envs.close()


FAULTS = {
    "one choice": (np.array([1, 0, 0, 0, 0]), r"allows none of the 3 alternatives of choice 1 \(places 2 to 4"),
    "the other": (np.array([0, 0, 1, 0, 0]), r"allows none of the 2 alternatives of choice 0 \(places 0 to 1"),
    "too long": (np.ones(6, np.int8), r"has shape \(6,\): it must be 5 .*, one for every alternative \(2 \+ 3\)"),
    "too short": (np.ones(2, np.int8), r"has shape \(2,\): it must be 5 numbers"),
    "not finite": (np.array([1, 1, 1, np.nan, 1]), r"is not finite: \[1.0, 1.0, 1.0, nan, 1.0\]"),
    "text": (np.array(list("10110")), "has dtype <U1: it must be 5 numbers or booleans"),
    "objects": (np.array([1, None, 1, 1, 1], object), "has dtype object: it must be 5 numbers or booleans"),
    "long tuple": ((np.ones(2, np.int8), np.ones(4, np.int8)), r"has shape \(6,\): it must be 5 numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("in_info", [True, False])
def test_what_is_wrong_with_a_mask_is_said_of_the_mask(fault, in_info):
    mask, said = FAULTS[fault]
    with pytest.raises(EnvError, match=f"^environment 0 at step 3: its action mask {said}"):
        driven(lambda: Saying(at(3, mask), in_info=in_info), None)


@pytest.mark.parametrize("fault", ["one choice", "not finite", "text", "long tuple"])
@pytest.mark.parametrize("way", AutoresetMode)
def test_and_of_vector_environments(fault, way):
    mask, said = FAULTS[fault]
    envs = VectorTask("two", lambda n: one_differs(at(3, mask, (ALL[:2], ALL[2:])), way, n)).start(2)
    envs.begin(0)
    with pytest.raises(EnvError, match=f"^environment 1 at step 3: its action mask {said}"):
        [envs.step(np.zeros((2, 2), int)) for _ in range(3)]


def one_differs(mask_at, mode, num_envs):
    """A vector environment whose second environment reports other masks; in objects, for they may differ in length."""
    makes = [lambda: Saying(lambda time: (ALL[:2], ALL[2:])), lambda: Saying(mask_at)][:num_envs]
    return SyncVectorEnv(makes, autoreset_mode=mode)


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_that_goes_missing_is_a_fault(way):
    with pytest.raises(EnvError, match="^environment 0 at step 3: its info has no action_mask, .* at every reset and"):
        driven(lambda: Saying(at(3, None)), way)


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_that_first_turns_up_later_is_a_fault(way):
    said = "its info has an action_mask, and that of its first reset had none: report it at every reset and step"
    with pytest.raises(EnvError, match=f"^environment 0 at step 2: {said}"):
        driven(lambda: Saying(at(2, ALL, None)), way)


class SecondTime(Saying):
    """Its first episode is without a mask, the others are not."""

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.mask_at = at(FOREVER, None)
        return obs, info

    def step(self, action):
        obs, *rest, info = super().step(action)
        return obs, *rest, {}


@pytest.mark.parametrize("way", [None, *RESETS_TAKE_NO_STEP])
def test_or_at_a_later_reset(way):
    with pytest.raises(EnvError, match="^environment 0 at step 4: its info has an action_mask, and"):
        driven(lambda: SecondTime(lambda time: None), way)


@pytest.mark.parametrize("way", WAYS)
def test_who_says_nothing_of_masks_is_left_alone(way):
    assert len(driven(lambda: Saying(lambda time: None), way, steps=9)) == 9


def test_loops_by_hand_may_read_masks_from_the_info_as_they_like():
    pool = EnvPool(lambda: Saying(at(2, ALL, None)), 2, seed=0)
    pool.reset()
    results = [pool.step(np.zeros((2, 2), int)) for _ in range(2)]
    assert "action_mask" not in results[0].info and len(results[1].info["action_mask"]) == 2


@pytest.mark.parametrize("last", [None, np.zeros(4, np.int8)], ids=["none", "empty"])
@pytest.mark.parametrize("way", WAYS)
def test_nobody_acts_on_a_final_frame_so_its_mask_may_be_missing_or_empty(way, last):
    mask_at = at(4, last, np.ones(4, np.int8))
    (window,) = collected(stepped(lambda: Saying(mask_at, actions=Discrete(4)), way))
    assert np.isfinite(window.rollout.log_prob).all()
    assert window.rollout.truncated.sum() == 3 * (3 if way == IN_A_STEP else 4)


FORMS = {
    "flat": np.array([0, 1, 1, 0, 1], np.int8),
    "tuple": (np.array([0, 1], np.int8), np.array([1, 0, 1], np.int8)),  # as MultiDiscrete.sample(mask=...) takes it
    "list": [np.array([0, 1], bool), np.array([1, 0, 1], bool)],
    "numbers": [0, 1, 1, 0, 1],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_every_form_of_a_mask_over_several_choices_is_the_same_mask(form, way):
    for hosted in driven(lambda: Saying(lambda time: FORMS[form], limit=FOREVER), way):
        assert hosted.frames.obs["action_mask"].tolist() == [[False, True, True, False, True]] * 2


class Natively(SyncVectorEnv):
    """Masks of all environments as one tuple, an array `[env, alternative]` for every choice."""

    def step(self, actions):
        *rest, info = super().step(actions)
        return *rest, self._told(info)

    def reset(self, **options):
        obs, info = super().reset(**options)
        return obs, self._told(info)

    def _told(self, info):
        del info["_action_mask"]
        return {**info, "action_mask": tuple(np.split(info["action_mask"], [2], axis=1))}


def test_a_vector_environment_may_give_its_masks_choice_by_choice():
    make_env = functools.partial(Saying, lambda time: FORMS["flat"], limit=FOREVER)
    envs = VectorTask("natively", lambda n: Natively([make_env] * n)).start(2)
    envs.begin(0)
    frames = envs.step(np.zeros((2, 2), int)).frames
    assert frames.obs["action_mask"].tolist() == [[False, True, True, False, True]] * 2


@pytest.mark.parametrize("mode", MODES)
def test_vector_environments_never_meet_a_masked_action(mode):
    """The environments themselves assert that only the one allowed action comes."""
    (window,) = collected(stepped(functools.partial(Masked, in_info=True, limit=5), mode))
    rollout = window.rollout
    acted_on = np.ones_like(rollout.truncated) if isinstance(rollout.valid, tuple) else rollout.valid
    time = rollout.obs.obs["obs"][..., 1]
    np.testing.assert_array_equal(rollout.action[acted_on], time[acted_on] % 4)
    np.testing.assert_allclose(rollout.log_prob[acted_on], 0.0, atol=1e-6)  # one action alone has probability 1


@pytest.mark.parametrize("mode", MODES)
def test_their_empty_mask_names_environment_and_step(mode):
    with pytest.raises(EnvError, match="^environment 0 at step 3: its action mask allows no action"):
        collected(stepped(functools.partial(Masked, in_info=True, empty_at=3), mode))


@pytest.mark.parametrize("actions", [MultiBinary(3), Box(-1.0, 1.0, (2,))], ids=str)
@pytest.mark.parametrize("way", [None, AutoresetMode.SAME_STEP])
def test_actions_that_cannot_be_masked_say_what_could(actions, way):
    said = r"cannot be masked: drop it, or make the actions Discrete or MultiDiscrete \(a switch is a choice of 2\)"
    with pytest.raises(ConfigError, match=said):
        stepped(lambda: Saying(lambda time: ALL, actions=actions), way).start(1)


def test_a_mask_over_one_choice_has_no_choice_to_name():
    with pytest.raises(EnvError, match="^environment 0 at step 2: its action mask allows no action"):
        envs = HostTask("one", lambda: Saying(at(2, 0 * ALL), actions=Discrete(5))).start(1)
        envs.begin(0)
        [envs.step(np.zeros(1, int)) for _ in range(2)]
