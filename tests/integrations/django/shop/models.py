from django.db import models


class Order(models.Model):  # type: ignore[misc]
    customer = models.TextField()
    paid = models.BooleanField(default=False)


class Payment(models.Model):  # type: ignore[misc]
    order = models.IntegerField(null=True)


class Report(models.Model):  # type: ignore[misc]
    order = models.ForeignKey(Order, on_delete=models.CASCADE)
    lines = models.IntegerField()
