from django.db import models


class Order(models.Model):
    item = models.CharField(max_length=100)
    receipt_sent_at = models.DateTimeField(null=True)
    labelled_by = models.IntegerField(null=True)
