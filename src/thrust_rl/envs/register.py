"""The environments by their Gymnasium names, `thrust/<name>`."""

import gymnasium

_ENTRY_POINTS = {
    "CartPole-v1": ("CartPole", "cartpole"),
    "FlickeringCartPole-v0": ("FlickeringCartPole", "flickering_cartpole"),
    "MaskedCartPole-v0": ("MaskedCartPole", "masked_cartpole"),
}


def register_environments() -> None:
    """Make `gymnasium.make("thrust/CartPole-v1")` and its siblings work; doing it twice changes nothing.

    `gymnasium.make_vec` gets the compiled batch. The time limit is inside the environments.

    Example:
        >>> import gymnasium
        >>> register_environments()
        >>> gymnasium.make_vec("thrust/FlickeringCartPole-v0", num_envs=8, flicker_prob=0.3).num_envs
        8
    """
    for name, (single, vector) in _ENTRY_POINTS.items():
        identifier = f"thrust/{name}"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point=f"thrust_rl.envs.stateful:{single}",
                vector_entry_point=f"thrust_rl.envs.vector:{vector}",
            )
