"""Training in compiled environments: chunks of updates, one after the other, with everything else in between."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from thrust_rl.config import ArmConfig, TrainConfig
from thrust_rl.envs.core import FunctionalEnv
from thrust_rl.policies.actor_critic import count_parameters
from thrust_rl.training.curve import LearningCurve
from thrust_rl.training.keeping import Checkpoints, Keeper, kept_on_error
from thrust_rl.training.loop import CHUNK_CAPACITY, TrainState, UpdateRecord, initial_state, train_chunk
from thrust_rl.training.result import Progress, TrainResult, non_finite, progress_of

Tree = TypeVar("Tree")

CHUNK_SECONDS = 1.0  # how long one compiled call should take: progress and Ctrl-C wait for it


class _Program(NamedTuple):
    """The two compiled functions of training, and what compiling them took."""

    init: Callable[..., TrainState]
    chunk: Callable[..., tuple[TrainState, UpdateRecord]]
    seconds: float


class _Stand(NamedTuple):
    """Where the seeds of a program stand between two chunks: replaced as a whole, for Ctrl-C may come at any moment."""

    state: TrainState
    curves: list[LearningCurve]
    done: int  # updates


def train_compiled(
    env: FunctionalEnv,
    arm: ArmConfig,
    config: TrainConfig,
    seeds: tuple[int, ...],
    *,
    vectorized: bool,
    report: Callable[[Progress], None],
    checkpoints: Checkpoints | None,
) -> list[TrainResult]:
    """Train the seeds of one program; leaves have a leading seed axis where it is vectorized.

    Raises:
        TrainingError: a number was not finite.
    """
    keepers = [Keeper(checkpoints, env, arm, config, seed) for seed in seeds]
    found = [keeper.found for keeper in keepers if keeper.found is not None]
    if len({result.steps for result in found}) > 1 or len(found) < len(seeds):
        found = []  # they have to go on from the same step
    if found and found[0].steps >= config.num_updates * config.steps_per_update:
        return found
    group = _Group(env, arm, config, seeds, found, vectorized=vectorized)
    length = 1
    with kept_on_error(keepers, group.results):
        while (done := group.stand.done) < config.num_updates:
            due = keepers[0].updates_until_due(done)
            length = min(length, config.num_updates - done, due)
            seconds = group.advance(length)
            if due == length:
                _keep(keepers, group)
            report(progress_of(seeds, group.stand.curves, group.stand.done, config, group.seconds))
            length = max(1, min(CHUNK_CAPACITY, int(length * CHUNK_SECONDS / max(seconds, 1e-3))))
    return _keep(keepers, group)


class _Group:
    """The seeds of one program in the making.

    Args:
        env: what is trained in.
        arm: what is trained.
        config: budget, window and PPO settings.
        seeds: of the runs.
        found: what they go on from; empty where they begin.
        vectorized: whether they run side by side; otherwise there is one.
    """

    def __init__(
        self,
        env: FunctionalEnv,
        arm: ArmConfig,
        config: TrainConfig,
        seeds: tuple[int, ...],
        found: list[TrainResult],
        *,
        vectorized: bool,
    ) -> None:
        compiled_before = _compiled.cache_info().hits
        self._program = _compiled(env, arm, config, len(seeds) if vectorized else None)
        self._seconds_compile = 0.0 if _compiled.cache_info().hits > compiled_before else self._program.seconds
        self._seeds, self._config, self._vectorized = seeds, config, vectorized
        self._before = found[0].seconds_run if found else 0.0
        self._started = time.monotonic()
        self.stand = self._found(found) if found else self._first()

    def _first(self) -> _Stand:
        seeds = jnp.asarray(self._seeds if self._vectorized else self._seeds[0], jnp.uint32)
        return _Stand(self._program.init(seeds), [LearningCurve() for _ in self._seeds], 0)

    def _found(self, found: list[TrainResult]) -> _Stand:
        states = [result.state for result in found]
        state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states) if self._vectorized else states[0]
        return _Stand(state, [result.curve for result in found], found[0].steps // self._config.steps_per_update)

    @property
    def seconds(self) -> float:
        """Of running, compiling excluded."""
        return self._before + time.monotonic() - self._started

    def advance(self, length: int) -> float:
        """Run so many updates; the seconds that took.

        Raises:
            TrainingError: a number was not finite; the runs stand after the last update before.
        """
        started = time.monotonic()
        before, curves, done = self.stand
        state, records = self._run(before, length)
        good, broken = _sound_updates(records, length)
        curves = [curve.copy() for curve in curves]
        for index, curve in enumerate(curves):
            episode_return = np.asarray((_of_seed(records, index) if self._vectorized else records).episode_return)
            for i in range(good):
                curve.add((done + i + 1) * self._config.steps_per_update, episode_return[i])
        if broken:
            state, _ = self._run(before, good)
        self.stand = _Stand(state, curves, done + good)
        if broken:
            raise non_finite(broken, done + good + 1, self._config)
        return time.monotonic() - started

    def _run(self, state: TrainState, length: int) -> tuple[TrainState, UpdateRecord]:
        return jax.block_until_ready(self._program.chunk(state, jnp.asarray(length, jnp.int32)))

    def results(self) -> list[TrainResult]:
        """The runs so far."""
        now, curves, done = self.stand
        states = [_of_seed(now, i) for i in range(len(self._seeds))] if self._vectorized else [now]
        return [
            TrainResult(
                seed=seed,
                curve=curve,
                params=count_parameters(state.learner.policy),
                steps=done * self._config.steps_per_update,
                seconds_compile=self._seconds_compile,
                seconds_run=self.seconds,
                state=state,
            )
            for seed, curve, state in zip(self._seeds, curves, states, strict=True)
        ]


def _keep(keepers: list[Keeper], group: _Group) -> list[TrainResult]:
    results = group.results()
    for keeper, result in zip(keepers, results, strict=True):
        keeper.keep(result)
    return results


@functools.lru_cache(maxsize=8)
def _compiled(env: FunctionalEnv, arm: ArmConfig, config: TrainConfig, num_seeds: int | None) -> _Program:
    """Compile training for these settings; `num_seeds` adds a leading seed axis everywhere."""
    started = time.monotonic()
    init = functools.partial(initial_state, env, arm, config)
    chunk = functools.partial(train_chunk, env, arm, config)
    seed_shape = () if num_seeds is None else (num_seeds,)
    mapped_init: Callable[..., Any] = init if num_seeds is None else jax.vmap(init)
    mapped_chunk: Callable[..., Any] = chunk if num_seeds is None else jax.vmap(chunk, in_axes=(0, None))
    seed = jax.ShapeDtypeStruct(seed_shape, jnp.uint32)
    state = jax.eval_shape(mapped_init, seed)
    compiled_init = jax.jit(mapped_init).lower(seed).compile()
    compiled_chunk = jax.jit(mapped_chunk).lower(state, jax.ShapeDtypeStruct((), jnp.int32)).compile()
    return _Program(compiled_init, compiled_chunk, time.monotonic() - started)


def _sound_updates(records: UpdateRecord, length: int) -> tuple[int, list[str]]:
    """How many updates of a chunk were sound for every seed, and what was not in the one after them."""
    sound = {name: np.asarray(flags) for name, flags in records.sound.items()}
    everyone = {name: np.all(np.atleast_2d(flags), axis=0) for name, flags in sound.items()}  # of all seeds
    for i in range(length):
        broken = [name for name, flags in everyone.items() if not flags[i]]
        if broken:
            return i, broken
    return length, []


def _of_seed(tree: Tree, index: int) -> Tree:
    """One seed's share of a tree with a leading seed axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)
