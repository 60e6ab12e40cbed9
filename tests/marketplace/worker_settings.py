"""Services mode, but with the one loopback exception of embedded mode: the site of a test."""

from marketplace.settings import *  # noqa: F403

EMBEDDED = True
