"""The project that Django's tests run in."""

import os

from psycopg.conninfo import conninfo_to_dict

_dsn = conninfo_to_dict(os.environ["FAULTLINE_DSN"])

SECRET_KEY = "of-tests"
USE_TZ = False
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": _dsn["dbname"], "USER": _dsn.get("user", ""),
        "HOST": _dsn.get("host", ""), "PORT": _dsn.get("port", ""), "PASSWORD": _dsn.get("password", ""),
    }
}  # fmt: skip
INSTALLED_APPS = ["faultline.integrations.django"]
