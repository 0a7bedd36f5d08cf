"""Take an order, and look at one."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt

from shop.models import Order
from shop.tasks import charge


@csrf_exempt
def orders(request: HttpRequest) -> JsonResponse:
    """POST: the order and its task commit together."""
    wanted = json.loads(request.body)
    with transaction.atomic():
        order = Order.objects.create(customer=wanted["customer"], amount=wanted["amount"])
        result = charge.enqueue(order.pk)
    return JsonResponse({"order": order.pk, "task": result.id}, status=202)


def order(request: HttpRequest, order_id: int) -> JsonResponse:
    """GET: whether it is paid."""
    found = get_object_or_404(Order, pk=order_id)
    return JsonResponse({"order": found.pk, "paid": found.paid})


def task(request: HttpRequest, task_id: str) -> JsonResponse:
    """GET: how its task stands."""
    result = charge.get_result(task_id)
    return JsonResponse({"status": result.status, "attempts": result.attempts})
