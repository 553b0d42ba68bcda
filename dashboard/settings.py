"""The one settings file. Everything comes from the environment; it starts nothing and needs no database to be read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import environ
from csp.constants import NONE, SELF

from recovery_api.logs import LOG_FORMATS, LOG_LEVELS

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent


# Where the product keeps files: evidence of audits, a generated key. A cluster's executors need the evidence directory
# on storage they share.
VAR_DIR = Path(env.str("FENCEPOST_VAR_DIR", default=str(BASE_DIR / "var")))
FENCEPOST_EVIDENCE_URL = env.str("FENCEPOST_EVIDENCE_URL", default="")  # docs/evidence.md
FENCEPOST_EVIDENCE_DIR = Path(env.str("FENCEPOST_EVIDENCE_DIR", default=str(VAR_DIR / "evidence")))


# Runbooks: ours, which come with the release, and a folder of the team's own with files of the same names.
FENCEPOST_RUNBOOKS = Path(env.str("FENCEPOST_RUNBOOKS", default=str(BASE_DIR / "docs" / "runbooks")))
FENCEPOST_TEAM_RUNBOOKS = env.str("FENCEPOST_TEAM_RUNBOOKS", default="")


# What the embedded launcher sets, and what replaces it. Without DATABASE_URL everything that needs no database works
# (`judge`); the rest says what is missing (manage.py).
DATABASE_URL = env.str("DATABASE_URL", default="")
REDIS_URL = env.str("REDIS_URL", default="")
SPARK_REMOTE = env.str("SPARK_REMOTE", default="")
FENCEPOST_EVIDENCE_DAYS = env.int("FENCEPOST_EVIDENCE_DAYS", default=90)  # docs/retention.md
FENCEPOST_RECORDS_DAYS = env.int("FENCEPOST_RECORDS_DAYS", default=400)
FENCEPOST_HISTORY_DAYS = env.int("FENCEPOST_HISTORY_DAYS", default=400)
FENCEPOST_IN_PROCESS_ROWS = env.int("FENCEPOST_IN_PROCESS_ROWS", default=50_000)  # what reads fewer needs no Spark

DATABASES = {"default": env.db_url_config(DATABASE_URL)} if DATABASE_URL else {}
if DATABASES:
    # A connection is reused, and asked before it is: a restarted database costs one query, not one failed request.
    DATABASES["default"] |= {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
    # No call to it stays unanswered for good (recovery_api.postgresql); COPY and migrations are many calls, or unbounded.
    if "postgresql" in DATABASES["default"]["ENGINE"]:
        DATABASES["default"] |= {"ENGINE": "recovery_api.postgresql", "ANSWER_SECONDS": 120.0}
    # A network that swallows packets without a reset is noticed within half a minute, not in hours.
    for _name, _value in {
        "keepalives": 1,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }.items():
        DATABASES["default"].setdefault("OPTIONS", {}).setdefault(_name, _value)
    # Pages ask many small things: compiling such a query takes longer than running it.
    DATABASES["default"]["OPTIONS"].setdefault("options", "-c jit=off")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


# Secrets and exposure. Secure unless told otherwise: plain HTTP is for one's own machine.
def _secret_key() -> str:
    """From the environment, else a file made once. Empty where that cannot be kept: Django then refuses to use it."""
    if given := env.str("SECRET_KEY", default=""):
        return given
    path = VAR_DIR / "secret_key"
    try:
        VAR_DIR.mkdir(parents=True, exist_ok=True)
        new = VAR_DIR / f"secret_key.{os.getpid()}"
        with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(new, path)  # whole or not at all: two processes may start at once
        except FileExistsError:
            pass
        finally:
            new.unlink()
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


# Alerts (docs/alerts.md). Only the pager sends: the web process holds no destination's secret, and needs none of these
# but the address of its own pages, which messages point at.
FENCEPOST_URL = env.str("FENCEPOST_URL", default="")
FENCEPOST_HEARTBEAT_URL = env.str("FENCEPOST_HEARTBEAT_URL", default="")
FENCEPOST_ALERT_PRIVATE_ADDRESSES = env.list("FENCEPOST_ALERT_PRIVATE_ADDRESSES", default=[])
vars().update(env.email_url("EMAIL_URL", default="consolemail://"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("FENCEPOST_MAIL_FROM", default="fencepost@localhost")
FENCEPOST_HAS_MAIL = bool(env.str("EMAIL_URL", default=""))

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = _secret_key()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
IS_HTTPS = env.bool("FENCEPOST_HTTPS", default=True)
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # probes speak plain HTTP, and nothing of anybody's is answered
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_HTTPS
SECURE_HSTS_PRELOAD = IS_HTTPS
# Behind proxies: their addresses or networks, outermost first. What comes from elsewhere is believed nothing
# (dashboard.client_address).
BEHIND_PROXY = env.bool("BEHIND_PROXY", default=False)
FENCEPOST_TRUSTED_PROXIES = env.list("FENCEPOST_TRUSTED_PROXIES", default=["127.0.0.1"]) if BEHIND_PROXY else []
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]


# The applications. `workers` is one for its commands (judge, sink_install, demo); it has no models.
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "recovery_api",
    "dashboard",
    "workers",
]
MIDDLEWARE = [
    "dashboard.client_address.ClientAddressMiddleware",
    "dashboard.acting_characters.ActingCharactersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.access.AccessMiddleware",
]
ROOT_URLCONF = "dashboard.urls"
WSGI_APPLICATION = "dashboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.access.person",
            ]
        },
    }
]


# Static files come from the packages they were installed with (dashboard.finders), never from another host, and are
# served by the web process itself: nothing has to be collected first.
STATIC_URL = "static/"
STATIC_ROOT = env.str("STATIC_ROOT", default=None)  # for collectstatic, where a proxy serves them
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "dashboard.finders.PackageFilesFinder",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 300


# Pages run no inline script and no inline style, and talk to nobody but this server.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}


# Signing in. A session ends with the browser, or after half a day without a request.
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
CSRF_FAILURE_VIEW = "dashboard.views.errors.csrf_failed"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_SAVE_EVERY_REQUEST = False
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"


# Counters that web processes share (refused sign-ins). Where Redis is away each process counts for itself.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "fencepost"},
    "shared": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "fencepost",
        "OPTIONS": {
            "socket_connect_timeout": 1,
            "socket_timeout": 1,
            "serializer": "dashboard.sign_in_limit.WholeNumbers",
        },
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "fencepost"},
}


# REST.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "recovery_api.views.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["recovery_api.views.permission.ByTable"],
    "DEFAULT_THROTTLE_CLASSES": [
        "recovery_api.views.throttling.PersonThrottle",
        "recovery_api.views.throttling.AnonymousThrottle",
    ],
    "DEFAULT_PARSER_CLASSES": ["recovery_api.views.parsing.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "recovery_api.exceptions.exception_handler",
    "NUM_PROXIES": 0,  # dashboard.client_address has put the client's address where the connection's was
    "URL_FORMAT_OVERRIDE": None,
}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_PREFIX": "fp_"}  # nosec B105 # a name, no secret
KNOX_TOKEN_MODEL = "recovery_api.Token"  # nosec B105 # a name, no secret
MIGRATION_MODULES = {"knox": None}  # its migrations make a table that nothing would use: the token is our own model
FENCEPOST_API_RATES = {
    "person": env.str("FENCEPOST_API_RATE", default="1200/min"),
    "anonymous": env.str("FENCEPOST_API_RATE_ANONYMOUS", default="60/min"),
}
FENCEPOST_API_BODY_LIMIT_BYTES = env.int("FENCEPOST_API_BODY_LIMIT_BYTES", default=8 * 2**20)
SPECTACULAR_SETTINGS = {
    "TITLE": "Fencepost",
    "DESCRIPTION": "Finds what a crashed relay left undelivered, and delivers exactly that. See docs/api.md.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["recovery_api.views.permission.ByTable"],
    "PREPROCESSING_HOOKS": ["recovery_api.schema.api_only"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_PATCH": False,  # each body says itself what is needed: a change of an end needs its options
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SORT_OPERATIONS": False,
    "ENUM_NAME_OVERRIDES": {
        "AlertCause": "recovery_api.serializers.alerts.CAUSES",
        "AlertSeverity": "recovery_api.serializers.alerts.SEVERITIES",
        "AlertState": "recovery_api.serializers.alerts.ALERT_STATES",
        "DeliveryState": "recovery_api.serializers.alerts.DELIVERY_STATES",
        "AuditStatus": "recovery_api.models.AuditStatus",
        "ClaimState": "recovery_api.models.ClaimState",
        "DrillState": "recovery_api.models.DrillState",
        "ImageWord": "recovery_api.serializers.images.IMAGE_WORDS",
        "IncidentState": "recovery_api.serializers.incidents.STATES",
        "IntentState": "recovery_api.models.IntentState",
        "PipelineStatusWord": "recovery_api.serializers.history.STATUSES",
        "PlanState": "recovery_api.models.PlanState",
        "PurgeAnswer": ["no", "unknown", "yes"],
        "RecoveryState": "recovery_api.models.RecoveryState",
        "TokenState": ["standing", "expired", "revoked"],
        "RecoveryOutcome": "recovery_api.models.RecoveryOutcome",
    },
}


# Time. Stored, computed and shown in UTC.
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
LANGUAGE_CODE = "en"


# GET /metrics: a token, or addresses and networks, from which it is scraped. Neither: it is closed.
FENCEPOST_METRICS_TOKEN = env.str("FENCEPOST_METRICS_TOKEN", default="")
FENCEPOST_METRICS_FROM = env.list("FENCEPOST_METRICS_FROM", default=[])


# Celery, read by workers.celery. The broker only wakes someone up and the row is the obligation: no result is kept, a
# task whose process dies is handed out again, and one is reserved at a time. Who sends a wake-up waits a second at most
# (recovery_api.services.wakeups); the worker's own connection waits longer, for its blocking reads last a second.
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_TIMEOUT = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker outlives any outage of its broker
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 1, "socket_timeout": 10}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False  # a recovery goes on without its broker
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_ENABLE_UTC = True
CELERY_TIMEZONE = "UTC"
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"workers.tasks.intent_run": {"queue": "spark"}}  # a sender may name `default` for light work


# Logs: one line an event, to stderr; what a command prints stays alone on stdout. A level that there is not is said by
# `manage.py check`, and counts as the default: it must not keep a process from starting.
LOG_LEVEL_GIVEN = env.str("LOG_LEVEL", default="WARNING")
LOG_LEVEL = LOG_LEVEL_GIVEN.upper() if LOG_LEVEL_GIVEN.upper() in LOG_LEVELS else "WARNING"
LOG_FORMAT_GIVEN = env.str("LOG_FORMAT", default="line")
LOG_FORMAT = LOG_FORMAT_GIVEN if LOG_FORMAT_GIVEN in LOG_FORMATS else "line"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "recovery_api.logs.LineFormatter"},
        "json": {"()": "recovery_api.logs.JsonFormatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}
