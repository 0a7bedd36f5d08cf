"""A store and tables for effects, as the tests of the worker have them; and Django's settings for all."""

import os

import django

from tests.worker.conftest import prepared, store

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.integrations.django.settings")
django.setup()

__all__ = ["prepared", "store"]
