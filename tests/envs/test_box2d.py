"""The velocity-masked lander by name: it trains where Box2D is installed, and says what to install where it is not."""

import sys

import numpy as np
import pytest

from thrust_rl.config import ConfigError, PPOConfig, TrainConfig, arm_from
from thrust_rl.envs import task
from thrust_rl.envs.catalogue import described
from thrust_rl.envs.named import make, twin_of_task
from thrust_rl.training.train import train

NAME = "VelocityMaskedLunarLander-v3"
# Box2D's wrapper types say nothing about their module, which Python 3.12 began to mind.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")


@pytest.fixture(name="box2d")
def box2d_is_installed():
    pytest.importorskip("Box2D", reason="Box2D is not installed: pip install 'thrust-rl[box2d]'")


@pytest.mark.usefixtures("box2d")
def test_it_shows_everything_but_velocities():
    seen, shown = make(NAME).build(), twin_of_task(make(NAME)).build()
    all_of_it, _ = shown.reset(seed=3)
    np.testing.assert_array_equal(seen.reset(seed=3)[0], all_of_it[[0, 1, 4, 6, 7]])
    for action in (2, 2, 1, 3, 0):
        np.testing.assert_array_equal(seen.step(action)[0], shown.step(action)[0][[0, 1, 4, 6, 7]])


@pytest.mark.usefixtures("box2d")
@pytest.mark.parametrize("name", [NAME, "LunarLander-v3"])
def test_it_trains_though_it_leaves_its_own_space(name):
    config = TrainConfig(total_timesteps=8 * 128, num_envs=8, num_steps=128, ppo=PPOConfig(n_epochs=1))
    [result] = train(make(name), arm_from("mlp"), config, seeds=[0])
    assert result.curve.episodes > 0
    assert not twin_of_task(make(NAME)).check_range


def test_without_box2d_one_line_says_what_to_install(monkeypatch):
    for module in [module for module in sys.modules if module.startswith(("Box2D", "gymnasium.envs.box2d"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    task._spaces.cache_clear()  # it may have been built before
    expected = "LunarLander-v3 cannot be built: Box2D is not installed: pip install 'thrust-rl[box2d]'"
    assert described(NAME).problem == expected
    with pytest.raises(ConfigError) as raised:
        make(NAME)
    assert str(raised.value) == expected
