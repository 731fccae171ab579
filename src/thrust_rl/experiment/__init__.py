"""Experiments: several arms and seeds over the cores there are, and what comes out."""
