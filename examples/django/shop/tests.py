from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from rota import Invalid
from rota.django import app, on_commit
from rota.testing import drain, inline
from shop.jobs import send_receipt
from shop.models import Order


class InTheTransactionOfTheTest(TestCase):
    """Nothing is ever committed here, so Django keeps what should be done then; `execute=True` does it."""

    def test_a_receipt_is_sent(self) -> None:
        with inline(app) as inlined, self.captureOnCommitCallbacks(execute=True):
            order = self.client.post("/orders/", {"item": "tea"}).json()["order"]
            assert inlined.runs == []  # not yet
        assert [run.job for run in inlined.runs] == ["send_receipt", "print_label"]
        assert self.client.get(f"/orders/{order}/").json()["receipt_sent_at"] is not None

    def test_a_payload_is_refused_before_the_commit(self) -> None:
        with self.captureOnCommitCallbacks() as later, self.assertRaises(Invalid):
            on_commit(send_receipt, order="seven")
        assert later == []


class WithARealCommit(TransactionTestCase):
    """The real database, and the worker's own code."""

    def test_a_receipt_is_sent_after_the_commit(self) -> None:
        with transaction.atomic():
            order = Order.objects.create(item="tea")
            on_commit(send_receipt, order=order.pk)
            assert drain(app) == []
        (run,) = drain(app)
        assert run.result == "receipt for tea"

    def test_a_rollback_enqueues_nothing(self) -> None:
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            on_commit(send_receipt, order=1)
            raise ZeroDivisionError
        assert drain(app) == []

    def test_in_the_transaction_itself(self) -> None:
        """Both in one PostgreSQL: one commit, and not a moment between the two."""
        if connection.vendor != "postgresql":
            with self.assertRaisesRegex(Invalid, "same PostgreSQL"), transaction.atomic():
                send_receipt.enqueue_in(connection, order=1)
            return
        with transaction.atomic():
            order = Order.objects.create(item="coffee")
            run = send_receipt.enqueue_in(connection, order=order.pk)
            assert drain(app) == []
        drain(app)
        assert app.blocking.get(run).result == "receipt for coffee"
