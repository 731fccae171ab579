"""A vector environment in which something fails ends the run, and says at which step and, where known, in which."""

import functools
import multiprocessing

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from autoreset_for_tests import IN_A_STEP, MODES, of_mode
from host_envs_for_tests import Failing, Telling
from thrust_rl.envs.faults import EnvError
from thrust_rl.envs.partial_vector import PartialVectorObservation
from thrust_rl.envs.task import VectorTask

ACTIONS = np.zeros(2, int)


def second_fails(kind, how, mode, num_envs):
    envs = [Telling, functools.partial(Failing, how)][:num_envs]
    return kind(envs, autoreset_mode=mode)


def stepped(make_vector, steps=5):
    envs = VectorTask("test", make_vector).start(2)
    try:
        envs.begin(0)
        return [envs.step(ACTIONS) for _ in range(steps)]
    finally:
        envs.close()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_what_one_raises_names_environment_and_step(mode):
    late = 6 if mode == IN_A_STEP else 5  # a reset has taken a step
    said = f"^environment 1 at step {late}: it raised RuntimeError: the motor is on fire$"
    with pytest.raises(EnvError, match=said):
        stepped(lambda n: of_mode([Telling, functools.partial(Failing, "raise")][:n], mode), steps=6)


def test_what_a_vector_of_ones_own_raises_is_said_to_be_nobodys():
    def burn(told):
        raise RuntimeError("the motor is on fire")

    said = r"^one of 2 environments at step 3: .* on fire \(Giving does not tell which of them it was\)$"
    with pytest.raises(EnvError, match=said):
        stepped(functools.partial(Giving, change=burn))


class Growing(Telling):
    """Its observations have a number more from its third step on."""

    def step(self, action):
        obs, *rest = super().step(action)
        return np.append(obs, 0.0) if self.time >= 3 else obs, *rest


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_an_observation_of_another_shape_names_environment_and_step(kind):
    with pytest.raises(EnvError, match="^environment 0 at step 3: it.* shape"):
        stepped(lambda n: kind([Growing, Telling][:n]))
    assert not multiprocessing.active_children()


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # as which Gymnasium prints the traceback
@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("raise", "it raised RuntimeError: the motor is on fire"),
        ("die", "its process ended with exit status 7"),
        ("killed", "its process ended with exit status -9"),
        ("nan", "it gave an observation that is not finite"),
    ],
)
def test_where_it_is_known_it_is_said_and_no_process_is_left(how, fault):
    with pytest.raises(EnvError, match=f"^environment 1 at step 5: {fault}"):
        stepped(functools.partial(second_fails, AsyncVectorEnv, how, AutoresetMode.SAME_STEP))
    assert not multiprocessing.active_children()


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_of_several_that_raise_at_once_all_are_named():
    def make_vector(num_envs):
        return AsyncVectorEnv([functools.partial(Failing, "raise")] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)

    with pytest.raises(EnvError, match="^environments 0, 1 at step 5 all failed; one of them: it raised RuntimeError"):
        stepped(make_vector)
    assert not multiprocessing.active_children()


def test_what_fails_at_a_reset_names_the_step():
    class Tired(Telling):
        def reset(self, *, seed=None, options=None):
            if self.time:
                raise RuntimeError("enough")
            return super().reset(seed=seed)

    def make_vector(num_envs):
        return SyncVectorEnv([functools.partial(Tired, ends=3)] * num_envs, autoreset_mode=AutoresetMode.DISABLED)

    with pytest.raises(EnvError, match="^environment 0 at step 3: it raised RuntimeError: enough"):
        stepped(make_vector)


class Giving(VectorEnv):
    """Two environments that end at every third step, and what they say is changed by a function."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    single_observation_space = gymnasium.spaces.MultiDiscrete([9, 9])
    single_action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, num_envs, change):
        self.num_envs, self.change, self.time = num_envs, change, 0

    def reset(self, *, seed=None, options=None):
        return np.zeros((self.num_envs, 2), int), {}

    def step(self, actions):
        self.time += 1
        obs, over = np.full((self.num_envs, 2), float(self.time)), np.full(self.num_envs, self.time % 3 == 0)
        told = [obs, np.ones(self.num_envs), over, ~over & over, {"final_obs": obs.copy()} if over.any() else {}]
        if self.time == 3:
            self.change(told)
        return tuple(told)


def changed(index, value):
    def change(told):
        told[index] = value

    return change


def number(told, value, *, final=False):
    (told[4]["final_obs"] if final else told[0])[1, 0] = value


TOLD = {
    "no choice": (functools.partial(number, value=0.5), r"environment 1 at step 3: .*outside its space: \[0.5, 3.0\]"),
    "too large": (functools.partial(number, value=9), r"environment 1 at step 3: .*outside its space: \[9, 3\]"),
    "nan": (functools.partial(number, value=np.nan), r"environment 1 at step 3: .*not finite: \[nan, 3.0\]"),
    "final": (functools.partial(number, value=0.5, final=True), r"environment 1 at step 3: .*outside.*\[0.5, 3.0\]"),
    "shape": (changed(0, np.zeros((2, 3))), r"environment 0 at step 3: .*shape \(3,\): its space says \(2,\)"),
    "too many": (changed(0, np.zeros((3, 2))), "vector environment at step 3: it gave 3 observations for 2 env"),
    "reward": (changed(1, np.array([1.0, np.inf])), "environment 1 at step 3: its reward is inf"),
    "rewards": (changed(1, np.ones(3)), r"vector environment at step 3: its rewards have shape \(3,\)"),
    "no final": (changed(4, {}), "vector environment at step 3: episodes ended, but there is no final_obs"),
    "no finals": (changed(4, {"final_obs": np.array([None, None])}), r"environment 0 at step 3: .*shape \(\)"),
}


@pytest.mark.parametrize("what", ["no choice", "too large", "nan", "final", "shape"])
def test_behind_observation_models_too(what):
    """They look at a frame before anybody else does."""
    change, _ = TOLD[what]

    def make_vector(num_envs):
        return PartialVectorObservation(Giving(num_envs, change), "flicker:0.0")

    with pytest.raises(EnvError, match="^environment [01] at step 3: it "):
        stepped(make_vector)


@pytest.mark.parametrize("what", TOLD)
def test_what_does_not_fit_names_environment_step_and_fault(what):
    change, said = TOLD[what]
    with pytest.raises(EnvError, match=f"^(the )?{said}"):
        stepped(functools.partial(Giving, change=change))


def test_what_fits_passes():
    ends = [step.result.over.tolist() for step in stepped(functools.partial(Giving, change=lambda told: None))]
    assert ends == [[step == 2] * 2 for step in range(5)]
