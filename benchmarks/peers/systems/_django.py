"""The settings of a Django project with one task, for the systems whose tasks are Django's."""

import os

from psycopg.conninfo import conninfo_to_dict

_parts = conninfo_to_dict(os.environ.get("BENCH_DSN", ""))
_ours = os.environ.get("BENCH_DJANGO") == "faultline"

SECRET_KEY = "for a benchmark"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _parts.get("host", ""),
        "PORT": _parts.get("port", ""),
        "USER": _parts.get("user", ""),
        "NAME": _parts.get("dbname", ""),
        "CONN_MAX_AGE": None,
    }
}
INSTALLED_APPS = ["faultline.integrations.django"] if _ours else ["django_tasks", "django_tasks_db"]
TASKS = {
    "default": {
        "BACKEND": (
            "faultline.integrations.django.backend.FaultlineBackend"
            if _ours
            else "django_tasks_db.DatabaseBackend"
        )
    }
}
FAULTLINE = {"TASK_MODULES": ["faultline_django_"]}
