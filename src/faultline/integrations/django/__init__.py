"""Faultline in a Django project: put it in INSTALLED_APPS, and its backend in TASKS."""

from faultline.integrations.django.project import DjangoApp, app

__all__ = ["DjangoApp", "app"]
