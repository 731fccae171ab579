"""MiniGrid's missions, which are texts, as numbers."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

MAX_MISSIONS = 10_000  # to be listed beforehand; a longer list is read word by word
MAX_WORDS = 64  # of one mission: BabyAI's longest has about 40
WORDS = (
    ", a after and ball behind blue box door front go green grey in key left next object of on open pick purple put"
    " red right the then to up yellow you your"
).split()  # of BabyAI's grammar


@runtime_checkable
class MissionReader(Protocol):
    """What turns the texts of one environment into numbers."""

    @property
    def space(self) -> gymnasium.spaces.MultiDiscrete:
        """Where the numbers lie."""

    def read(self, mission: str) -> NDArray[np.int64]:
        """One text."""


@dataclasses.dataclass(frozen=True)
class Blanks:
    """Missions that fill in the blanks of one sentence: which word is in each of them."""

    sizes: tuple[int, ...]
    known: dict[str, tuple[int, ...]]

    @property
    def space(self) -> gymnasium.spaces.MultiDiscrete:
        """One number for each blank."""
        return gymnasium.spaces.MultiDiscrete(list(self.sizes))

    def read(self, mission: str) -> NDArray[np.int64]:
        """The words chosen.

        Raises:
            KeyError: the environment gives a mission that its space does not have.
        """
        return np.array(self.known[mission], np.int64)


@dataclasses.dataclass(frozen=True)
class Words:
    """Missions of a grammar: word after word. 0 is no word, 1 one that is not known, then come `WORDS`.

    Example:
        >>> Words().read("go to the red ball, then stop").tolist()[:9]
        [12, 30, 28, 26, 6, 2, 29, 1, 0]
    """

    length: int = MAX_WORDS

    @property
    def space(self) -> gymnasium.spaces.MultiDiscrete:
        """One number for each position."""
        return gymnasium.spaces.MultiDiscrete([len(WORDS) + 2] * self.length)

    def read(self, mission: str) -> NDArray[np.int64]:
        """The words in order; what is beyond the last position is left out."""
        words = mission.replace(",", " ,").split()[: self.length]
        numbers = [WORDS.index(word) + 2 if word in WORDS else 1 for word in words]
        return np.array(numbers + [0] * (self.length - len(numbers)), np.int64)


def mission_reader(space: Any) -> MissionReader | None:
    """What reads the missions of MiniGrid's space of texts; None where there is but one mission, which says nothing."""
    blanks: Sequence[Sequence[str]] | None = space.ordered_placeholders
    if type(space).__name__ != "MissionSpace":  # a space of its own kind, such as BabyAI's, does not list its missions
        return Words()
    if not blanks:
        return None
    sizes = tuple(map(len, blanks))
    if math.prod(sizes) > MAX_MISSIONS:
        return Words()
    choices = list(itertools.product(*map(range, sizes)))
    texts = [space.mission_func(*(words[i] for words, i in zip(blanks, each, strict=True))) for each in choices]
    return Blanks(sizes, dict(zip(texts, choices, strict=True)))
