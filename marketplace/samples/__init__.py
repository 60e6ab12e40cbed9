"""Catalogs of invented providers that ship with Linkproof, and the local server for them."""
