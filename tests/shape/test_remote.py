"""Whoever asks a server has the verbs of whoever asks the database: the same names, parameters and answers."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.client import Client
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.jobs.jobs import JobVerbs
from rota.client.limits.quotas import QuotasClient
from rota.client.monitoring.attention import AttentionClient
from rota.client.monitoring.database import DatabaseClient
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.runs.assignment import AssignmentVerbs
from rota.client.schedules.history import HistoryVerbs
from rota.client.schedules.schedules import SchedulesClient
from rota.client.workers.workers import WorkersClient
from rota.remote.access.tokens import RemoteTokens
from rota.remote.alerts.expectations import RemoteExpectations
from rota.remote.alerts.notifications import RemoteNotifications
from rota.remote.client import RemoteClient
from rota.remote.external.external import RemoteExternal
from rota.remote.jobs.data_jobs import RemoteDataJobs
from rota.remote.limits.quotas import RemoteQuotas
from rota.remote.monitoring.attention import RemoteAttention
from rota.remote.monitoring.database import RemoteDatabase
from rota.remote.monitoring.error_groups import RemoteErrorGroups
from rota.remote.monitoring.monitoring import RemoteMonitoring
from rota.remote.schedules.schedules import RemoteSchedules
from rota.remote.workers.workers import RemoteWorkers

NOT_OVER_HTTP = {
    # For the API itself, which gives others what comes of them; pruning is the server's own business.
    Client: {"prepare", "enqueue_shown", "within", "prune"},
    ExternalClient: {
        "hand_back"
    },  # the server's, of claims whose answer reached nobody; callers say what they have `held`
    ErrorGroupsClient: {"shown_by"},  # the server's: what a caller may see
    TokensClient: {
        "check",
        "check_session",
        "open_session",
        "close_session",
        "note_refused",
    },  # the server's own business
}
PAIRS: list[tuple[type, type]] = [
    (Client, RemoteClient),
    (SchedulesClient, RemoteSchedules),
    (WorkersClient, RemoteWorkers),
    (TokensClient, RemoteTokens),
    (MonitoringClient, RemoteMonitoring),
    (AttentionClient, RemoteAttention),
    (QuotasClient, RemoteQuotas),
    (ExternalClient, RemoteExternal),
    (ExpectationsClient, RemoteExpectations),
    (NotificationsClient, RemoteNotifications),
    (DataJobsClient, RemoteDataJobs),
    (ErrorGroupsClient, RemoteErrorGroups),
    (DatabaseClient, RemoteDatabase),
]


def verbs(kind: type) -> dict[str, Callable[..., Any]]:
    members = inspect.getmembers(kind, inspect.isfunction)
    return {name: verb for name, verb in members if not name.startswith("_") and verb.__name__ != "refuse"}


@pytest.mark.parametrize(("near", "far"), PAIRS, ids=lambda kind: kind.__name__)
def test_the_verbs_are_the_same(near: type, far: type) -> None:
    assert set(verbs(near)) - set(verbs(far)) == NOT_OVER_HTTP.get(near, set())
    assert set(verbs(far)) - set(verbs(near)) == set()


@pytest.mark.parametrize(("near", "far"), PAIRS, ids=lambda kind: kind.__name__)
def test_they_take_and_give_the_same(near: type, far: type) -> None:
    others = verbs(far)
    differing = [name for name, verb in verbs(near).items() if name in others and told(verb) != told(others[name])]
    assert differing == []


def told(verb: Callable[..., Any]) -> tuple[list[str], Any]:
    """Annotations as they are written: some name what only type checkers import."""
    found = inspect.signature(verb)
    return [str(one) for one in found.parameters.values()], found.return_annotation


def test_every_part_is_there() -> None:
    client = RemoteClient("http://127.0.0.1:1")
    known = re.findall(r"self\.([a-z]\w*) = ([A-Z]\w*)\(", inspect.getsource(Client.__init__))
    pairs = {near.__name__: far for near, far in PAIRS}
    assert {part: type(getattr(client, part, None)) for part, _ in known} == {part: pairs[kind] for part, kind in known}


def test_all_verbs_of_the_database_are_looked_at() -> None:
    """What is inherited counts, too."""
    assert {*verbs(HistoryVerbs)} <= {*verbs(SchedulesClient)}
    assert {*verbs(JobVerbs), *verbs(AssignmentVerbs)} <= {*verbs(Client)}
