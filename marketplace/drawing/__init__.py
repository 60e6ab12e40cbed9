"""Pictures as plain numbers that a template draws. Each states its finding in words."""
