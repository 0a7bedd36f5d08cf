"""The Django app: its schema is brought up to date by `manage.py migrate`."""

from django.apps import AppConfig
from django.core import checks as django_checks
from django.db.models.signals import pre_migrate


class FaultlineConfig(AppConfig):
    """`INSTALLED_APPS = [..., "faultline.integrations.django"]`."""

    name = "faultline.integrations.django"
    label = "faultline"
    verbose_name = "Faultline"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and the migration of the schema."""
        from faultline.integrations.django import checks, schema

        django_checks.register(checks.check_settings)
        django_checks.register(checks.check_tasks)
        django_checks.register(checks.check_schema, django_checks.Tags.database)
        pre_migrate.connect(schema.migrate_before, sender=self, dispatch_uid="faultline.schema")
