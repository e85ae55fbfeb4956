"""Formats of task queues: Celery beat, APScheduler and rq-scheduler."""
