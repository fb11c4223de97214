"""All settings of the control plane, from the environment. Every variable: docs/operations.md."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from webapp import env

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(env.text("BERTH_DATA", str(ROOT / "var"))).absolute()
env.load_defaults(DATA / "env")

DEBUG = False
SECRET_KEY = env.secret("SECRET_KEY")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        f"SECRET_KEY is not set, also not in {DATA / 'env'}. `make up` writes it there; of a site with "
        "another folder, name that: BERTH_DATA=/its/folder"
    )
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
# Where people find the site; links in calendar feeds start with it.
BERTH_URL = env.text("BERTH_URL", "http://127.0.0.1:8000").rstrip("/")
HTTPS = BERTH_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Asked by webapp/deploy_checks.py in our own words, or answered by a proxy that ends TLS.
SILENCED_SYSTEM_CHECKS = [f"security.W{number:03d}" for number in (4, 5, 8, 9, 12, 16, 18, 20, 21)]

INSTALLED_APPS = [
    "webapp",
    "reservations",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "channels",
    "django.contrib.postgres",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.middleware.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.middleware.persons_zone_and_language",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": env.database(env.secret("DATABASE_URL", f"sqlite:///{DATA / 'berth.sqlite3'}"))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Sessions and throttle counters never live in Redis: a frozen Redis must not slow a page.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "throttle": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "throttle",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    },
}

REDIS_URL = env.secret("REDIS_URL", "redis://127.0.0.1:6379/0")
CHANNEL_LAYERS = {
    "default": {
        # The other Redis layer goes deaf after a Redis restart.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    },
}

AUTH_USER_MODEL = "reservations.User"
AUTHENTICATION_BACKENDS = ["webapp.accounts.Backend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "webapp.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_USER_MODEL_EMAIL_FIELD = "email"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [ROOT / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
# The zone in which the site's people live; each person may choose another.
SITE_TIME_ZONE = env.zone("SITE_TIME_ZONE", "UTC")

STATIC_URL = "/static/"
STATIC_ROOT = DATA / "static"
NODE_MODULES = ROOT / "node_modules"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "webapp.finders.NpmFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "webapp.storage.StaticStorage"},
}

# Booking
BOOKING_GRID_MINUTES = env.integer("BOOKING_GRID_MINUTES", 5, minimum=1)
# "accounts": only people with an Account row get grants; "username": everybody is who they are here.
UNIX_NAMES = env.choice("UNIX_NAMES", "accounts", among=("accounts", "username"))
# Every kind of rule that the rule table may name, by dotted path.
RULE_KINDS = [
    "reservations.core.rules.max_length.MaxLength",
    "reservations.core.rules.horizon.Horizon",
    "reservations.core.rules.max_devices.MaxDevices",
]
# Whether people see who else holds a slot.
SHOW_OWNERS = env.flag("SHOW_OWNERS", default=True)

# REST: requests a minute, per person and per address without a credential, in each web process.
API_REQUESTS_PER_MINUTE = env.integer("API_REQUESTS_PER_MINUTE", 6_000, minimum=1)
API_ANONYMOUS_REQUESTS_PER_MINUTE = env.integer("API_ANONYMOUS_REQUESTS_PER_MINUTE", 120, minimum=1)
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "reservations.api.errors.handle",
    "DEFAULT_SCHEMA_CLASS": "reservations.api.schema.Described",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth",
    "DESCRIPTION": "Books GPU time on shared servers. Errors are application/problem+json.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False},
    "ENUM_NAME_OVERRIDES": {
        "BookingState": "reservations.models.Booking.State",
        "BookingKind": "reservations.models.Booking.Kind",
        "DeviceState": "reservations.models.Device.State",
        "DeviceKind": "reservations.models.Device.Kind",
    },
}

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # A refusal is an answer, not an event: 409 and 422 are daily business here.
        "django.request": {"level": "ERROR"},
        # A name that is not ours gets its 400; the trace of it would tell nothing.
        "django.security.DisallowedHost": {"handlers": [], "propagate": False},
    },
}
