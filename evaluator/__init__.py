"""Judges multi-GPU machines against workloads. Pure: no Django, network, clock or environment."""

__version__ = "0.1.0"
"""Part of the key of every kept verdict: a change in judgement needs a new one."""
