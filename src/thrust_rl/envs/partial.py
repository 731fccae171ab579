"""Any environment seen through observation models: compiled ones, and Gymnasium's through a wrapper."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from thrust_rl.config import ConfigError
from thrust_rl.envs.core import FunctionalEnv, ObservationModel
from thrust_rl.envs.host_sensor import stream_key_data
from thrust_rl.envs.observation.layout import Layout
from thrust_rl.envs.observation.mask import Hide, Mask
from thrust_rl.envs.observation.names import coordinate_names, names_after
from thrust_rl.envs.observation.one_hots import OneHots
from thrust_rl.envs.observation.relay import Relay
from thrust_rl.envs.observation.stack import models_of, ordinals, stacked
from thrust_rl.envs.observation.text import Observe, format_observe, observation_model
from thrust_rl.envs.parted_sensor import PartedSensor
from thrust_rl.envs.spaces import Choices
from thrust_rl.envs.stateful import StatefulEnv


def observed(env: FunctionalEnv, observe: Observe) -> FunctionalEnv:
    """The environment seen through models, which come behind the sensor that it has. They see choices as one-hots.

    Raises:
        ConfigError: a text says nothing that is known, or a model does not fit the observations.

    Example:
        >>> from thrust_rl.envs.registry import make
        >>> env = observed(make("CartPole-v1"), ["mask:cart_velocity,pole_velocity", "noise:0.1"])
        >>> env.name, env.observation_space.shape
        ('CartPole-v1|mask:1,3|noise:0.1', (2,))
    """
    model = observation_model(observe, _fitting(coordinate_names(env.name), env.observation_space))
    name = "|".join([env.name, *(_described(single) for single in models_of(model))])
    sensor = stacked(env.sensor, model)
    if isinstance(env.physics.observation_space, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete):
        sensor = _behind_choices(sensor, Layout(env.physics.observation_space))
    return dataclasses.replace(env, name=name, sensor=sensor)


def _behind_choices(model: ObservationModel, layout: Layout) -> ObservationModel:
    """The model, if it is any, seeing one-hots."""
    [leaf] = layout.leaves
    assert isinstance(leaf.part, Choices)
    models = models_of(model)
    keeps_bits = all(isinstance(one, Hide | Mask) or (isinstance(one, Relay) and one.whole_frames) for one in models)
    return OneHots(model, leaf.part.sizes, leaf.part.starts, keeps_bits) if models else model


class PartialObservation(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium environment that policies can be trained on, seen through observation models.

    `info["blank"]` says whether the frame was blanked. Rewards, ends and the environment's own random numbers are those
    of the environment without the wrapper, its twin. The wrapper draws the numbers of the compiled model: over a
    `StatefulEnv` it gives the frames of the same environment with the model as its sensor. Over another environment the
    stream is that of the seed given to `reset`; without one it goes on, and without any it begins at random.

    A `Box` is shown to the models as it is. Floats become float32, as everywhere in the library; integers, such as
    those of images, stay what they are. Of every other observation the models see the numbers of all parts as one
    vector, choices as one-hots, and every image on its own; what is left goes back to its place in the Dict or Tuple,
    choices as a `MultiBinary` (a `Box`, where a model makes other numbers of zeros and ones). A part that is hidden as
    a whole is left out. An `action_mask` in a Dict passes untouched: it says what may be done.

    Args:
        env: what to wrap. Wrappers may be stacked: two of them equal one with both lists.
        observe: a model, a text such as "mask:1,3", or a list of either, the first nearest to the environment. Texts
            may name coordinates of well-known tasks, of those whose `metadata["coordinates"]` lists their names, and
            parts of a Dict or Tuple, as `envs.observation.layout.Layout` calls them.

    Raises:
        ConfigError: policies cannot read the observations, a text says nothing that is known, or a model does not fit.

    Example:
        >>> env = PartialObservation(gymnasium.make("Pendulum-v1"), ["mask:velocity", "flicker:1.0"])
        >>> obs, info = env.reset(seed=0)
        >>> obs.tolist(), info["blank"], gymnasium.make(env.spec).observation_space.shape
        ([0.0, 0.0], True, (2,))
        >>> PartialObservation(gymnasium.make("Blackjack-v1"), "mask:obs.1").observation_space
        Tuple(MultiBinary(32), MultiBinary(2))
    """

    def __init__(self, env: gymnasium.Env[Any, Any], observe: Observe) -> None:
        layout = Layout(env.observation_space)
        names = fitting_names(known_names(env), layout)
        self.model: ObservationModel = observation_model(observe, names)
        models = relays(self.model)
        RecordConstructorArgs.__init__(self, observe=_recorded(self.model))
        gymnasium.Wrapper.__init__(self, env)
        self.names = None if names is None else names_after(models, names)  # of the coordinates left to see
        inner = inner_models(env)
        self._sensor = PartedSensor(layout, models, ordinals((*inner, *models))[len(inner) :])
        self.observation_space = self._sensor.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; with a seed, the sensor's clock begins anew too."""
        obs, info = self.env.reset(seed=seed, options=options)
        if seed is not None or not self._sensor.begun:
            self._sensor.begin(_key_data(self.env, seed))
        self._sensor.begin_episode()
        return self._seen(obs, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One transition; one tick of the sensor's clock.

        Raises:
            ValueError: nothing has begun yet.
        """
        if not self._sensor.begun:
            raise ValueError("step() before reset(): call reset() to begin the first episode")
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._sensor.tick()
        seen, info = self._seen(obs, info)
        return seen, reward, terminated, truncated, info

    def _seen(self, obs: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        seen, blank = self._sensor.relay(obs, bool(info.get("blank", False)))
        return seen, {**info, "blank": blank}


def known_names(env: gymnasium.Env[Any, Any]) -> tuple[str, ...] | None:
    """Names of the coordinates that an environment is known to show; wrappers may have made others of them."""
    outer: Any = env
    while isinstance(outer, gymnasium.Wrapper) and not isinstance(outer, PartialObservation):
        outer = outer.env
    if isinstance(outer, PartialObservation):
        return outer.names
    if "coordinates" in outer.metadata:
        return tuple(outer.metadata["coordinates"])
    known = outer.functional.name if isinstance(outer, StatefulEnv) else outer.spec.id if outer.spec else ""
    return coordinate_names(known)


def fitting_names(names: tuple[str, ...] | None, layout: Layout) -> tuple[str, ...] | None:
    """These, if there are as many as coordinates; else those of the parts."""
    return names if names is not None and len(names) == layout.coordinates else layout.names


def _fitting(names: tuple[str, ...] | None, space: gymnasium.spaces.Space[Any]) -> tuple[str, ...] | None:
    if isinstance(space, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete):
        return Layout(space).names
    shape = space.shape or (0,)
    return names if names is not None and len(names) == shape[-1] else None


def relays(model: ObservationModel) -> tuple[Relay, ...]:
    """The single models of one, all of which can make frames on the host.

    Raises:
        ConfigError: one cannot.
    """
    models = models_of(model)
    for single in models:
        if not isinstance(single, Relay):
            raise ConfigError(
                f"{single} is no Relay, so its frames can not be made outside of compiled code: make it a subclass of"
                " thrust_rl.envs.observation.Relay, or use it as the sensor of a FunctionalEnv"
            )
    return tuple(single for single in models if isinstance(single, Relay))


def _recorded(model: ObservationModel) -> list[Any]:
    """As texts, which a spec can keep as JSON; models that have none as they are."""
    return [_text(single) or single for single in models_of(model)]


def _described(model: ObservationModel) -> str:
    return _text(model) or type(model).__name__


def _text(model: ObservationModel) -> str | None:
    try:
        return format_observe(model)
    except ConfigError:
        return None


def inner_models(env: gymnasium.Env[Any, Any]) -> tuple[ObservationModel, ...]:
    """The models that frames pass before they leave `env`, nearest to the physics first."""
    if isinstance(env, PartialObservation):
        return (*inner_models(env.env), *models_of(env.model))
    if isinstance(env, gymnasium.Wrapper):
        return inner_models(env.env)
    return models_of(env.functional.sensor) if isinstance(env, StatefulEnv) else ()


def _key_data(env: gymnasium.Env[Any, Any], seed: int | None) -> NDArray[np.uint32]:
    """The stream of a seed; without one, that of the library's own environment, or any."""
    if seed is not None:
        return stream_key_data(seed)
    if isinstance(env.unwrapped, StatefulEnv):
        return np.asarray(env.unwrapped.clone_state().stream.key_data)[0]
    return stream_key_data(int(np.random.SeedSequence().generate_state(1)[0]))
