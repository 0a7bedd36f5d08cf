from django.db import models


class Payment(models.Model):  # type: ignore[misc]
    order = models.IntegerField()
