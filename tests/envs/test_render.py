"""Pictures: a blank frame is visibly blank, and the true state lies faintly behind it."""

import math

import gymnasium
import numpy as np
import pytest

from envs_for_tests import Counter, environment
from thrust_rl.config import ConfigError
from thrust_rl.envs import render
from thrust_rl.envs.register import register_environments
from thrust_rl.envs.render import cartpole_pixels, cartpole_text
from thrust_rl.envs.stateful import CartPole, FlickeringCartPole, StatefulEnv

register_environments()


def along_the_pole(image, position, angle):
    """The pixel halfway up the pole."""
    x = render.WIDTH / 2 + render.SCALE * position + 0.5 * render.SCALE * math.sin(angle)
    y = render.TRACK_ROW - 2 * render.CART_HALF[1] - 0.5 * render.SCALE * math.cos(angle)
    return image[int(y), int(x)].astype(int)


def on_the_cart(image, position):
    return image[int(render.TRACK_ROW - 6), int(render.WIDTH / 2 + render.SCALE * position)].astype(int)


@pytest.mark.parametrize(("position", "angle"), [(0.0, 0.0), (1.3, 0.2), (-2.0, -0.15)])
def test_a_visible_frame_shows_cart_and_pole_on_paper(position, angle):
    image = cartpole_pixels(position, angle)
    assert image.shape == (400, 600, 3) and image.dtype == np.uint8
    assert along_the_pole(image, position, angle).tolist() == list(render.POLE)
    assert on_the_cart(image, position).tolist() == list(render.CART)
    assert (image[:100] == 255).all()


@pytest.mark.parametrize(("position", "angle"), [(0.0, 0.0), (1.3, 0.2), (-2.0, -0.15)])
def test_a_blank_frame_is_hatched_with_the_true_state_faintly_behind(position, angle):
    blank = cartpole_pixels(position, angle, blank=True)
    nothing = cartpole_pixels(50.0, 0.0, blank=True)  # the cart is far outside the picture
    visible = cartpole_pixels(position, angle)
    greys = {tuple(colour) for colour in nothing[:100].reshape(-1, 3).tolist()}
    assert greys == {render.DARK_STRIPE, render.LIGHT_STRIPE}
    assert (np.abs(blank.astype(int) - visible).max(axis=-1) > 20).mean() > 0.9, "it looks different nearly everywhere"
    for pixel in (lambda image: along_the_pole(image, position, angle), lambda image: on_the_cart(image, position)):
        drawn = np.abs(pixel(blank) - pixel(nothing)).max()
        assert 8 <= drawn < 0.35 * np.abs(pixel(visible) - pixel(nothing)).max(), "there, but faint"
    touched = (blank != nothing).any(axis=-1)
    assert touched[(visible == render.CART).all(axis=-1)].all() and touched[(visible == render.POLE).all(axis=-1)].all()


def test_the_pole_leans_to_the_side_of_its_angle():
    for angle in (-0.2, 0.2):
        _, columns = np.nonzero((cartpole_pixels(0.0, angle) == render.POLE).all(axis=-1))
        assert np.sign(columns.mean() - render.WIDTH / 2) == np.sign(angle)


@pytest.mark.parametrize(("position", "angle"), [(2.4, 0.3), (-2.5, -0.3), (1e6, 7.0), (-1e6, -7.0)])
def test_states_beyond_the_picture_are_drawn_without_failing(position, angle):
    for blank in (False, True):
        assert cartpole_pixels(position, angle, blank=blank).shape == (400, 600, 3)
        assert len(cartpole_text(position, angle, blank=blank).splitlines()) == 6


def test_pictures_do_not_share_memory():
    one = cartpole_pixels(0.0, 0.0)
    one[:] = 0
    assert cartpole_pixels(0.0, 0.0).max() == 255


def test_text_shows_where_the_cart_is_and_where_the_pole_leans():
    right, left = cartpole_text(1.2, 0.2), cartpole_text(-1.2, -0.2)
    assert "/" in right and "\\" in left and "|" in cartpole_text(0.0, 0.0)
    assert right.splitlines()[4].index("[=]") > left.splitlines()[4].index("[=]")
    assert right.splitlines()[-1] == "position +1.20 m, angle +11.5 deg"
    assert {len(text.splitlines()[4]) for text in (right, left, cartpole_text(9.0, 0.0))} == {render.COLUMNS}


def test_text_says_that_a_frame_is_blank_and_gives_nothing_away():
    assert cartpole_text(1.2, 0.2, blank=True) == cartpole_text(-0.3, 0.0, blank=True)
    assert "blank frame" in cartpole_text(1.2, 0.2, blank=True)


def test_an_environment_draws_the_frame_it_gave():
    for mode, hatched in (("rgb_array", lambda image: image[0, 0, 0] != 255), ("ansi", lambda text: "blank" in text)):
        env = FlickeringCartPole(0.5, seed=0, render_mode=mode)
        _, info = env.reset()
        seen = set()
        for _ in range(8):
            assert hatched(env.render()) == info["blank"]
            snapshot = env.clone_state()
            seen.add(info["blank"])
            info = env.step(0)[4]
            other = FlickeringCartPole(0.5, render_mode=mode)
            other.restore_state(snapshot)
            assert hatched(other.render()) == snapshot.stream.frame.blank, (
                "a restored environment draws the snapshot's frame"
            )
        assert seen == {False, True}


def test_the_picture_is_of_the_true_state():
    env = CartPole(seed=3, render_mode="rgb_array")
    env.reset()
    for _ in range(5):
        obs, *_ = env.step(1)
    assert np.array_equal(env.render(), cartpole_pixels(float(obs[0]), float(obs[2])))


def test_gymnasium_can_collect_and_record():
    env = gymnasium.make("thrust/CartPole-v1", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(0)
    assert [frame.shape for frame in env.render()] == [(400, 600, 3)] * 2


def test_errors_say_what_to_do():
    with pytest.raises(ConfigError, match=r"render_mode is 'human': it must be 'rgb_array', 'ansi' or None"):
        CartPole(render_mode="human")
    with pytest.raises(ValueError, match=r"render\(\) before reset\(\): call reset"):
        CartPole(render_mode="ansi").render()
    env = CartPole(seed=0)
    env.reset()
    with pytest.raises(ValueError, match="without a render_mode: construct"):
        env.render()
    other = StatefulEnv(environment(Counter()), seed=0, render_mode="ansi")
    other.reset()
    with pytest.raises(ValueError, match="no picture of a Count: only cart-poles"):
        other.render()
