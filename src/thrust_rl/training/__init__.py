"""Learning: the PPO update and the loop around it."""
