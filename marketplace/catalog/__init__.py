"""Reading what providers publish: bytes to offers to entries. Knows neither Django nor rows."""
