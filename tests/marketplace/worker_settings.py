"""Services mode, but with the one loopback exception of embedded mode: the site of a test."""

import os

from marketplace.settings import *  # noqa: F403

EMBEDDED = True

if "LINKPROOF_TEST_VISIBILITY" in os.environ:
    seconds = int(os.environ["LINKPROOF_TEST_VISIBILITY"])
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        **CELERY_BROKER_TRANSPORT_OPTIONS,  # noqa: F405
        "visibility_timeout": seconds,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
