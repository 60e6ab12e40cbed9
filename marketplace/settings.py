"""All settings, read from the environment by typed readers. See `.env.example` for the list."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ

from marketplace import environment, logs

BASE_DIR = Path(__file__).resolve().parent.parent
environ.Env.read_env(BASE_DIR / ".env")

DATA_DIR = Path(environment.text("LINKPROOF_DATA_DIR", str(BASE_DIR / "var")))

DATABASE_URL = environment.address("DATABASE_URL", "", ("postgres", "postgresql"))
REDIS_URL = environment.address("REDIS_URL", "", ("redis", "rediss"))
EMBEDDED = not (DATABASE_URL or REDIS_URL)
"""One process, SQLite, tasks in-process. Read by settings, checks and the permit of a fetch."""

DEBUG = environment.flag("DEBUG", default=False)
ALLOWED_HOSTS = environment.words(
    "ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"] if EMBEDDED else []
)
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS", [])


NO_SECRET_KEY = "no secret key is set"  # noqa: S105  stands in until a check stops the start


def _own_secret_key() -> str:
    """Embedded mode makes a key once and keeps it, so that sessions outlive a restart."""
    path = DATA_DIR / "secret_key"
    try:
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(50))
        return path.read_text("utf-8").strip()
    except OSError:
        return NO_SECRET_KEY


def _write_once(path: Path, text: str) -> None:
    """Whole or not at all, and the first of two processes wins."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:
        file.write(text)
        file.flush()
        with suppress(FileExistsError):
            os.link(file.name, path)


SECRET_KEY = environment.text("SECRET_KEY") or (_own_secret_key() if EMBEDDED else NO_SECRET_KEY)

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",  # urls.py looks for its pages: no command does
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "django_celery_beat",
    "django_htmx",
    "import_export",
    "simple_history",
    "marketplace",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "marketplace.views.direction.upright",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # A new address is closed until its view says that anyone may see it.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]

ROOT_URLCONF = "marketplace.urls"
WSGI_APPLICATION = "marketplace.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "marketplace.templating.loader.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
# Controls are written by the same engine as the pages that hold them.
FORM_RENDERER = "marketplace.templating.controls.Controls"

SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": DATA_DIR / "linkproof.sqlite3",
    "OPTIONS": {
        # A write takes its lock at the start, so two writers wait instead of failing halfway.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
STATEMENT_SECONDS = environment.whole("DATABASE_STATEMENT_SECONDS", 30, least=1, most=3600)


def _postgresql() -> dict[str, Any]:
    """No statement and no wait for a lock outlives the one who asked for it."""
    config: dict[str, Any] = environ.Env.db_url_config(DATABASE_URL)
    limits = f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout=5s"
    config["OPTIONS"] = {"connect_timeout": 5, "options": limits, **config.get("OPTIONS", {})}
    return {**config, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


DATABASES = {"default": _postgresql() if DATABASE_URL else SQLITE}

CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
CELERY_TASK_ALWAYS_EAGER = not REDIS_URL
CELERY_TASK_DEFAULT_QUEUE = environment.text("LINKPROOF_QUEUE", "linkproof")
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = None  # nothing is kept, so beat needs no daily task to clean it up
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_PUBLISH_RETRY = False  # the outbox tries again; a poller must not hang on a dead broker
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 400_000  # KiB, then the child is replaced
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # a broker that is full refuses; the worker outlives that
CELERY_BROKER_TRANSPORT_OPTIONS = (
    # Longer than any task, or a running one is delivered again.
    {"visibility_timeout": 600, "socket_timeout": 5, "socket_connect_timeout": 2}
    if REDIS_URL
    else {}
)
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_TIMEZONE = "UTC"

SAMPLE_SERVER_URL = environment.address("LINKPROOF_SAMPLE_URL", "http://127.0.0.1:8811", ("http",))
SAMPLE_SERVER_ADDRESS = (
    urlsplit(SAMPLE_SERVER_URL).hostname or "",
    urlsplit(SAMPLE_SERVER_URL).port or 80,
)

HOST_PAUSE_SECONDS = environment.whole("LINKPROOF_HOST_PAUSE_SECONDS", 2, least=1, most=3600)
"""Between two requests to one site, over all workers."""

FRESH_HOURS = environment.whole("LINKPROOF_FRESH_HOURS", 2, least=1, most=24 * 90)
AGEING_HOURS = environment.whole("LINKPROOF_AGEING_HOURS", 12, least=1, most=24 * 90)
HIDDEN_HOURS = environment.whole("LINKPROOF_HIDDEN_HOURS", 24, least=1, most=24 * 90)
"""Ages of a source's last success: fresh, ageing, stale, then hidden from the ranking."""

LOG_LEVEL = environment.choice("LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = logs.logging_config(LOG_LEVEL)
logs.configure_structlog()

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "shortlist"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
with suppress(OSError):  # a system check names a data folder that cannot be written to
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
WHITENOISE_USE_FINDERS = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
HTTPS = environment.flag("HTTPS", default=not EMBEDDED)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
CSRF_FAILURE_VIEW = "marketplace.views.errors.form_too_old"
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if HTTPS else 0
if environment.flag("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
