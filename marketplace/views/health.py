"""Two plain answers for a supervisor: the process is up, and it can serve."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@login_not_required
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    return _plain("ok")


@login_not_required
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """503 while the database does not answer or waits for a migration."""
    trouble = _trouble()
    return _plain(trouble or "ready", 503 if trouble else 200)


def _trouble() -> str:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "the database does not answer"
    return f"migrations that wait: {len(waiting)}" if waiting else ""


def _plain(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status)
