"""The twin of an environment that comes wrapped in observation models is the same one without them."""

import numpy as np
import pytest

from thrust_rl.config import ConfigError, TrainConfig
from thrust_rl.envs.catalogue import described
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.plan import Options, plan

MODULE = "wrapped_envs_for_tests"


def lived(task, steps=9):
    """Observations, rewards and ends of two environments, under the same actions."""
    envs = task.start(2)
    seen = [(envs.begin(5).obs, np.zeros(2), np.zeros(2, bool))]
    for t in range(steps):
        hosted = envs.step(np.array([t % 2, 1]))
        seen.append((hosted.frames.obs, hosted.result.reward, hosted.result.over))
    envs.close()
    return [np.array(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize("observe", [(), ("mask:0",)])
@pytest.mark.parametrize(("name", "limit"), [("hidden", 4), ("limited", 3), ("HiddenTelling-v0", 3)])
def test_it_shows_what_was_hidden_and_is_otherwise_the_same(name, limit, observe):
    """Observation models of a module, of Gymnasium's registry, and those of --observe around them."""
    task = make(f"{MODULE}:{name}", observe=observe)
    twin = twin_of_task(task)
    assert task.observation_space.shape == (2 - len(observe),) and twin.observation_space.shape == (3,)
    obs, reward, over = lived(twin)
    _, hidden_reward, hidden_over = lived(task)
    np.testing.assert_array_equal(reward, hidden_reward)
    np.testing.assert_array_equal(over, hidden_over)
    assert over[limit].all() and not over[:limit].any()
    if limit == 4:
        np.testing.assert_array_equal(obs, lived(make(f"{MODULE}:bare"))[0])
    assert twin_of_task(twin) is None


def test_a_comparison_has_both_and_the_catalogue_knows():
    [task] = plan(f"{MODULE}:hidden", Options(twin=True, config=TrainConfig())).tasks
    shapes = [condition.environment.build().observation_space.shape for condition in task.conditions]
    assert shapes == [(2,), (3,)]
    assert [described(f"{MODULE}:{name}").has_twin for name in ("hidden", "bare", "secretive")] == [True, False, False]


def test_where_none_is_known_or_can_be_built_that_is_said():
    with pytest.raises(ConfigError, match="no fully observable twin is known for wrapped_envs_for_tests:bare"):
        EnvSpec(f"{MODULE}:bare", twin=True).build()
    with pytest.raises(ConfigError, match="Secretive is around a PartialObservation .*wrap in PartialObservation last"):
        EnvSpec(f"{MODULE}:secretive", twin=True).build()
