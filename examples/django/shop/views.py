from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from rota.django import on_commit
from shop.jobs import print_label, send_receipt
from shop.models import Order


@csrf_exempt
@require_POST
def place(request: HttpRequest) -> JsonResponse:
    with transaction.atomic():
        order = Order.objects.create(item=request.POST["item"])
        on_commit(send_receipt, order=order.pk)
        on_commit(print_label.options(priority=5), order=order.pk)
    return JsonResponse({"order": order.pk}, status=202)


def show(request: HttpRequest, number: int) -> JsonResponse:
    order = get_object_or_404(Order, pk=number)
    return JsonResponse(
        {"item": order.item, "receipt_sent_at": order.receipt_sent_at, "labelled_by": order.labelled_by}
    )
