"""The Celery application with one weak spot: the first worker that comes to it is killed there.

LINKPROOF_DIES_AT names the spot, "module.function" of marketplace.sync; LINKPROOF_DIED a file that
marks that it happened, so that the next one lives.
"""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path
from typing import Any

from celery.signals import worker_process_init

from marketplace.celery import app

__all__ = ["app"]


@worker_process_init.connect
def weaken(**_: Any) -> None:
    module, _, name = os.environ["LINKPROOF_DIES_AT"].rpartition(".")
    holder = importlib.import_module(f"marketplace.sync.{module}")
    strong, mark = getattr(holder, name), Path(os.environ["LINKPROOF_DIED"])

    def weak(*arguments: Any, **named: Any) -> Any:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return strong(*arguments, **named)

    setattr(holder, name, weak)
