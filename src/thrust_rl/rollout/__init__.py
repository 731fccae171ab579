"""Rollouts: how experience is collected and shaped."""
