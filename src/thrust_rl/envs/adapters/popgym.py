"""POPGym's environments, and their fully observable twins: what POPGym calls the hidden Markov state."""

from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from thrust_rl.envs.adapters.packages import imported, require_id


class ShowState(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A POPGym environment that shows its hidden Markov state and nothing else."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        base: Any = env.unwrapped
        self.observation_space = base.state_space

    def observation(self, observation: Any) -> Any:
        """The state that the observation is about."""
        base: Any = self.env.unwrapped
        return base.get_state()


def popgym_env(name: str, /, *, twin: bool = False, **params: Any) -> gymnasium.Env[Any, Any]:
    """One of POPGym's environments.

    Args:
        name: as registered, for example "popgym-RepeatPreviousEasy-v0".
        twin: show the hidden Markov state instead of the observation.
        **params: of the environment.

    Raises:
        ConfigError: POPGym is not installed, or has no such environment.
    """
    require_id("popgym", name, popgym_ids())
    env: gymnasium.Env[Any, Any] = gymnasium.make(name, disable_env_checker=True, **params)
    return ShowState(env) if twin else env


def popgym_ids() -> list[str]:
    """What POPGym registers; its labyrinths are among them where mazelib is installed.

    Raises:
        ConfigError: POPGym is not installed.
    """
    imported("popgym", extra="popgym")
    return [name for name in registry if name.startswith("popgym-")]
