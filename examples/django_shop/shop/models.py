"""Orders, what was charged for them, and the receipts that were sent."""

from django.db import models


class Order(models.Model):
    """What a customer bought."""

    customer = models.TextField()
    amount = models.IntegerField()
    paid = models.BooleanField(default=False)


class Charge(models.Model):
    """Money taken. No constraint keeps an order from being charged twice: its task does."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT)
    amount = models.IntegerField()


class Receipt(models.Model):
    """A mail to the customer."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT)
