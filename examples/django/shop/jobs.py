import os

from django.utils import timezone

from rota import every
from rota.django import app
from shop.models import Order


@app.job
def send_receipt(order: int) -> str:
    """Does not send the same one twice: a worker that dies in between is followed by another."""
    found = Order.objects.get(pk=order)
    if found.receipt_sent_at is None:
        found.receipt_sent_at = timezone.now()
        found.save()
    return f"receipt for {found.item}"


@app.job(isolation="process")
def print_label(order: int) -> None:
    """In a process of its own, which can be killed and has its memory measured."""
    Order.objects.filter(pk=order).update(labelled_by=os.getpid())


@app.job
async def count_orders() -> int:
    return await Order.objects.acount()


app.schedule("count-orders", count_orders, every("1m"))
