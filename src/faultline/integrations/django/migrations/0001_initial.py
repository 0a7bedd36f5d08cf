"""The model of the view `faultline.jobs`, which Django does not manage.

The schema itself is not installed here: see `faultline.integrations.django.schema`.
"""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """A model to read jobs by."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[object]] = [
        migrations.CreateModel(
            name="JobRow",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("state", models.TextField()),
                ("task", models.TextField()),
                ("queue", models.TextField()),
                ("priority", models.IntegerField()),
                ("args", models.JSONField(null=True)),
                ("result", models.JSONField(null=True)),
                ("attempt", models.IntegerField()),
                ("max_attempts", models.IntegerField()),
                ("crashes", models.IntegerField()),
                ("run_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("claimed_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("worker", models.TextField(null=True)),
                ("token", models.BigIntegerField(null=True)),
                ("error", models.TextField(null=True)),
                ("key", models.TextField(null=True)),
                ("damage", models.TextField(null=True)),
            ],
            options={
                "db_table": 'faultline"."jobs',
                "ordering": ["-id"],
                "verbose_name": "job",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
