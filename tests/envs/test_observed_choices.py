"""Compiled environments with choices to see: models see one-hots, and frames are those of the wrapper."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from envs_for_tests import environment, settings
from thrust_rl.config import ConfigError
from thrust_rl.envs.observation import Flicker
from thrust_rl.envs.partial import PartialObservation, observed
from thrust_rl.envs.spaces import obs_spec, require_read_as_it_is
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.envs.task import CompiledTask
from thrust_rl.training.train import train

STACK = "flicker:0.4|mask:2|delay:1|drop:0.3|random-delay:1|flicker:0.2,2"


@dataclasses.dataclass(frozen=True)
class Cards:
    """Fresh choices at every step; an episode ends with probability 1/4."""

    sizes: tuple[int, ...] = ()  # of a MultiDiscrete with starts 0, 1, ...; () for a Discrete
    action_space = Discrete(2)

    @property
    def observation_space(self):
        return MultiDiscrete(self.sizes, start=np.arange(len(self.sizes))) if self.sizes else Discrete(5, start=-1)

    def init(self, key):
        first, size = (np.arange(len(self.sizes)), np.array(self.sizes)) if self.sizes else (-1, 5)
        return jax.random.randint(key, np.shape(size), first, first + size)

    def step(self, key, state, action):
        return self.init(key), jnp.ones(()), jax.random.bernoulli(key, 0.25)

    def observe(self, state):
        return state


def same_frames(one, other, steps=60):
    """Blanks of two environments, after checking that they show the same."""
    ours, theirs, blanks = one.reset(seed=4), other.reset(seed=4), []
    assert one.observation_space == other.observation_space
    for _ in range(steps):
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert one.observation_space.contains(ours[0]) and ours[1:] == theirs[1:]
        blanks.append(ours[-1]["blank"])
        ours, theirs = (env.reset() if len(ours) == 5 and ours[2] else env.step(1) for env in (one, other))
    return blanks


@pytest.mark.parametrize("sizes", [(), (3, 4)], ids=["discrete", "several"])
@pytest.mark.parametrize("text", [STACK, "mask:1|noise:0.3", "show:3,1|quantize:0.4"])
def test_frames_and_blanks_are_those_of_the_wrapper(sizes, text):
    physics = environment(Cards(sizes))
    inside, outside = StatefulEnv(observed(physics, text)), PartialObservation(StatefulEnv(physics), text)
    assert (10 < sum(same_frames(inside, outside)) < 60) == (text == STACK)
    assert isinstance(inside.observation_space, MultiBinary) == (text == STACK)


def test_models_may_be_added_one_by_one_inside_and_outside():
    bare, (first, *rest) = environment(Cards()), STACK.split("|")
    whole = observed(bare, STACK)
    assert whole == observed(observed(bare, first), rest) and whole.observation_space == MultiBinary(4)
    same_frames(StatefulEnv(whole), PartialObservation(StatefulEnv(observed(bare, first)), rest))
    assert observed(bare, []) == bare and whole.twin().observation_space == Discrete(5, start=-1)


def test_parts_have_names_and_what_does_not_fit_is_refused():
    cards = environment(Cards((3, 4)))
    assert observed(cards, "mask:obs.1").observation_space == MultiBinary(3)
    with pytest.raises(ConfigError, match="coordinate 7: observations .* have coordinates 0 to 6"):
        observed(cards, "mask:7")
    with pytest.raises(ConfigError, match="over 4096: to a model choices are one-hots"):
        observed(environment(Cards((4000, 100))), "flicker:0.5")
    with pytest.raises(ConfigError, match="compiled, observation models need a Box.*envs.partial.observed"):
        environment(Cards(), sensor=Flicker(0.5))


def test_training_behind_a_model_that_hides_nothing_is_training_without():
    bare = environment(Cards((5,)), max_steps=10)
    (one,), (other,) = (train(env, "mlp", settings()) for env in (bare, observed(bare, "flicker:0")))
    leaves = (jax.tree.leaves(result.state.learner.policy) for result in (one, other))
    for ours, theirs in zip(*leaves, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bare", [environment(Cards()), CompiledTask(environment(Cards()))], ids=["compiled", "hosted"])
def test_choices_that_do_not_count_from_0_are_refused_where_nobody_converts_them(bare):
    """Read as they are, −1 would be no alternative and 4 none either; behind a model they are one-hots."""
    with pytest.raises(ConfigError, match="is compiled, and shows Choices.*: .* choices must count from 0"):
        train(bare, "lstm", settings())


@pytest.mark.parametrize("shape", [(3, 8, 9), (8, 9)])
def test_so_are_images_without_channels_last(shape):
    with pytest.raises(ConfigError, match="is compiled, and shows Image.*channels on the last of three axes"):
        require_read_as_it_is("Camera", obs_spec(Box(0, 255, shape, np.uint8)))
    require_read_as_it_is("Camera", obs_spec(Box(0, 255, (8, 9, 3), np.uint8)))
