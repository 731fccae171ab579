"""Policies: encoder → memory cell → heads."""
