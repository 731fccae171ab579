"""A Gymnasium vector environment of which every environment is seen through observation models."""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from thrust_rl.envs.autoreset import autoreset_mode
from thrust_rl.envs.faults import Fault, fault_of
from thrust_rl.envs.host_sensor import stream_key_data
from thrust_rl.envs.inside_vector import Known, models_and_names
from thrust_rl.envs.observation.layout import Layout
from thrust_rl.envs.observation.names import names_after
from thrust_rl.envs.observation.stack import ordinals
from thrust_rl.envs.observation.text import Observe, observation_model
from thrust_rl.envs.parted_sensor import PartedSensor
from thrust_rl.envs.partial import fitting_names, relays
from thrust_rl.envs.vector import CompiledVectorEnv

Infos = dict[str, Any]


class PartialVectorObservation(VectorWrapper):
    """A `VectorEnv` of any autoreset mode, each of its environments seen as `PartialObservation` would show it.

    `info["blank"]` is an array that says which frames were blanked; where a same-step autoreset reports final frames,
    `info["final_info"]["blank"]` says it of those. Seeded alike, environment i draws what a separate one draws: the
    seeds are those of the list, or `seed + i`. Over the library's own vector it runs on stream i, as that does. Without
    a seed a stream goes on, and without any it begins at random.

    A reset with a `reset_mask` begins episodes where that says so; of the others the frames are shown that were shown
    last. Where a step only resets, as after an end in NEXT_STEP, no time passes for the sensor.

    Args:
        vector: what to wrap. A `SyncVectorEnv` or `AsyncVectorEnv` is asked for its first environment, of which names
            of coordinates and models inside are taken; the latter builds it once more, and closes it.
        observe: as of `PartialObservation`.

    Raises:
        ConfigError: as of `PartialObservation`; or the metadata name no autoreset mode.

    Example:
        >>> make_env = lambda: gymnasium.make("Pendulum-v1")
        >>> vector = gymnasium.vector.SyncVectorEnv([make_env, make_env])
        >>> obs, info = PartialVectorObservation(vector, ["mask:velocity", "flicker:1.0"]).reset(seed=0)
        >>> obs.tolist(), info["blank"].tolist()
        ([[0.0, 0.0], [0.0, 0.0]], [True, True])
    """

    knows_reset_mask = True  # a vector inside of it that does may be told to reset between two steps

    def __init__(self, vector: VectorEnv[Any, Any, Any], observe: Observe) -> None:
        super().__init__(vector)
        self._mode = autoreset_mode(vector)
        layout = Layout(vector.single_observation_space)
        self._given = batch_space(vector.single_observation_space, vector.num_envs)  # what comes in lies in it
        inner, known = _inside(vector)
        names = fitting_names(known, layout)
        own = relays(observation_model(observe, names))
        self.models = (*inner, *own)  # that frames pass before they leave, nearest to the physics first
        self.names = None if names is None else names_after(own, names)  # of the coordinates left to see
        come_before = ordinals(self.models)[len(inner) :]
        self._sensors = [PartedSensor(layout, own, come_before) for _ in range(vector.num_envs)]
        self.single_observation_space: gymnasium.Space[Any] = self._sensors[0].space
        self.observation_space = batch_space(self.single_observation_space, vector.num_envs)
        self._ended = np.zeros(vector.num_envs, bool)  # by the last step
        self._rows: list[Any] = []  # what was shown last of every environment; nothing before the first reset
        self._blank = np.zeros(vector.num_envs, bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Begin episodes, everywhere or where `options["reset_mask"]` says so; with seeds, sensors begin anew too."""
        mask = (options or {}).get("reset_mask")  # now: Gymnasium takes it out
        resets = np.ones(self.num_envs, bool) if mask is None or not self._rows else np.array(mask, bool)
        obs, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # Gymnasium takes None too
        for i, own in enumerate(_seeds(seed, self.num_envs)):
            if resets[i] and (own is not None or not self._sensors[i].begun):
                self._sensors[i].begin(self._key_data(i, own))
        self._begin_episodes(resets)
        self._ended[resets] = False
        return self._shown(obs, info, resets)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        """One transition of every environment, and one tick of its sensor's clock; or a reset, where it spends a step.

        Raises:
            ValueError: nothing has begun yet.
        """
        if not self._rows:
            raise ValueError("step() before reset(): call reset() to begin every environment")
        obs, reward, terminated, truncated, info = self.env.step(actions)
        resets = self._ended & (self._mode == AutoresetMode.NEXT_STEP)
        for i in np.flatnonzero(~resets).tolist():
            self._sensors[i].tick()
        self._begin_episodes(resets)
        self._ended = np.logical_or(terminated, truncated)
        if self._mode == AutoresetMode.SAME_STEP and self._ended.any():
            info = self._with_final_frames(info)
            self._begin_episodes(self._ended)
        seen, info = self._shown(obs, info, np.ones(self.num_envs, bool))
        return seen, reward, terminated, truncated, info

    def _begin_episodes(self, where: NDArray[np.bool_]) -> None:
        for i in np.flatnonzero(where).tolist():
            self._sensors[i].begin_episode()

    def _shown(self, obs: Any, info: Infos, fresh: NDArray[np.bool_]) -> tuple[Any, Infos]:
        """The frames of all environments; those that are not fresh as they were shown last."""
        came, given = _blank(info, self.num_envs), list(iterate(self._given, obs))
        if len(given) != self.num_envs:
            raise Fault(f"it gave {len(given)} observations for {self.num_envs} environments")
        rows = self._rows or given
        for i in np.flatnonzero(fresh).tolist():
            rows[i], self._blank[i] = self._relayed(i, given[i], came[i])
        self._rows = rows
        space, everywhere = self.single_observation_space, np.ones(self.num_envs, bool)
        seen = concatenate(space, rows, create_empty_array(space, self.num_envs))
        return seen, {**info, "blank": self._blank.copy(), "_blank": everywhere}

    def _with_final_frames(self, info: Infos) -> Infos:
        """What is seen of the frames that ended episodes within this step, at the time of this step."""
        if "final_obs" not in info:
            return info
        given, final_info = info["final_obs"], info.get("final_info", {})
        is_dense = not (isinstance(given, np.ndarray) and given.dtype == object)
        given = list(iterate(self._given, given)) if is_dense else given
        came, blank = _blank(final_info, self.num_envs), np.zeros(self.num_envs, bool)
        final = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(self._ended).tolist():
            final[i], blank[i] = self._relayed(i, given[i], came[i])
        final_info = {**final_info, "blank": blank, "_blank": self._ended.copy()}
        return {**info, "final_obs": final, "final_info": final_info}

    def _relayed(self, i: int, obs: Any, blank: bool) -> tuple[Any, bool]:
        """What arrives of a frame of environment i, and whether that is blank."""
        try:
            return self._sensors[i].relay(obs, blank)
        except Exception as error:
            raise Fault(fault_of(error), i) from error

    def _key_data(self, i: int, seed: int | None) -> NDArray[np.uint32]:
        """The stream of environment i, which has begun."""
        if isinstance(self.unwrapped, CompiledVectorEnv):
            return self.unwrapped.key_data[i]
        return stream_key_data(int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed)


def _inside(vector: VectorEnv[Any, Any, Any]) -> Known:
    """The models that frames pass before they leave `vector`, and names of the coordinates that it is known to show."""
    while isinstance(vector, VectorWrapper) and not isinstance(vector, PartialVectorObservation):
        vector = vector.env
    return (vector.models, vector.names) if isinstance(vector, PartialVectorObservation) else models_and_names(vector)


def _seeds(seed: int | Iterable[int | None] | None, num_envs: int) -> list[int | None]:
    """One for each environment, as Gymnasium gives them."""
    if seed is None:
        return [None] * num_envs
    return list(seed) if isinstance(seed, Iterable) else [seed + i for i in range(num_envs)]


def _blank(info: Infos, num_envs: int) -> list[bool]:
    """Which frames come blank."""
    blank: list[bool] = np.asarray(info.get("blank", np.zeros(num_envs)), bool).tolist()
    return blank
