"""MiniGrid behind `minigrid:`: grids as planes or pixels, missions as numbers, the whole grid as the twin."""

import gymnasium
import jax
import numpy as np
import pytest

from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs.adapters.minigrid import minigrid_ids
from thrust_rl.envs.adapters.missions import WORDS, Blanks, Words, mission_reader
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.envs.spaces import Choices, Image, obs_spec
from thrust_rl.training.evaluate import evaluate
from thrust_rl.training.train import train

minigrid = pytest.importorskip("minigrid", reason="MiniGrid is not installed: pip install 'thrust-rl[minigrid]'")

MODULE = "minigrids_for_tests"
MEMORY = "minigrid:MiniGrid-MemoryS7-v0"
OBJECTS, COLORS = 11, 6


def both(name, **params):
    """The environment as the adapter gives it, and as MiniGrid does."""
    adapted = make(name, **params).build()
    return adapted, adapted.unwrapped


def test_planes_say_what_is_where():
    adapted, plain = both(MEMORY)
    adapted.action_space.seed(0)
    obs, _ = adapted.reset(seed=0)
    for _ in range(30):
        symbols = plain.gen_obs()["image"]
        assert obs["image"].shape == (7, 7, 21)
        for x in range(7):
            for y in range(7):
                kind, color, state = symbols[x, y]
                hot = np.flatnonzero(obs["image"][y, x])  # a row is a y
                assert hot.tolist() == [kind, OBJECTS + color, OBJECTS + COLORS + state]
        assert obs["direction"] == plain.agent_dir
        assert set(obs) == {"image", "direction"}  # there is but one mission
        assert adapted.observation_space.contains(obs)
        obs, _, terminated, truncated, _ = adapted.step(adapted.action_space.sample())
        if terminated or truncated:
            obs, _ = adapted.reset()


def test_the_twin_shows_the_whole_grid_and_the_agent_in_it():
    twin = twin_of_task(make("minigrid:MiniGrid-MemoryS9-v0"))
    env = twin.build()
    obs, _ = env.reset(seed=1)
    assert obs["image"].shape == (9, 9, 21)
    x, y = env.unwrapped.agent_pos
    agent = np.argwhere(obs["image"][..., minigrid.core.constants.OBJECT_TO_IDX["agent"]])
    assert agent.tolist() == [[y, x]]
    assert obs["image"][y, x, OBJECTS + COLORS + env.unwrapped.agent_dir] == 1
    assert obs["image"][3, 1].any()  # the object to remember: two cells from the middle of the left wall
    assert twin_of_task(twin) is None


def test_grids_that_are_not_square_are_filled_up():
    env = twin_of_task(make("minigrid:MiniGrid-KeyCorridorS3R1-v0")).build()  # 7 columns, 3 rows
    obs, _ = env.reset(seed=0)
    assert obs["image"].shape == (7, 7, 21) and not obs["image"][3:].any() and obs["image"][:3].any(axis=-1).all()
    part = obs_spec(env.observation_space).tree["image"]
    assert part == Image((7, 7, 21), high=1.0)  # not mistaken for one with channels first


def test_images_of_pixels(unchecked):
    task = make(MEMORY, image="pixels", tile_size=4)
    assert obs_spec(task.observation_space).tree["image"] == Image((28, 28, 3), high=255.0)
    env, whole = task.build(), twin_of_task(task).build()
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs) and len(np.unique(obs["image"])) > 3
    assert np.array_equal(obs["image"], env.unwrapped.get_frame(tile_size=4, agent_pov=True))
    assert whole.reset(seed=0)[0]["image"].shape == (28, 28, 3)
    with pytest.raises(ConfigError, match="'symbols' or 'pixels'"):
        make(MEMORY, image="rgb")


def test_missions_with_blanks_are_read_as_what_fills_them():
    env = make("minigrid:MiniGrid-GoToObject-6x6-N2-v0").build()
    colors, kinds = env.unwrapped.observation_space["mission"].ordered_placeholders
    for seed in range(5):
        obs, _ = env.reset(seed=seed)
        color, kind = obs["mission"]
        assert env.unwrapped.mission == f"go to the {colors[color]} {kinds[kind]}"
        assert env.observation_space.contains(obs)


