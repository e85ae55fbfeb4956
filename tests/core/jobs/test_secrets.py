"""Masking of secrets in data jobs."""

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.secrets import is_secret, masked, masked_url
from rota.registry.data_jobs import define_data_job, options_of


def test_secrets_are_not_shown() -> None:
    job = define_data_job(
        "ping",
        "http",
        {
            "url": "https://example.com/x?token=hidden&page=2",
            "method": "POST",
            "headers": {"Authorization": "hidden", "Cookie": "hidden", "X-Api-Key": "hidden", "Accept": "shown"},
            "body": {"password": "hidden", "list": [{"secret": "hidden", "name": "shown"}]},
            "secret": "hidden",
        },
    )
    tool = define_data_job("tool", "command", {"argv": ["x"], "env": {"PGPASSWORD": "hidden", "WHO": "shown"}})
    text = msgspec.json.encode([masked(job), masked(tool)]).decode()
    assert (text.count("hidden"), text.count("shown")) == (0, 3)
    assert "page=2" in text


def test_others_are_shown_as_they_are() -> None:
    plain = JobDefinition(name="crawl")
    assert masked(plain) is plain


@pytest.mark.parametrize(
    "url", ["https://example.com/", "https://example.com/?a=b", "https://example.com/{payload.token}"]
)
def test_urls_without_secrets(url: str) -> None:
    assert masked_url(url) == url


@pytest.mark.parametrize(
    ("name", "secret"), [("X-Auth", True), ("set-cookie", True), ("Idempotency-Key", False), ("Accept", False)]
)
def test_by_name(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_the_options_of_a_job_make_the_same_job() -> None:
    for kind, options in (
        ("http", {"url": "https://example.com/{payload.x}", "expect_status": [200, "4xx"], "backoff": "5s"}),
        ("http", {"url": "https://example.com", "timeout": "3s", "expect": {"success_every": "25h"}}),
        ("external", {"only_workers": ["a", "b"], "labels": ["gpu"], "min_worker_version": "1.2", "replicas": 2}),
        ("command", {"argv": ["x"], "max_concurrency": 2, "tags": ["a"], "unique": True, "keep": 3}),
        ("external", {"backoff": {"base": "60s"}, "max_attempts": 2}),
        ("external", {"payload_schema": {"type": "object"}, "cancel_grace": "1s", "queue": "q"}),
        ("external", {"expect": {"start_within": "5m", "min_success_rate": "95%"}, "enabled": False}),
    ):
        job = define_data_job("it", kind, options)
        assert define_data_job("it", kind, options_of(job)) == job
