"""One flag hides something of any observation: whatever its space, draws and what goes on behind it are the same."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.faults import Fault
from thrust_rl.envs.host_sensor import BLOCK
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.envs.observation import Relay
from thrust_rl.envs.partial import PartialObservation
from thrust_rl.envs.spaces import Image, obs_spec
from thrust_rl.envs.task import HostTask
from thrust_rl.envs.twins import twin_of
from thrust_rl.experiment.plan import Options, plan
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

CAMERA = Box(0, 255, (5, 6, 3), np.uint8)
IMAGE = Image(CAMERA.shape, 255.0)
ROOM = Dict(
    camera=CAMERA,
    hand=Dict(grip=Discrete(3, start=2), joints=Box(-2.0, 3.0, (2, 2), np.float64)),
    touch=Tuple((MultiBinary((2, 2)), MultiDiscrete([2, 3]))),
    action_mask=MultiBinary(2),
)
SPACES = {
    "discrete": Discrete(5, start=-1),
    "several": MultiDiscrete([[2, 3], [4, 2]]),
    "bits": MultiBinary((2, 3)),
    "tuple": Tuple((Discrete(4), Discrete(2))),
    "numbers": Dict(a=Box(-1.0, 1.0, (2,)), b=Box(0, 9, (), np.int64)),
    "masked": Dict(state=Discrete(7), action_mask=MultiBinary(2)),
    "room": ROOM,
}
HIDING = ("flicker:0.4", "flicker:0.4,3", "delay:2", "random-delay:3", "drop:0.5")
CONFIG = TrainConfig(
    total_timesteps=96, num_envs=2, num_steps=16, ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2, batch_size=32)
)


class Sampling(gymnasium.Env):
    """Draws what it shows, pays its own draws; an episode is as long as the seed says, five steps on average."""

    action_space = Discrete(2)
    metadata = {"render_modes": []}

    def __init__(self, space):
        self.observation_space = space
        self.shown = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self._obs(), {}

    def step(self, action):
        return self._obs(), float(self.np_random.normal()), bool(self.np_random.random() < 0.2), False, {}

    def _obs(self):
        self.shown = self.observation_space.sample()
        if isinstance(self.shown, dict) and "action_mask" in self.shown:
            self.shown["action_mask"] = np.array([1, self.np_random.integers(2)], np.int8)
        return self.shown


def lived(env, steps, seed=3):
    """Observations, rewards, ends and blanks over episodes; what was there to see at each step."""
    obs, info = env.reset(seed=seed)
    seen = [(obs, 0.0, False, info.get("blank"), env.unwrapped.shown)]
    for _ in range(steps):
        obs, reward, over, _, info = env.step(0)
        seen.append((obs, reward, over, info.get("blank"), env.unwrapped.shown))
        if over:
            obs, info = env.reset()
            seen.append((obs, 0.0, False, info.get("blank"), env.unwrapped.shown))
    return list(zip(*seen, strict=True))


def seen_as_numbers(space, obs):
    """What is to be seen apart from masks, as Gymnasium flattens it."""
    if isinstance(space, Dict) and "action_mask" in space.spaces:
        space = Dict({name: inner for name, inner in space.spaces.items() if name != "action_mask"})
        obs = {name: value for name, value in obs.items() if name != "action_mask"}
    return gymnasium.spaces.flatten(space, obs).astype(np.float32)


def test_hiding_nothing_shows_all_of_it():
    for space in SPACES.values():
        env = PartialObservation(Sampling(space), "flicker:0")
        shown, *_, there = lived(env, 10)
        for obs, given in zip(shown, there, strict=True):
            assert env.observation_space.contains(obs)
            expected = seen_as_numbers(space, given)
            np.testing.assert_array_equal(seen_as_numbers(env.observation_space, obs), expected)
            assert isinstance(space, Dict | Tuple) == isinstance(obs, dict | tuple)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_frame_of_any_space_is_hidden_exactly_when_that_of_a_box_is(space):
    """And so is a whole stack; behind it rewards, ends and draws of the environment are those of the twin."""
    for text, steps in ((HIDING[0], BLOCK + 10), ("|".join(HIDING), 40)):
        env = PartialObservation(Sampling(space), text)
        shown, rewards, ends, blanks, there = lived(env, steps)
        _, bare_rewards, bare_ends, _, bare = lived(twin_of(env), steps)
        assert rewards == bare_rewards and ends == bare_ends
        for ours, theirs in zip(there, bare, strict=True):
            jax.tree.map(np.testing.assert_array_equal, ours, theirs)
        assert 0.2 * len(blanks) < sum(blanks) and any(ends)
        for obs, blank, given in zip(shown, blanks, there, strict=True):
            assert env.observation_space.contains(obs)
            if blank:
                assert not seen_as_numbers(env.observation_space, obs).any()
            if isinstance(obs, dict) and "action_mask" in obs:
                np.testing.assert_array_equal(obs["action_mask"], given["action_mask"])
            if text == HIDING[0]:
                expected = seen_as_numbers(space, given) * (not blank)
                np.testing.assert_array_equal(seen_as_numbers(env.observation_space, obs), expected)
        assert blanks == blanks_alone(text, ends), "those of a Box under the same seed"


def blanks_alone(text, ends):
    """Of an environment whose observations are a Box and whose episodes end when these do."""
    env = PartialObservation(Sampling(Box(1.0, 2.0, (1,))), text)
    blanks, begins = [env.reset(seed=3)[1]["blank"]], [False, *ends[:-1]]
    for begun in begins[1:]:
        blanks.append((env.reset() if begun else env.step(0))[-1]["blank"])
    return tuple(blanks)


def test_numbers_of_several_parts_meet_the_noise_of_one_box():
    parts, whole = Dict(a=Box(-1.0, 1.0, (2,)), b=Tuple((Box(-1.0, 1.0, ()),))), Box(-1.0, 1.0, (3,))
    text = "noise:0.3,0,1|mask:1|flicker:0.3|quantize:0.1|noise:0.2|delay:1|drop:0.3"

    class Fixed(Sampling):
        def _obs(self):
            self.shown = gymnasium.spaces.unflatten(self.observation_space, np.array([0.5, 0.25, -1.0], np.float32))
            return self.shown

    ours, theirs = (lived(PartialObservation(Fixed(space), text), 50) for space in (parts, whole))
    assert set(ours[0][0]) == {"a", "b"} and ours[0][5]["a"].shape == (1,) and ours[3] == theirs[3]
    for one, other in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_array_equal([*one["a"], one["b"][0]], other)


def test_images_are_late_and_lost_with_the_rest():
    env = PartialObservation(Sampling(Dict(camera=CAMERA, clock=Discrete(50))), "delay:2|drop:0.5")
    shown, _, _, blanks, there = lived(env, 60)
    by_image = {given["camera"].tobytes(): int(given["clock"]) for given in there}
    for obs, blank in zip(shown, blanks, strict=True):
        assert blank == (not obs["camera"].any()) == (not obs["clock"].any())
        assert blank or by_image[obs["camera"].tobytes()] == int(obs["clock"].argmax())
    assert 0 < sum(blanks) < len(blanks) - 10
    obs = shown[-1]
    obs["camera"][:] = 7
    assert not np.array_equal(env.step(0)[0]["camera"], obs["camera"]), "what is remembered is not the caller's"


def test_noise_reaches_images_in_their_own_units():
    space = Dict(camera=CAMERA, speed=Box(-1.0, 1.0, (2,)))
    for std, moves in ((20, True), (0.05, False)):
        env = PartialObservation(Sampling(space), f"noise:{std}")
        assert env.observation_space["camera"] == CAMERA and obs_spec(env.observation_space).tree["camera"] == IMAGE
        shown, *_, there = lived(env, 20)
        camera, speed = (
            np.array([obs[part] - np.asarray(given[part], float) for obs, given in zip(shown, there, strict=True)])
            for part in ("camera", "speed")
        )
        assert camera.any() == moves and np.abs(camera).max() < 6 * std + 0.5
        assert abs(speed.std() / std - 1) < 4 / np.sqrt(2 * speed.size)


def test_parts_are_hidden_by_name():
    def space(*texts):
        return PartialObservation(Sampling(ROOM), list(texts)).observation_space

    rest = {name: inner for name, inner in space("flicker:0").spaces.items() if name != "hand"}
    assert space("mask:hand") == Dict(rest)
    assert space("mask:hand.grip")["hand"] == Dict(joints=Box(-2.0, 3.0, (2, 2), np.float32))
    assert set(space("mask:camera|noise:0.1").spaces) == {"hand", "touch", "action_mask"}
    assert space("mask:touch.1.0", "mask:touch.0")["touch"] == Tuple([MultiBinary(3)])
    assert space("show:hand.grip,camera") == Dict(
        camera=CAMERA, hand=Dict(grip=MultiBinary(3)), action_mask=MultiBinary(2)
    )
    assert space("show:camera") == Dict(camera=CAMERA, action_mask=MultiBinary(2))
    assert space("mask:3,5")["hand"]["joints"] == Box(-2.0, 3.0, (2,), np.float32)
    env = PartialObservation(Sampling(SPACES["tuple"]), "mask:obs.0")
    assert env.observation_space == Tuple([MultiBinary(2)]) and env.names == ("obs.1",) * 2
    for text in ("mask:hnd.grip", "mask:hand|show:hand"):
        with pytest.raises(ConfigError, match=r"no coordinate is called .*camera\)"):
            space(text)
    with pytest.raises(ConfigError, match="coordinate 20: observations .* have coordinates 0 to 16"):
        space("mask:20")
    with pytest.raises(ConfigError, match="hides all 17 coordinates"):
        space("mask:camera,hand,touch")
    with pytest.raises(ConfigError, match="have no known names"):
        PartialObservation(Sampling(Discrete(4)), "mask:state")


def test_what_is_left_to_see_is_shown_in_its_place():
    env = PartialObservation(Sampling(ROOM), "show:touch.1.1,5,3,hand.grip,camera")
    for obs, given in zip(*np.array(lived(env, 20), object)[[0, 4]], strict=True):
        joints = given["hand"]["joints"].astype(np.float32).ravel()
        assert obs["hand"]["joints"].tolist() == joints[[2, 0]].tolist(), "in the order in which they were asked for"
        assert obs["hand"]["grip"].argmax() + 2 == given["hand"]["grip"]
        assert obs["touch"][0].argmax() == given["touch"][1][1] and len(obs["touch"]) == 1
        np.testing.assert_array_equal(obs["camera"], given["camera"])


def test_two_wrappers_are_one_with_both_lists():
    texts = ["flicker:0.4", "mask:hand.grip,4", "drop:0.3|flicker:0.2", "mask:touch.0|delay:1"]
    flat = PartialObservation(Sampling(ROOM), texts)
    nested = PartialObservation(PartialObservation(Sampling(ROOM), texts[:2]), texts[2:])
    assert nested.names == flat.names and nested.observation_space == flat.observation_space
    (ours, *_, our_blanks, _), (theirs, *_, their_blanks, _) = lived(flat, 40), lived(nested, 40)
    assert our_blanks == their_blanks and twin_of(nested) is nested.unwrapped
    for one, other in zip(ours, theirs, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_zeros_and_ones_stay_so_until_a_model_makes_other_numbers_of_them():
    unbounded = Box(-np.inf, np.inf, (4,), np.float32)
    for text, space in (("|".join(HIDING), MultiBinary(4)), ("noise:0.1", unbounded)):
        env = PartialObservation(Sampling(Discrete(4)), text)
        assert env.observation_space == space
        assert all(env.observation_space.contains(obs) for obs in lived(env, 20)[0])


def test_what_lies_outside_its_space_is_not_hidden_by_a_cast():
    for space, given in ((Discrete(3), 3), (Discrete(3), -1), (Discrete(3), 0.5), (MultiBinary(2), [0.5, 1])):
        env = Sampling(space)
        env._obs = lambda given=given: given
        with pytest.raises(Fault, match="outside its space"):
            PartialObservation(env, "flicker:0.5").reset(seed=0)


def test_what_does_not_fit_is_refused_where_it_is_built():
    class Longer(Relay):
        def space(self, space):
            return Box(-1, 1, (space.shape[0] + 1,))

        def relay(self, state, frame):
            return state, frame

    for space, observe, said in (
        (ROOM, f"noise:0.1{16 * ',1'}", "std has 17 numbers: observations of shape .16,. have 16"),
        (ROOM, f"noise:0.1{15 * ',1'}", "camera: std has 16 numbers.*or hide it before, with mask:camera"),
        (Discrete(5000), "flicker:0.5", "obs has 5000 alternatives, over 4096: to a model choices are one-hots"),
        (Dict(note=Text(5)), "flicker:0.5", r"observation_space\['note'\] is Text"),
        (Dict(action_mask=MultiBinary(2)), "flicker:0.5", "there is nothing that a model could hide"),
        (SPACES["tuple"], Longer(), "only masks may change how many.*FlattenObservation"),
    ):
        with pytest.raises(ConfigError, match=said):
            PartialObservation(Sampling(space), observe)


@pytest.mark.parametrize("space", [SPACES["discrete"], ROOM], ids=["discrete", "room"])
def test_training_behind_a_model_that_hides_nothing_is_training_without(space):
    """So comparing the two measures the model and not how the observation is written."""
    tasks = (
        HostTask("bare", lambda: Sampling(space)),
        HostTask("seen", lambda: PartialObservation(Sampling(space), "flicker:0")),
    )
    (bare,), (seen,) = (train(task, "mlp", CONFIG) for task in tasks)
    for one, other in zip(*(jax.tree.leaves(result.state.learner.policy) for result in (bare, seen)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert bare.curve == seen.curve


NAMES = ["FrozenLake-v1", "Blackjack-v1", "Taxi-v4"]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_own_are_hidden_by_one_flag_and_have_a_twin(name):
    [task] = plan(name, Options(observe=("flicker:0.5",), twin=True, config=CONFIG)).tasks
    hidden, twin = (condition.environment.build() for condition in task.conditions)
    assert obs_spec(hidden.observation_space) != obs_spec(twin.observation_space)
    assert twin.observation_space == make(name).observation_space
    progress = []
    (result,) = train(hidden, "mlp", CONFIG, on_progress=progress.append)
    assert progress[-1].steps == 96
    assert evaluate(hidden, arm_from("mlp"), CONFIG, result.state, episodes=2).length.min() > 0
    assert twin_of_task(make(name, observe="mask:1")).observation_space == make(name).observation_space


def test_minigrid_is_hidden_by_one_flag():
    pytest.importorskip("minigrid")
    name = "MiniGrid-MemoryS7-v0"
    task = make(name, observe=["mask:direction", "flicker:0.5"], max_steps=10)
    assert obs_spec(task.observation_space) == obs_spec(Dict(image=make(name).observation_space["image"]))
    (result,) = train(task, "mlp", CONFIG)
    assert result.curve.episodes >= 8
    assert twin_of_task(task).observation_space == make("MiniGrid-MemoryS7-v0").observation_space