def test_missions_of_a_grammar_are_read_word_by_word():
    env = make("minigrid:BabyAI-GoToSeqS5R2-v0").build()
    obs, _ = env.reset(seed=0)
    words = [WORDS[number - 2] for number in obs["mission"] if number]
    assert " ".join(words).replace(" ,", ",") == env.unwrapped.mission
    assert isinstance(obs_spec(env.observation_space).tree["mission"], Choices)


def test_what_reads_missions():
    def space(function, blanks):
        return minigrid.core.mission.MissionSpace(function, ordered_placeholders=blanks)

    assert mission_reader(space(lambda: "go", None)) is None
    reader = mission_reader(space(lambda a, b: f"{a} or {b}", [["x", "y"], ["x", "y", "z"]]))
    assert isinstance(reader, Blanks) and reader.read("y or z").tolist() == [1, 2]
    assert reader.space == gymnasium.spaces.MultiDiscrete([2, 3])
    many = [[str(i) for i in range(200)]] * 2
    assert isinstance(mission_reader(space(lambda a, b: f"{a} {b}", many)), Words)  # too many to list
    assert Words(length=2).read("go away soon").tolist() == [WORDS.index("go") + 2, 1]


def test_names():
    assert make("MiniGrid-MemoryS7-v0").observation_space == make(MEMORY).observation_space
    assert {"MiniGrid-MemoryS17Random-v0", "BabyAI-BossLevel-v0"} <= set(minigrid_ids())
    assert make(MEMORY, agent_view_size=5).observation_space["image"].shape == (5, 5, 21)
    with pytest.raises(ConfigError, match="did you mean 'MiniGrid-MemoryS9-v0'"):
        make("minigrid:MiniGrid-MemoryS8-v0")


def test_one_of_ones_own_is_read_as_minigrids_are():
    """By a class of a module, by an id that the module registers, and with pixels; the twin shows the whole grid."""
    theirs = make("minigrid:MiniGrid-GoToObject-6x6-N2-v0").build()
    expected = [theirs.reset(seed=3)[0], *(theirs.step(action)[0] for action in (0, 2, 1))]
    for name in ("GoToObject", "Mine-v0", "mine"):
        task = make(f"{MODULE}:{name}")
        assert task.observation_space == theirs.observation_space
        env = task.build()
        for one, other in zip([env.reset(seed=3)[0], *(env.step(a)[0] for a in (0, 2, 1))], expected, strict=True):
            jax.tree.map(np.testing.assert_array_equal, one, other)
        twin = twin_of_task(task)
        assert twin.observation_space["image"].shape == (6, 6, 21) and twin_of_task(twin) is None
        obs, _ = twin.build().reset(seed=3)
        assert obs["image"][..., minigrid.core.constants.OBJECT_TO_IDX["agent"]].sum() == 1
    pictures = make(f"{MODULE}:pictures")
    assert pictures.observation_space["image"] == gymnasium.spaces.Box(0, 255, (28, 28, 3), np.uint8)
    assert pictures.observation_space.contains(pictures.build().reset(seed=0)[0])
    hidden = make(f"{MODULE}:mine", observe=["mask:image,direction", "flicker:1.0"])
    assert list(hidden.observation_space) == ["mission"] and not hidden.build().reset(seed=0)[0]["mission"].any()
    assert twin_of_task(hidden).observation_space["image"].shape == (6, 6, 21)


@pytest.mark.parametrize(("arm", "params"), [("gru", {}), ("mlp", {"image": "pixels", "tile_size": 3})])
def test_it_trains_and_is_evaluated(arm, params):
    config = TrainConfig(
        total_timesteps=64, num_envs=2, num_steps=16, ppo=PPOConfig(n_epochs=1, envs_per_minibatch=2, batch_size=32)
    )
    task = make(MEMORY, max_steps=10, **params)
    [result] = train(task, arm, config)
    assert result.curve.episodes >= 6
    episodes = evaluate(task, arm_from(arm), config, result.state, episodes=2)
    assert (episodes.length <= 10).all() and (episodes.episode_return >= 0).all()
