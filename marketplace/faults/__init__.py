"""The faults that Linkproof promises to survive, and a board of how each one went."""
