"""MiniGrid's environments, with grids as planes of what is where, and missions as numbers."""

from collections.abc import Iterator
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.envs.registration import registry
from numpy.typing import NDArray

from thrust_rl.config import require
from thrust_rl.envs.adapters.missions import mission_reader
from thrust_rl.envs.adapters.packages import imported, require_id

GridImage = Literal["symbols", "pixels"]
MISSION = "minigrid.core.mission.MissionSpace"
WITHOUT_SYMBOLS = ("OneHotPartialObsWrapper", "RGBImgObsWrapper", "RGBImgPartialObsWrapper", "SymbolicObsWrapper")
STATES = 4  # of a cell: open, closed or locked doors; the agent's four headings


class ReadableGrid(gymnasium.ObservationWrapper[Any, Any, Any]):
    """What a policy can read of a MiniGrid observation, a Dict of image, direction and mission.

    The image of symbols, three numbers for each cell that stand for kinds and not for amounts, becomes a byte image
    `[row, column, plane]` with one plane for every object, colour and state, 1 where it is and 0 elsewhere; grids that
    are not square are filled up with zeros. An image of pixels stays. The direction stays. The mission is left out
    where there is but one, else read as `missions` says.

    Args:
        env: a MiniGrid environment.
        image: "symbols" if its image holds symbols, "pixels" if it holds red, green and blue, or anything else that is
            to stay as it is.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], image: GridImage) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        self._mission = mission_reader(space["mission"])
        self._planes = _plane_tables() if image == "symbols" else None
        spaces = {name: inner for name, inner in space.spaces.items() if name != "mission"}
        if self._planes is not None:
            side, depth = max(space["image"].shape[:2]), sum(map(len, self._planes))
            spaces["image"] = gymnasium.spaces.Box(0, 1, (side, side, depth), np.uint8)
        if self._mission is not None:
            spaces["mission"] = self._mission.space
        self.observation_space = gymnasium.spaces.Dict(spaces)

    def observation(self, observation: Any) -> dict[str, Any]:
        """As numbers."""
        seen = {name: value for name, value in observation.items() if name != "mission"}
        if self._planes is not None:
            seen["image"] = planes(seen["image"], self._planes)
        if self._mission is not None:
            seen["mission"] = self._mission.read(observation["mission"])
        return seen


def planes(symbols: NDArray[Any], tables: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """An image of symbols `[x, y, channel]` as planes `[row, column, plane]`.

    Args:
        symbols: one number for each cell and channel.
        tables: for each channel, the planes of every number.

    Example:
        >>> grid = np.array([[[0], [1]], [[1], [1]], [[0], [0]]])  # three columns, two rows
        >>> planes(grid, [np.eye(2, dtype=np.uint8)])[..., 1].tolist()
        [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    columns, rows = symbols.shape[:2]
    side = max(columns, rows)
    filled = np.zeros((side, side, sum(map(len, tables))), np.uint8)
    hot = [table[symbols[..., channel]] for channel, table in enumerate(tables)]
    filled[:rows, :columns] = np.concatenate(hot, axis=-1).swapaxes(0, 1)
    return filled


def minigrid_env(
    name: str, /, *, twin: bool = False, image: GridImage = "symbols", tile_size: int = 8, **params: Any
) -> gymnasium.Env[Any, Any]:
    """One of MiniGrid's environments, BabyAI's among them.

    Args:
        name: as registered, for example "MiniGrid-MemoryS7-v0".
        twin: show the whole grid instead of what is in front of the agent.
        image: "symbols" for planes of what is where, "pixels" for a picture.
        tile_size: pixels along one cell of a picture.
        **params: of the environment, for example `agent_view_size=5`.

    Raises:
        ConfigError: MiniGrid is not installed, has no such environment, or `image` is something else.
    """
    require(image in ("symbols", "pixels"), f"image is {image!r}: it must be 'symbols' or 'pixels'")
    require_id("minigrid", name, minigrid_ids())
    wrappers = imported("minigrid.wrappers", extra="minigrid")
    env: gymnasium.Env[Any, Any] = gymnasium.make(name, disable_env_checker=True, **params)
    if image == "pixels":
        wrapper = wrappers.RGBImgObsWrapper if twin else wrappers.RGBImgPartialObsWrapper
        return ReadableGrid(wrapper(env, tile_size=tile_size), image)
    return ReadableGrid(wrappers.FullyObsWrapper(env) if twin else env, image)


def has_mission(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether observations are MiniGrid's, with a mission as a text. MiniGrid need not be installed to ask.

    Example:
        >>> has_mission(gymnasium.make("CartPole-v1"))
        False
    """
    space = env.observation_space
    mission = space.spaces.get("mission") if isinstance(space, gymnasium.spaces.Dict) else None
    return any(f"{kind.__module__}.{kind.__name__}" == MISSION for kind in type(mission).__mro__)


def readable(env: gymnasium.Env[Any, Any], *, twin: bool = False) -> gymnasium.Env[Any, Any]:
    """An environment of one's own made as MiniGrid's are, read as those are.

    An image that a wrapper of MiniGrid's has made of the symbols, of pixels for example, stays as it is.

    Args:
        env: its observations have a mission.
        twin: show the whole grid, as symbols.
    """
    wrappers = imported("minigrid.wrappers", extra="minigrid")
    if twin:
        return ReadableGrid(wrappers.FullyObsWrapper(env), "symbols")
    others = tuple(getattr(wrappers, name) for name in WITHOUT_SYMBOLS)
    return ReadableGrid(env, "pixels" if any(isinstance(layer, others) for layer in _layers(env)) else "symbols")


def _layers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """The environment and what it is wrapped around."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def minigrid_ids() -> list[str]:
    """What MiniGrid registers.

    Raises:
        ConfigError: MiniGrid is not installed.
    """
    imported("minigrid", extra="minigrid")
    return [name for name in registry if name.startswith(("MiniGrid-", "BabyAI-"))]


def _plane_tables() -> list[NDArray[np.uint8]]:
    constants = imported("minigrid.core.constants", extra="minigrid")
    sizes = (len(constants.OBJECT_TO_IDX), len(constants.COLOR_TO_IDX), STATES)
    return [np.eye(size, dtype=np.uint8) for size in sizes]
