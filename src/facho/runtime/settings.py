"""Django settings. Everything that differs between installations comes from `config.py`."""

import hashlib
import hmac
import secrets
from datetime import timedelta
from pathlib import Path

from cryptography.fernet import Fernet
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

from facho.runtime import config as facho_config

CONFIG = facho_config.load()
# Before the apps, because brands are choices of their fields.
facho_config.register_brands(CONFIG)

# Without a key (no `facho` command has prepared the data directory yet) a temporary one is used, and nothing can be
# stored with it.
FACHO_SECRET_KEYS = list(CONFIG.secret_keys) or [Fernet.generate_key().decode()]


def _derived(key: str) -> str:
    """Return the key that signs sessions, derived so that there is only one secret to keep and rotate."""
    return hmac.new(key.encode(), b"django", hashlib.sha256).hexdigest()


SECRET_KEY = _derived(CONFIG.secret_keys[0]) if CONFIG.secret_keys else secrets.token_hex(32)
SECRET_KEY_FALLBACKS = [_derived(key) for key in CONFIG.secret_keys[1:]]

# Networks of OLTs and destinations of channels; empty: all.
FACHO_OLT_NETWORKS = CONFIG.olt_networks
FACHO_CHANNEL_HOSTS = CONFIG.channel_hosts

FACHO_MAP_TILES = CONFIG.map_tiles
FACHO_MAP_ATTRIBUTION = CONFIG.map_attribution

DEBUG = False
_local = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = [*CONFIG.allowed_hosts, *filter(None, [CONFIG.public_host]), *_local]
FACHO_PUBLIC_URL = CONFIG.public_url
CSRF_TRUSTED_ORIGINS = [CONFIG.public_url] if CONFIG.public_url else []
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.public_url.startswith("https://")
# A year.
SECURE_HSTS_SECONDS = 31_536_000 if CONFIG.public_url.startswith("https://") else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.public_url else None
SESSION_COOKIE_NAME = "facho_session"
CSRF_COOKIE_NAME = "facho_csrf"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "facho.apps.changes",
    "facho.apps.accounts",
    "facho.apps.inventory",
    "facho.apps.maintenance",
    "facho.apps.jobs",
    "facho.apps.polling",
    "facho.apps.telemetry",
    "facho.apps.coordinator",
    "facho.problems",
    "facho.alerts",
    "facho.apps.dashboard",
]

MIDDLEWARE = [
    "facho.runtime.headers.security_headers",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "facho.apps.changes.middleware.acting_requests",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "facho.apps.inventory.middleware.Region",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "facho.apps.accounts.middleware.LastActivity",
    "facho.apps.accounts.middleware.RequiredTwoFactor",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "facho.apps.inventory.middleware.Zone",
]

ROOT_URLCONF = "facho.runtime.urls"
ASGI_APPLICATION = "facho.runtime.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Instead of those of Unfold.
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": CONFIG.database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

_validation = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_validation}.MinimumLengthValidator", "OPTIONS": {"min_length": CONFIG.password_length}},
    {"NAME": f"{_validation}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_validation}.CommonPasswordValidator"},
    {"NAME": f"{_validation}.NumericPasswordValidator"},
]
FACHO_REQUIRE_TOTP = CONFIG.require_totp

# Failed logins are counted in the database, for all processes: see `accounts/logins.py`.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    # Local accounts before others, so that they work while a login server is down.
    "facho.apps.accounts.backends.LocalBackend",
    *(["facho.apps.accounts.directory.DirectoryBackend"] if CONFIG.ldap_url else []),
    *(["facho.apps.accounts.oidc.OidcBackend"] if CONFIG.oidc_issuer else []),
]
AXES_HANDLER = "facho.apps.accounts.logins.LoginHandler"
AXES_FAILURE_LIMIT = CONFIG.login_failures
AXES_COOLOFF_TIME = timedelta(minutes=CONFIG.login_lock_minutes)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "facho.apps.accounts.logins.counted_address"
AXES_USERNAME_CALLABLE = "facho.apps.accounts.logins.counted_name"
AXES_RESET_ON_SUCCESS = True
# A lock ends by itself, even if the attempts go on.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
# A user may type the password in the wrong field.
AXES_SENSITIVE_PARAMETERS = ["username", "code", "csrfmiddlewaretoken"]
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
# The login page and the API answer to a locked user themselves, without the middleware of axes.
SILENCED_SYSTEM_CHECKS = ["axes.W002"]

SESSION_ENGINE = "facho.apps.accounts.sessions"
SESSION_COOKIE_AGE = CONFIG.session_days * 24 * 3600
FACHO_SESSION_IDLE = timedelta(minutes=CONFIG.session_idle)
LOGIN_URL = reverse_lazy("login")
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL

LANGUAGE_CODE = CONFIG.language
LANGUAGES = [("en", "English"), ("es", "Español")]
LOCALE_PATHS = [Path(__file__).parent.parent / "locale"]
FORMAT_MODULE_PATH = "facho.apps.inventory.regions"
USE_I18N = True
USE_TZ = True
TIME_ZONE = CONFIG.time_zone

