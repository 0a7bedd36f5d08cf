"""The settings of the shop; its database is in FAULTLINE_DSN."""

import os

from psycopg.conninfo import conninfo_to_dict

_dsn = conninfo_to_dict(os.environ.get("FAULTLINE_DSN", "dbname=shop"))

SECRET_KEY = "an example's"
DEBUG = True
USE_TZ = True
ROOT_URLCONF = "shop.urls"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _dsn["dbname"],
        "USER": _dsn.get("user", ""),
        "PASSWORD": _dsn.get("password", ""),
        "HOST": _dsn.get("host", ""),
        "PORT": _dsn.get("port", ""),
    }
}

INSTALLED_APPS = ["faultline.integrations.django", "shop"]

TASKS = {"default": {"BACKEND": "faultline.integrations.django.backend.FaultlineBackend"}}

PROVIDER_SECONDS = float(os.environ.get("PROVIDER_SECONDS", "0"))
"""How long the payment provider takes to answer."""
