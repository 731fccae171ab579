"""Memory cells: what an agent carries from one step to the next, and where it forgets."""