STATIC_URL = "static/"
STATIC_ROOT = CONFIG.data_dir / "static"
# Files are served from the packages, so no collectstatic is needed.
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = False
SERVESTATIC_ALLOW_ALL_ORIGINS = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "facho.apps.accounts.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["facho.apps.accounts.permissions.ModelPermissions"],
    "DEFAULT_PAGINATION_CLASS": "facho.apps.inventory.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "facho.apps.rest.filters.LimitedSearch",
        "facho.apps.rest.filters.NullsLastOrdering",
    ],
    "DEFAULT_PARSER_CLASSES": [
        "facho.apps.rest.parsers.LimitedJSONParser",
        "facho.apps.rest.parsers.LimitedFormParser",
        "facho.apps.rest.parsers.LimitedMultiPartParser",
    ],
    "DEFAULT_SCHEMA_CLASS": "facho.apps.rest.schema.EmptyChoices",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    # Trusts the client address from our proxy, if there is one.
    "NUM_PROXIES": 1 if CONFIG.public_url else 0,
}
# An old name with a control character must not prevent an export.
IMPORT_EXPORT_ESCAPE_ILLEGAL_CHARS_ON_EXPORT = True

SPECTACULAR_SETTINGS = {
    "TITLE": "Facho",
    "DESCRIPTION": "Executions, quotas and readings of OLTs and ONUs. Times are UTC, powers are in dBm, durations in "
    "seconds.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "facho.apps.rest.schema.describe_refusals",
    ],
    # Several tables have a status, kind or severity. These names replace generated ones such as Status9d5Enum.
    "ENUM_NAME_OVERRIDES": {
        "OnuStateEnum": "facho.apps.telemetry.models.Onu.State",
        "ExecutionStatusEnum": "facho.apps.polling.models.STATUS_CHOICES",
        "QuotaStatusEnum": "facho.apps.coordinator.models.QuotaTracker.Status",
        "PlanStatusEnum": "facho.apps.coordinator.models.ExecutionPlan.Status",
        "PlanReasonEnum": "facho.apps.coordinator.models.ExecutionPlan.Reason",
        "ViolationSeverityEnum": "facho.apps.coordinator.models.QuotaViolation.Severity",
        "AlertSeverityEnum": "facho.alerts.models.SEVERITIES",
        "RuleKindEnum": "facho.alerts.models.RuleKind",
        "ChannelKindEnum": "facho.alerts.models.Channel.Kind",
        "TokenStateEnum": "facho.apps.accounts.models.ApiToken.State",
        "TokenOriginEnum": "facho.apps.accounts.models.ApiToken.Origin",
        "JobKindEnum": "facho.apps.jobs.models.SnmpJob.Kind",
        "PortLevelEnum": "facho.apps.telemetry.port_levels.Level",
        "BulkActionEnum": "facho.apps.inventory.bulk.CHOICES",
        "JobActionEnum": "facho.apps.jobs.bulk.JOB_ACTIONS",
        "ChangeActionEnum": "facho.apps.changes.models.Change.Action",
        "ProblemKindEnum": "facho.problems.models.Problem.Kind",
        "ProblemSeverityEnum": "facho.problems.models.Problem.Severity",
        "ProblemCauseEnum": "facho.problems.models.Problem.Cause",
        "ProblemConfidenceEnum": "facho.problems.models.Problem.Confidence",
        "ProblemEntryKindEnum": "facho.problems.models.ProblemEntry.Kind",
    },
}

UNFOLD = {
    "SITE_TITLE": "Facho",
    "SITE_HEADER": "Facho",
    "SITE_SUBHEADER": _("Administration"),
    "SITE_ICON": lambda request: static("dashboard/mark.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("dashboard/mark.svg")},
    ],
    "SITE_URL": "/",
    "STYLES": [lambda request: static("inventory/admin.css")],
    "SCRIPTS": [lambda request: static("inventory/admin.js")],
    # The header has this link: see `admin_menu`.
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "SIDEBAR": {"show_search": True, "navigation": "facho.apps.inventory.admin_menu.sidebar"},
    # The greys and the blue of the dashboard, from light to dark: see dashboard/base.css.
    "COLORS": {
        "base": {
            "50": "#f4f6f9",
            "100": "#edf0f4",
            "200": "#e1e6ed",
            "300": "#cbd3de",
            "400": "#8593a4",
            "500": "#5f6c7d",
            "600": "#526072",
            "700": "#36424f",
            "800": "#232d3a",
            "900": "#141b25",
            "950": "#0c1118",
        },
        "primary": {
            "50": "#eef4fe",
            "100": "#dbe7fc",
            "200": "#bcd2f9",
            "300": "#90b5f5",
            "400": "#5e90ee",
            "500": "#3a72e4",
            "600": "#1d5fd1",
            "700": "#194fb0",
            "800": "#18438f",
            "900": "#183a75",
            "950": "#112448",
        },
    },
}

LOGGING_CONFIG = None
