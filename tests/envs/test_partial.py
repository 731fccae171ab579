"""A wrapped environment is the compiled one, is the wrapped one underneath, and can be rebuilt from its spec."""

import copy
import dataclasses
import functools
import pickle
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from envs_for_tests import Counter, environment
from host_envs_for_tests import Masked
from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.cartpole import CartPolePhysics
from thrust_rl.envs.host_sensor import BLOCK, draw_block
from thrust_rl.envs.observation import Delay, Flicker, GaussianNoise, Hide, Relay, Stacked
from thrust_rl.envs.partial import PartialObservation, observed
from thrust_rl.envs.registry import make
from thrust_rl.envs.stateful import StatefulEnv
from thrust_rl.envs.task import HostTask
from thrust_rl.envs.twins import twin_of, twin_spec
from thrust_rl.training.train import train

PHYSICS = dataclasses.replace(make("CartPole-v1"), max_steps=15)
# Every kind that computes, in one stack: what costs time here is compiling. Each on its own is tested as a model.
STACK = "mask:cart_velocity|quantize:0.1|noise:0.3|flicker:0.5,4|delay:1|drop:0.4|random-delay:2|flicker:0.1"


class Free(gymnasium.Env):
    """Shows (episode, time, seed) as float64; ends never."""

    observation_space = gymnasium.spaces.Box(-1e300, 1e300, (3,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": [], "coordinates": ("episode", "time", "seed")}
    closed = 0

    def __init__(self):
        self.state = np.zeros(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state[:] = self.state[0] + 1, 0, self.state[2] if seed is None else seed
        return self.state, {"options": options}

    def step(self, action):
        self.state[1] += 1  # in place: the same array is handed out again
        return self.state, 0.5, False, False, {"action": action}

    def close(self):
        self.closed += 1


class Maskable(Free):
    """The same, in a dict beside an action mask that changes with time."""

    def __init__(self):
        super().__init__()
        mask = gymnasium.spaces.MultiBinary(2)
        self.observation_space = gymnasium.spaces.Dict({"it": self.observation_space, "action_mask": mask})
        self.now = 0

    @staticmethod
    def mask_at(step):
        return np.array([1, step % 2], np.int8)

    def reset(self, **options):
        obs, info = super().reset(**options)
        self.now = 0
        return {"it": obs, "action_mask": self.mask_at(0)}, info

    def step(self, action):
        obs, *rest = super().step(action)
        self.now += 1
        return {"it": obs, "action_mask": self.mask_at(self.now)}, *rest


def frames(env, steps, seed=None):
    """Frames and blanks of an episode's first steps."""
    seen = [env.reset(seed=seed)]
    seen += [(out[0], out[4]) for out in (env.step(0) for _ in range(steps))]
    return np.array([obs for obs, _ in seen]), np.array([info["blank"] for _, info in seen])


def same(one, other):
    return np.array_equal(one[0], other[0]) and one[0].dtype == other[0].dtype and one[1:] == other[1:]


def test_it_gives_what_the_compiled_environment_with_the_model_gives():
    inside, outside = StatefulEnv(observed(PHYSICS, STACK)), PartialObservation(StatefulEnv(PHYSICS), STACK)
    assert inside.observation_space == outside.observation_space and inside.functional.twin().physics == PHYSICS.physics
    coins, ends = np.random.default_rng(0), 0
    for seed, steps in ((5, BLOCK + 20), (9, 30)):
        assert same(inside.reset(seed=seed), outside.reset(seed=seed))
        for t in range(steps):
            if t == 20:
                snapshot = inside.clone_state()
                ahead = [inside.step(0)[0].tolist() for _ in range(3)]
                inside.restore_state(snapshot)
                assert [inside.step(0)[0].tolist() for _ in range(3)] == ahead
                inside.restore_state(snapshot)
            action = int(coins.integers(2))
            ours, theirs = inside.step(action), outside.step(action)
            assert same(ours, theirs) and outside.observation_space.contains(theirs[0])
            if ours[2] or ours[3]:
                ends += 1
                assert same(inside.reset(), outside.reset())
                if ends % 3 == 0:
                    assert same(inside.reset(), outside.reset()), "two resets in a row do not move the sensor's clock"
    assert ends > 15
    hidden, twin = (env.clone_state().stream.env_state.physics for env in (inside, outside.unwrapped))
    jax.tree.map(np.testing.assert_array_equal, hidden, twin)


def test_without_a_seed_it_goes_on_and_begins_on_the_environments_stream():
    inside = StatefulEnv(observed(PHYSICS, STACK), seed=3)
    outside = PartialObservation(StatefulEnv(PHYSICS, seed=3), STACK)
    assert same(inside.reset(), outside.reset())
    blanks = []
    for t in range(40):
        ours, theirs = inside.step(0), outside.step(0)
        assert same(ours, theirs)
        blanks.append(theirs[4]["blank"])
        if t % 4 == 3:
            assert same(inside.reset(), outside.reset())
    assert 5 < sum(blanks) < 35
    unseeded = [frames(PartialObservation(Free(), "flicker:0.4"), 50)[1] for _ in range(2)]
    assert not np.array_equal(*unseeded), "without any seed, patterns are drawn afresh"


def test_another_environments_stream_is_that_of_the_seed():
    env = PartialObservation(Free(), "noise:0.3")
    first, again, other = (frames(env, 30, seed)[0] for seed in (1, 1, 2))
    noise = first - [[1, t, 1] for t in range(31)]
    assert np.abs(noise).max() < 2 and np.allclose(again - [[2, t, 1] for t in range(31)], noise, atol=1e-5)
    assert not np.allclose(other - [[3, t, 2] for t in range(31)], noise, atol=1e-2)
    goes_on = frames(env, 30)[0] - [[4, t, 2] for t in range(31)]
    assert not np.allclose(goes_on[1:], other[1:] - [[3, t, 2] for t in range(1, 31)], atol=1e-2)
    assert env.reset(seed=2**40 + 1)[0].shape == (3,)


def test_two_wrappers_are_one_with_both_lists():
    texts = ["noise:0.3", "flicker:0.4", "noise:0.3", "mask:time", "delay:1"]
    flat, nested = PartialObservation(Free(), texts), PartialObservation(Free(), texts[:2])
    nested = PartialObservation(gymnasium.wrappers.TransformReward(nested, float), texts[2:4])
    nested = PartialObservation(nested, texts[4])
    assert nested.names == flat.names == ("episode", "seed")
    for ours, theirs in zip(frames(flat, 20, 0), frames(nested, 20, 0), strict=True):
        assert np.array_equal(ours, theirs)
    inside = PartialObservation(StatefulEnv(environment(Counter(), sensor=Flicker(0.4))), "flicker:0.4")
    both = StatefulEnv(environment(Counter(), sensor=Stacked((Flicker(0.4), Flicker(0.4)))))
    blanks = [[env.reset(seed=seed)[1]["blank"] for seed in range(40)] for env in (inside, both)]
    assert blanks[0] == blanks[1] and 15 < sum(blanks[0]) < 35  # 0.64 of them


def test_everything_else_passes_through_and_nothing_is_handed_out_twice():
    env = PartialObservation(Free(), [Hide((2,)), Delay(1)])
    obs, info = env.reset(seed=0, options={"a": 1})
    assert info == {"options": {"a": 1}, "blank": True} and obs.tolist() == [0, 0]
    for t in range(3):
        obs, *rest = env.step("right")
        assert obs.tolist() == [1, t] and obs.dtype == np.float32
        assert rest == [0.5, False, False, {"action": "right", "blank": False}]
        obs[:] = -7  # the caller's own
    held = PartialObservation(Free(), "drop:1")
    held.reset(seed=0)[0][:] = -7
    assert held.step(0)[0].tolist() == [1, 0, 0]
    assert env.render_mode is None and env.unwrapped.closed == 0
    env.close()
    assert env.unwrapped.closed == 1
    with pytest.raises(ValueError, match=r"step\(\) before reset\(\): call reset"):
        PartialObservation(Free(), "delay:1").step(0)


def test_a_copy_goes_on_alike():
    env = PartialObservation(Free(), "noise:0.3|drop:0.4|delay:1")
    frames(env, 20, 0)
    twins = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    ahead = [env.step(0)[0].tolist() for _ in range(BLOCK)]
    assert all([twin.step(0)[0].tolist() for _ in range(BLOCK)] == ahead for twin in twins)


def test_its_spec_builds_it_again_also_from_json():
    env = gymnasium.make("CartPole-v1", max_episode_steps=7)
    env = PartialObservation(env, ["mask:cart_velocity,3", Delay(1)])
    env = PartialObservation(gymnasium.wrappers.TimeAwareObservation(env), GaussianNoise((0.3, 0.0, 1.0)))
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again = gymnasium.make(spec)
        assert type(again) is PartialObservation and again.model == env.model
        assert again.observation_space == env.observation_space and again.observation_space.shape == (3,)
        for ours, theirs in zip(frames(env, 6, 0), frames(again, 6, 0), strict=True):
            assert np.array_equal(ours, theirs)
        assert again.step(0)[3] or again.unwrapped.steps_beyond_terminated is not None
    vector = gymnasium.make_vec(env.spec, num_envs=2, vectorization_mode="sync")
    assert vector.reset(seed=0)[0].shape == (2, 3) and set(vector.reset()[1]) >= {"blank"}


def test_gymnasium_accepts_it():
    for name, text in (("CartPole-v1", "mask:1,3|flicker:0.4"), ("Pendulum-v1", "mask:velocity|drop:0.4")):
        env = PartialObservation(gymnasium.make(name), text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True)
        # The checker remarks that a wrapper is not the bare environment and, of Pendulum, that torques go to 2.
        known = ("different from the unwrapped version", "For Box action spaces")
        assert [str(w.message) for w in caught if not any(part in str(w.message) for part in known)] == []
        env.close()


def test_pictures_are_those_of_the_environment():
    env = PartialObservation(StatefulEnv(PHYSICS, render_mode="ansi"), "flicker:1.0")
    env.reset(seed=0)
    assert env.render_mode == "ansi" and "position" in env.render()


def test_the_twin_is_the_environment_without():
    bare = gymnasium.make("CartPole-v1")
    assert twin_of(bare) is bare
    assert twin_of(PartialObservation(PartialObservation(bare, "noise:0.3"), "delay:1")) is bare
    around = gymnasium.wrappers.TransformReward(PartialObservation(bare, "mask:1,3"), float)
    twin = twin_of(around)
    assert type(twin) is gymnasium.wrappers.TransformReward and twin.env is bare
    assert gymnasium.make(twin_spec(around.env.spec)).spec == bare.spec
    assert len(around.env.spec.additional_wrappers) == 1, "the spec given is left alone"
    functional = observed(make("CartPole-v1"), ["mask:1,3", "noise:0.3"])
    assert functional.twin().observation_space == make("CartPole-v1").observation_space

    class Secretive(gymnasium.Wrapper):
        pass

    with pytest.raises(ConfigError, match="Secretive is around a PartialObservation.*wrap in PartialObservation last"):
        twin_of(Secretive(around))
    assert type(twin_of(Secretive(bare))) is Secretive


def test_sixteen_wrappers_draw_from_one_compiled_block_and_masks_from_none():
    envs = [PartialObservation(Free(), "noise:0.25") for _ in range(16)]
    before = draw_block._cache_size()
    for seed, env in enumerate(envs):
        frames(env, BLOCK + 10 if seed < 2 else 3, seed)
    assert draw_block._cache_size() == before + 1
    silent = PartialObservation(Free(), "mask:1|quantize:0.1|delay:2")
    frames(silent, 10, 0)
    assert draw_block._cache_size() == before + 1 and not silent._sensor._sensors[0]._drawn


def test_names_come_from_the_table_from_the_environment_and_from_the_wrapper_inside():
    assert PartialObservation(gymnasium.make("Pendulum-v1"), "mask:velocity").model == Hide((2,))
    assert PartialObservation(Free(), "mask:seed").names == ("episode", "time")
    inside = PartialObservation(StatefulEnv(make("FlickeringCartPole-v0")), "mask:pole_velocity")
    assert inside.names == ("cart_position", "cart_velocity", "pole_angle")
    longer = gymnasium.wrappers.TimeAwareObservation(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="have no known names"):
        PartialObservation(longer, "mask:cart_velocity")


@pytest.mark.parametrize(
    "observe", [["flicker:1.0"], ["mask:0,2", "noise:0.1"], ["delay:2"], ["drop:0.9", "quantize:2"]]
)
def test_an_action_mask_beside_the_observation_passes_untouched(observe):
    """And the observation itself is what it would be without a mask in the same dict."""
    plain, masked = PartialObservation(Free(), observe), PartialObservation(Maskable(), observe)
    assert masked.observation_space["it"] == plain.observation_space
    assert masked.observation_space["action_mask"] == Maskable().observation_space["action_mask"]
    came, _ = masked.reset(seed=5)
    expected, _ = plain.reset(seed=5)
    for step in range(6):
        np.testing.assert_array_equal(came["it"], expected)
        assert came["action_mask"].tolist() == Maskable.mask_at(step).tolist()
        (came, *_), (expected, *_) = masked.step(0), plain.step(0)


def test_a_mask_is_obeyed_behind_observation_models():
    """The environment asserts that only what is allowed comes; the frames are blank throughout."""
    for in_info in (True, False):
        make_env = functools.partial(behind_flicker, in_info)
        config = TrainConfig(total_timesteps=64, num_envs=2, num_steps=16, ppo=PPOConfig(envs_per_minibatch=2))
        [result] = train(HostTask("masked", make_env), arm_from("lstm"), config)
        assert result.curve.episodes == 2 * (32 // 6)


def behind_flicker(in_info):
    return PartialObservation(Masked(in_info=in_info), "flicker:1.0")


def test_what_does_not_fit_is_refused_where_it_is_built():
    with pytest.raises(ConfigError, match=r"coordinate 4: observations of shape \(4,\) have coordinates 0 to 3"):
        PartialObservation(gymnasium.make("CartPole-v1"), "mask:4")
    with pytest.raises(ConfigError, match=r"coordinate 4: observations of shape \(4,\) have coordinates 0 to 3"):
        environment(CartPolePhysics(), sensor=Hide((4,)))

    class Own:
        def space(self, space):
            return space

        init = advance = begin_episode = emit = space

    with pytest.raises(ConfigError, match="is no Relay.*subclass of thrust_rl.envs.observation.Relay"):
        PartialObservation(Free(), Own())


def test_a_model_of_ones_own_works_as_the_librarys_do():
    @dataclasses.dataclass(frozen=True)
    class Doubled(Relay):
        def relay(self, state, frame):
            return state, frame._replace(obs=2 * frame.obs)

    env = PartialObservation(Free(), [Doubled(), "delay:1"])
    assert frames(env, 3, 4)[0].tolist() == [[0, 0, 0], [2, 0, 8], [2, 2, 8], [2, 4, 8]]
    assert observed(make("CartPole-v1"), Doubled()).name == "CartPole-v1|Doubled"
