"""The Celery application. Its settings are the Django settings that begin with CELERY_."""

from __future__ import annotations

import logging.config
import os
import sys
from typing import Any

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from marketplace.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

app = Celery("linkproof")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["marketplace"])


@setup_logging.connect
def use_our_logging(**_: Any) -> None:
    """Celery would add handlers of its own, with a format that breaks over several lines."""
    logging.config.dictConfig(settings.LOGGING)


@celeryd_init.connect
@beat_init.connect
def refuse_unsafe_worker(**_: Any) -> None:
    """Leaves by SystemExit, since a signal logs any other exception and carries on."""
    try:
        refuse_unsafe_start()
    except ImproperlyConfigured as mistakes:
        sys.exit(str(mistakes))
