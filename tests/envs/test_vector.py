"""The vector environment: Gymnasium's same-step contract over the compiled path's numbers."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from envs_for_tests import Short, environment
from thrust_rl.config import ConfigError
from thrust_rl.envs.pool import EnvPool
from thrust_rl.envs.register import register_environments
from thrust_rl.envs.stateful import FlickeringCartPole, StatefulEnv
from thrust_rl.envs.vector import CompiledVectorEnv

register_environments()

N = 6
NAMES = ["CartPole-v1", "FlickeringCartPole-v0", "MaskedCartPole-v0"]


@pytest.mark.parametrize("name", NAMES)
def test_make_vec_gives_the_compiled_batch(name):
    vector = gymnasium.make_vec(f"thrust/{name}", num_envs=8)
    assert type(vector) is CompiledVectorEnv and vector.num_envs == 8
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, info = vector.reset(seed=0)
    assert obs in vector.observation_space and vector.observation_space.shape[0] == 8
    assert set(info) == {"blank", "_blank"}
    obs, reward, terminated, truncated, _ = vector.step(vector.action_space.sample())
    assert obs in vector.observation_space and obs.dtype == np.float32
    assert reward.shape == terminated.shape == truncated.shape == (8,)
    vector.close()
    assert vector.closed


def test_parameters_reach_the_batch():
    vector = gymnasium.make_vec("thrust/FlickeringCartPole-v0", num_envs=3, flicker_prob=1.0, seed=2)
    obs, info = vector.reset()
    assert not obs.any() and info["blank"].all()
    with pytest.raises(ConfigError, match="has no parameter 'flicker'"):
        gymnasium.make_vec("thrust/FlickeringCartPole-v0", num_envs=3, flicker=1.0)


def test_it_is_a_pool_that_resets_what_ended():
    vector = gymnasium.make_vec("thrust/FlickeringCartPole-v0", num_envs=N)
    pool = EnvPool(FlickeringCartPole, N, seed=9)
    assert np.array_equal(vector.reset(seed=9)[0], pool.reset())
    ended = 0
    for actions in np.random.default_rng(0).integers(0, 2, (300, N)):
        obs, reward, terminated, truncated, info = vector.step(actions)
        result = pool.step(actions)
        assert np.array_equal(reward, result.reward)
        assert np.array_equal(terminated, result.terminated) and np.array_equal(truncated, result.truncated)
        assert ("final_obs" in info) == result.over.any()
        for i in range(N):
            if not result.over[i]:
                assert np.array_equal(obs[i], result.obs[i]) and info["blank"][i] == result.info["blank"][i]
                continue
            ended += 1
            assert np.array_equal(info["final_obs"][i], result.obs[i])
            assert info["final_info"]["blank"][i] == result.info["blank"][i]
            assert np.array_equal(obs[i], pool.reset_env(i))
        if result.over.any():
            for mask in (info["_final_obs"], info["_final_info"], info["final_info"]["_blank"]):
                assert np.array_equal(mask, result.over)
            assert [final is not None for final in info["final_obs"]] == result.over.tolist()
    assert ended > 5 * N


def test_it_reports_as_gymnasiums_own_same_step_vector_does():
    def build():
        return StatefulEnv(environment(Short(longest=2)))

    own = CompiledVectorEnv(build().functional, 2)
    theirs = gymnasium.vector.SyncVectorEnv([build] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    own.reset(seed=0), theirs.reset(seed=0)
    seen = False
    for _ in range(20):
        ours, others = own.step([0, 0]), theirs.step([0, 0])
        for a, b in zip(ours[:4], others[:4], strict=True):
            assert a.shape == b.shape
        if ours[2].all() and others[2].all():
            assert set(ours[4]) == set(others[4]) and set(ours[4]["final_info"]) == set(others[4]["final_info"])
            assert ours[4]["final_obs"].dtype == others[4]["final_obs"].dtype == object
            seen = True
    assert seen


def test_gymnasiums_vector_wrappers_work_on_it():
    vector = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec("thrust/CartPole-v1", num_envs=4))
    vector.reset(seed=0)
    returns = []
    for _ in range(60):
        *_, info = vector.step(np.ones(4, int))
        if "episode" in info:
            returns += info["episode"]["r"][info["_episode"]].tolist()
    assert len(returns) > 10 and all(7 <= value <= 12 for value in returns)


def test_seeds_and_resets():
    vector = gymnasium.make_vec("thrust/CartPole-v1", num_envs=N, seed=1)
    first, second = vector.reset()[0], vector.reset()[0]
    assert np.array_equal(vector.reset(seed=1)[0], first) and np.array_equal(vector.reset()[0], second)
    assert len({tuple(row) for row in np.concatenate([first, second])}) == 2 * N
    unseeded = [gymnasium.make_vec("thrust/CartPole-v1", num_envs=N).reset()[0] for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_pictures_of_every_environment():
    vector = gymnasium.make_vec("thrust/FlickeringCartPole-v0", num_envs=N, render_mode="ansi")
    _, info = vector.reset(seed=0)
    for _ in range(15):
        assert ["blank" in text for text in vector.render()] == info["blank"].tolist()
        *_, info = vector.step(np.ones(N, int))
    pixels = gymnasium.make_vec("thrust/CartPole-v1", num_envs=2, render_mode="rgb_array")
    pixels.reset(seed=0)
    assert [image.shape for image in pixels.render()] == [(400, 600, 3)] * 2


def test_errors_say_what_to_do():
    vector = gymnasium.make_vec("thrust/CartPole-v1", num_envs=N, render_mode="ansi")
    with pytest.raises(ValueError, match=r"step\(\) before reset\(\): call reset"):
        vector.step(np.zeros(N, int))
    with pytest.raises(ValueError, match=r"render\(\) before reset\(\): call reset"):
        vector.render()
    with pytest.raises(ValueError, match="reset options .* unknown"):
        vector.reset(options={"reset_mask": np.ones(N, bool)})
    with pytest.raises(ConfigError, match="seed is -1"):
        vector.reset(seed=-1)
    vector.reset(seed=0)
    with pytest.raises(ValueError, match=r"shape \(2,\): expected \(6,\)"):
        vector.step([0, 1])
    with pytest.raises(TypeError, match="dtype float64: integers are expected"):
        vector.step(np.zeros(N))
    with pytest.raises(ValueError, match=r"actions\[0\] is 2: it must lie in \[0, 1\] \(the first of 6\)"):
        vector.step(np.full(N, 2))
    with pytest.raises(ConfigError, match="num_envs is 0"):
        gymnasium.make_vec("thrust/CartPole-v1", num_envs=0)
    with pytest.raises(ConfigError, match="render_mode is 'human'"):
        gymnasium.make_vec("thrust/CartPole-v1", num_envs=2, render_mode="human")
