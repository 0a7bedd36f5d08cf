"""Jobs as rows of Django, to be read: the model of the view `faultline.jobs`."""

from typing import Any, ClassVar

from django.db import models


class JobRow(models.Model):
    """A job in any state. It is read only: jobs change by the functions of Faultline alone."""

    id = models.BigIntegerField(primary_key=True)
    state = models.TextField()
    task = models.TextField()
    queue = models.TextField()
    priority = models.IntegerField()
    args = models.JSONField(null=True)
    result = models.JSONField(null=True)
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    crashes = models.IntegerField()
    run_at = models.DateTimeField()
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    worker = models.TextField(null=True)
    token = models.BigIntegerField(null=True)
    error = models.TextField(null=True)
    key = models.TextField(null=True)
    damage = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = 'faultline"."jobs'
        verbose_name = "job"
        ordering: ClassVar[list[str]] = ["-id"]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.task} {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refused."""
        raise TypeError(
            "a job is changed by Faultline alone: app.cancel(id), app.retry_now(id), app.replay(id)"
        )

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Refused."""
        raise TypeError("a job is not deleted; app.cancel(id) ends it, and the ledger keeps it for a while")
