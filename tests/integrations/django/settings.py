"""A small project: as small as one can be that has the admin."""

import os

from psycopg.conninfo import conninfo_to_dict


def database(dsn: str) -> dict[str, object]:
    """An entry of DATABASES."""
    parts = conninfo_to_dict(dsn)
    return {
        "ENGINE": "django.db.backends.postgresql", "NAME": parts["dbname"], "USER": parts["user"],
        "HOST": parts["host"], "PORT": parts["port"],
    }  # fmt: skip


SECRET_KEY = "not-secret"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.integrations.django.urls"
DATABASES = {"default": database(os.environ["FAULTLINE_DSN"])} if "FAULTLINE_DSN" in os.environ else {}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "faultline.integrations.django",
    "tests.integrations.django.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
TASKS = {
    "default": {
        "BACKEND": "faultline.integrations.django.backend.FaultlineBackend",
        "QUEUES": ["default", "mail"],
    },
}
