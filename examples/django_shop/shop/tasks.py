"""What is done after an order was taken."""

import time

from django.conf import settings

try:
    from django.tasks import task
except ImportError:  # Django 5.2
    from django_tasks import task

from shop.models import Charge, Order, Receipt


@task(transaction=True)
def charge(order_id: int) -> int:
    """Charge an order: its row, the task's success and the next task commit together, once."""
    order = Order.objects.get(pk=order_id)
    taken = Charge.objects.create(order=order, amount=order.amount)
    time.sleep(settings.PROVIDER_SECONDS)
    Order.objects.filter(pk=order_id).update(paid=True)
    send_receipt.enqueue(order_id)
    return taken.pk


@task(transaction=True)
def send_receipt(order_id: int) -> None:
    """Write the receipt of a charged order."""
    Receipt.objects.create(order_id=order_id)
