"""Environments: physics plus an observation model, pure JAX, one environment at a time."""
