"""Readers of pasted terminal output: text to facts about one machine."""
