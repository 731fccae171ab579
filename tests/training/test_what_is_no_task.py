"""What users of Gymnasium hand over first, in the place of a task or a name: each is told what to give instead."""

import functools
import re

import gymnasium
import numpy as np
import pytest

from host_envs_for_tests import Telling
from thrust_rl import (
    HostTask,
    TrainConfig,
    VectorTask,
    arm_from,
    compare,
    evaluate,
    load_checkpoint,
    make,
    save_checkpoint,
    train,
)
from thrust_rl.config import ConfigError
from thrust_rl.training.record import record

pytestmark = pytest.mark.usefixtures("unchecked")

ARM, CONFIG = arm_from("mlp"), TrainConfig(total_timesteps=256, num_envs=4, num_steps=32)


def make_vectors(num_envs):
    return gymnasium.vector.SyncVectorEnv([Telling] * num_envs)


def vectors_of(count):
    return make_vectors(count)


def unlicensed(*args):
    raise RuntimeError("no licence")


ENTRANCES = {
    "train": lambda env: train(env, ARM, CONFIG),
    "evaluate": lambda env: evaluate(env, ARM, CONFIG, None),
    "record": lambda env: record(env, ARM, CONFIG, None),
    "save_checkpoint": lambda env: save_checkpoint("nowhere", env, ARM, CONFIG, None),
    "load_checkpoint": lambda env: load_checkpoint("nowhere", env),
}
NO_TASKS = {
    "an environment": (Telling(), 'Telling, an environment that is built.*HostTask("telling", Telling)'),
    "a class": (Telling, 'the class Telling.*HostTask("telling", Telling)'),
    "a function": (lambda: Telling(), 'a function.*HostTask("mine", make_env)'),
    "a partial": (functools.partial(Telling, limit=3), 'a function.*HostTask("mine", make_env)'),
    "a registered one": (gymnasium.make("CartPole-v1"), 'make("CartPole-v1"), or HostTask("CartPole-v1", make_env)'),
    "a wrapped one": (gymnasium.wrappers.TimeLimit(Telling(), 3), 'a TimeLimit.*HostTask("mine", make_env)'),
    "a vector": (make_vectors(2), 'a SyncVectorEnv.*VectorTask("mine", make_vector), where make_vector(num_envs)'),
    "what builds vectors": (make_vectors, 'VectorTask("mine", make_vectors)'),
    "a name": ("CartPole-v1", "env is 'CartPole-v1'.*make(\"CartPole-v1\")"),
    "a number": (3, 'env is 3.*make("CartPole-v1"), or HostTask(name, make_env)'),
    "nothing": (None, "env is None.*HostTask(name, make_env)"),
}
NO_NAMES = {
    "an environment": (Telling(), 'FUNCTION("host_envs_for_tests:Telling")'),
    "a class": (
        Telling,
        'FUNCTION("host_envs_for_tests:Telling"); train and evaluate also take HostTask("telling", Telling)',
    ),
    "a function": (lambda: Telling(), 'FUNCTION("their_module:make_env")'),
    "a registered one": (gymnasium.make("CartPole-v1"), 'FUNCTION("CartPole-v1")'),
    "a vector": (
        make_vectors(2),
        'FUNCTION("their_module:make_vector"); train and evaluate also take VectorTask("mine", ',
    ),
    "a number": (3, 'env is 3.*FUNCTION("CartPole-v1"), or "their_module:Env"'),
}
TASKS_AS_NAMES = {
    "a class": (HostTask("telling", Telling), 'compare("host_envs_for_tests:Telling")'),
    "a partial": (HostTask("telling", functools.partial(Telling, limit=3)), 'compare("their_module:make_env")'),
    "a made one": (make("gymnasium:CartPole-v1", observe="mask:1"), 'compare("gymnasium:CartPole-v1")'),
    "a compiled one": (make("CartPole-v1"), 'the FunctionalEnv CartPole-v1.*compare("CartPole-v1")'),
}


def said(text):
    """A pattern in which only `.*` means more than itself."""
    return ".*".join(map(re.escape, text.split(".*")))


@pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES)
@pytest.mark.parametrize(("env", "remedy"), NO_TASKS.values(), ids=NO_TASKS)
def test_what_is_no_task_is_refused_at_every_entrance(enter, env, remedy):
    with pytest.raises(TypeError, match=said(remedy)) as raised:
        enter(env)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("function", [make, compare])
@pytest.mark.parametrize(("env", "remedy"), NO_NAMES.values(), ids=NO_NAMES)
def test_make_and_compare_take_names(function, env, remedy):
    with pytest.raises(TypeError, match=said(remedy.replace("FUNCTION", function.__name__))):
        function(env)


@pytest.mark.parametrize(("task", "remedy"), TASKS_AS_NAMES.values(), ids=TASKS_AS_NAMES)
def test_compare_says_under_which_name_it_would_take_a_task(task, remedy):
    for given in (task, [task], ["CartPole-v1", task]):
        with pytest.raises(TypeError, match=said(remedy)):
            compare(given)
    with pytest.raises(TypeError, match="give it to train"):
        make(task)


@pytest.mark.parametrize("seeds", [0, np.int64(3), np.array(3), None, iter([0])])
def test_seeds_are_a_sequence(seeds):
    with pytest.raises(TypeError, match=said("seeds is .*: give a sequence, such as [0] or range(5)")):
        train(make("CartPole-v1"), ARM, CONFIG, seeds=seeds)


@pytest.mark.parametrize(
    ("task", "error", "remedy"),
    [
        (lambda: HostTask("x", make_vectors), TypeError, "'num_envs'.*for a function of num_envs give a VectorTask"),
        (lambda: HostTask("x", vectors_of), TypeError, "'count'.*a HostTask calls it without any; fill them in"),
        (lambda: HostTask("x", lambda: make_vectors(1)), TypeError, "built a SyncVectorEnv: .* give a VectorTask"),
        (lambda: HostTask("x", Telling()), TypeError, "make_env is a Telling: pass a function that builds one"),
        (
            lambda: VectorTask("x", lambda: Telling()),
            TypeError,
            "takes other arguments.*single gymnasium.Env give a HostTask",
        ),
        (
            lambda: VectorTask("x", Telling),
            TypeError,
            "make_vector built a Telling: .*single gymnasium.Env give a HostTask",
        ),
        (
            lambda: VectorTask("x", make_vectors(1)),
            TypeError,
            "make_vector is a SyncVectorEnv: pass a function of num_envs",
        ),
        (lambda: HostTask("x", unlicensed), ConfigError, "x cannot be built: RuntimeError: no licence"),
        (lambda: VectorTask("x", unlicensed), ConfigError, "x cannot be built: RuntimeError: no licence"),
    ],
)
def test_a_task_of_the_other_kind_says_which_to_give(task, error, remedy):
    with pytest.raises(error, match=said(remedy)) as raised:
        train(task(), ARM, CONFIG)
    assert type(raised.value) is error


def test_a_type_error_of_the_environments_own_is_told_as_it_is():
    with pytest.raises(ConfigError, match="^x cannot be built: TypeError: .*'wrong'"):
        train(HostTask("x", lambda: unlicensed(wrong=3)), ARM, CONFIG)
