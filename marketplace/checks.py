"""Mistakes in the environment, reported with an id and a hint before anything starts."""
