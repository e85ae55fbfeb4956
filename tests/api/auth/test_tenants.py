"""Isolation of scopes: two tenants, and every field of every route in which one could name something of the other.

The fields are read from the routes: a new route or field fails here until it is classified.
"""

import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache
from itertools import product
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx2
import msgspec
import pytest

from rota.api.docs.openapi import described
from rota.api.operations.routing import Declared, walk
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.access.roles import Role
from rota.core.runs.run import RunFilter
from rota.engine.handlers.context import Context
from rota.server import asgi
from rota.testing import adrain
from rota.values.scope import Scope
from rota.verbs.pages import cursor_at

API = "/api/v1"
ONE, TWO = Scope("tenant", "1"), Scope("tenant", "2")
SECRET = "turnover-of-tenant-two"
NOBODY = "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0123"

RUN, KEY, WORD, ANYTHING = "names a run", "is a key", "is looked for", "names nothing of anybody's"
FIELDS = {
    "path.id": RUN,
    "query.parent": RUN,
    "body.after": RUN,
    "body.inputs": RUN,
    "header.Idempotency-Key": KEY,
    "body.key": KEY,
    "body.unique": KEY,
    "body.unique.fields": KEY,
    "query.key": WORD,
    "query.tag": WORD,
    "query.scope": WORD,
    "query.schedule": WORD,
    "query.worker": WORD,
    "query.error": WORD,
    "query.fingerprint": WORD,
    "query.payload": WORD,
    "query.cursor": WORD,
    "query.created_after": WORD,
    "query.created_before": WORD,
    "query.since": WORD,
    "query.until": WORD,
    "query.search": WORD,
    "query.queue": WORD,
    "body.scope": WORD,
    "body.scope.kind": WORD,
    "body.scope.id": WORD,
    "body.ref": WORD,
    "body.from_step": WORD,
    # Jobs, queues and workers are everybody's; the rest are numbers, times and words about the caller's own run.
    **dict.fromkeys(
        ["query.state", "query.job", "query.retried", "query.limit", "query.steps", "query.tail", "query.follow",
         "body.job", "body.payload", "body.queue", "body.priority", "body.delay", "body.run_at", "body.max_attempts",
         "body.unique.period", "body.unique.on_conflict", "body.unique.clear", "body.backoff", "body.backoff.type",
         "body.backoff.base", "body.backoff.factor", "body.backoff.cap", "body.backoff.jitter", "body.timeout",
         "body.tags", "body.metadata", "body.only_workers", "body.labels", "body.min_worker_version", "body.runs",
         "body.reason", "body.keep_steps", "query.all_jobs", "query.sort"],
        ANYTHING,
    ),
}  # fmt: skip
BODIES: dict[str, dict[str, Any]] = {"enqueue_run": {"job": "work"}, "restrict_run": {"only_workers": None}}
"""The smallest body of an operation."""

Routes = list[tuple[str, str, Declared]]
Send = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url, auth=True)

    @app.job(max_attempts=1)
    def work(n: int = 0, colour: str = "") -> dict[str, str]:
        if colour.startswith("red"):
            raise ValueError(f"it is {colour}")
        return {"secret": colour}

    @app.job
    async def pry(ctx: Context) -> list[Any]:
        return [parent.result for parent in await ctx.parents()]

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
async def client(app: Rota) -> Client:
    return await app.connect()


@pytest.fixture
async def theirs(app: Rota, client: Client) -> dict[str, str]:
    """Create runs of both tenants in every relevant state; return those of the second, by what they are."""
    made: dict[str, str] = {}
    for scope in (ONE, TWO):
        own = {"scope": scope, "tags": [f"tag-{scope.id}"]}
        done = await client.enqueue(Order("work", {"colour": SECRET if scope == TWO else "blue"}, own))
        failed = await client.enqueue(Order("work", {"colour": f"red-{scope.id}"}, own))
        await adrain(app)
        waits = await client.enqueue(Order("work", {}, {**own, "delay": "1h", "key": f"key-{scope.id}"}))
        made = {"done": done.id, "failed": failed.id, "waits": waits.id}
    return made


async def sender(http: httpx2.AsyncClient, client: Client, role: Role, scope: Scope | None) -> Send:
    who = f"{role.value}-{scope.id if scope else 'all'}"
    issued = await client.tokens.create(who, role, scope=scope)

    async def send(method: str, path: str, headers: dict[str, str] | None = None, **what: Any) -> httpx2.Response:
        bearing = {"Authorization": f"Bearer {issued.secret}", **(headers or {})}
        return await http.request(method, path, headers=bearing, **what)

    return send


@pytest.fixture
async def one(http: httpx2.AsyncClient, client: Client) -> Send:
    return await sender(http, client, Role.OPERATOR, ONE)


@pytest.fixture
async def two(http: httpx2.AsyncClient, client: Client) -> Send:
    return await sender(http, client, Role.OPERATOR, TWO)


def routes() -> Routes:
    found = asgi(Rota("sqlite:///unused.db")).routes
    below = [(path.removeprefix(API), route) for path, route in walk(found) if path.startswith(API)]
    return [(method, path, route) for path, route in below for method in route.operations]


@cache
def document() -> dict[str, Any]:
    return described(asgi(Rota("sqlite:///unused.db")).routes)


def fields_of(method: str, path: str) -> Iterator[tuple[str, str]]:
    """Return where each field is, and its name; dotted if it is nested."""
    one = document()["paths"][API + path][method.lower()]
    yield from ((given["in"], given["name"].removesuffix(".{path}")) for given in one["parameters"])
    if "requestBody" in one:
        schema = one["requestBody"]["content"]["application/json"]["schema"]
        yield from (("body", name) for name in sorted(set(names_in(schema, document()["components"]["schemas"]))))


def names_in(schema: Any, shapes: dict[str, Any], below: str = "") -> Iterator[str]:
    if "$ref" in schema:
        yield from names_in(shapes[schema["$ref"].rpartition("/")[2]], shapes, below)
    for part in schema.get("anyOf", ()):
        yield from names_in(part, shapes, below)
    for name, part in schema.get("properties", {}).items():
        yield below + name
        yield from names_in(part, shapes, f"{below}{name}.")


def scoped() -> Routes:
    return [(method, path, route) for method, path, route in routes() if route.scoped]


def parts_of(run_id: str) -> list[str]:
    return [run_id, run_id.replace("-", ""), run_id.upper(), run_id[:30], run_id[-12:], run_id[-5:]]


def told(answer: httpx2.Response, sent: str) -> tuple[int, dict[str, str], str]:
    """Return an answer without what varies: the value sent, new ids, and times."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", answer.text.replace(sent, "SENT"))
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?", "THEN", text)
    kept = {name: value for name, value in answer.headers.items() if name in ("content-type", "retry-after")}
    return answer.status_code, kept, text


def require_nothing_of(theirs: dict[str, str], answer: httpx2.Response, sent: str) -> None:
    text = answer.text.replace(sent, "")
    cursors = [base64.urlsafe_b64encode(UUID(id).bytes).decode().rstrip("=") for id in theirs.values()]
    for word in (SECRET, *theirs.values(), *cursors):
        assert word not in text, (sent, text)


async def everything_of(client: Client, scope: Scope) -> object:
    runs = await client.list(RunFilter(scope=scope), limit=500)
    more = [
        (await client.attempts(run.id), await client.events(run.id), await client.parents(run.id),
         await client.children(run.id)) for run in runs
    ]  # fmt: skip
    return msgspec.to_builtins((runs, more))


def test_somebody_has_said_what_each_field_is() -> None:
    found = {f"{where}.{name}" for method, path, _ in scoped() for where, name in fields_of(method, path)}
    assert found == set(FIELDS)


async def test_what_knows_no_scopes_is_refused_whatever_it_names(
    http: httpx2.AsyncClient, client: Client, theirs: dict[str, str]
) -> None:
    senders = [await sender(http, client, role, ONE) for role in Role]
    before = await everything_of(client, TWO)
    closed = [one for one in routes() if not one[2].scoped and one[2].operations[one[0]].role is not None]
    for send, (method, path, _) in product(senders, closed):
        answers = [
            await send(method, path.replace("{id}", id).replace("{name}", id)) for id in (theirs["done"], NOBODY)
        ]
        assert [answer.status_code for answer in answers] == [403, 403], (method, path)
        assert told(answers[0], theirs["done"]) == told(answers[1], NOBODY), (method, path)
    assert await everything_of(client, TWO) == before


async def test_a_run_of_another_is_none(one: Send, client: Client, theirs: dict[str, str]) -> None:
    """Each field that takes an id or a part of one treats a run of the other tenant like one that never existed."""
    before = await everything_of(client, TWO)
    tried = 0
    for method, path, route in scoped():
        for where, name in fields_of(method, path):
            if FIELDS[f"{where}.{name}"] != RUN:
                continue
            for run_id in theirs.values():
                for part, other in zip(parts_of(run_id), parts_of(NOBODY), strict=True):
                    answers = [await ask(one, method, path, route, where, name, text) for text in (part, other)]
                    assert answers[0].status_code == 404, (method, path, name, part, answers[0].text)
                    assert told(answers[0], part) == told(answers[1], other), (method, path, name)
                    require_nothing_of(theirs, answers[0], part)
                    tried += 1
    assert tried > 100
    assert await everything_of(client, TWO) == before


async def ask(
    send: Send, method: str, path: str, route: Declared, where: str, name: str, value: Any
) -> httpx2.Response:
    """Send a request with that field, and what the operation needs besides."""
    body = BODIES.get(route.operations[method].name)
    address, query, headers = path, "", {}
    match where:
        case "path":
            address = path.replace(f"{{{name}}}", quote(value, safe=""))
        case "query":
            name = "payload.colour" if name == "payload" else name
            query = f"?{name}={quote(value, safe='')}"
        case "header":
            headers[name] = value
        case "body" if name == "after":
            body = {**(body or {}), "after": [value]}
        case "body" if name == "inputs":
            body = {**(body or {}), "inputs": {"colour": value}}
        case "body":
            body = {**(body or {}), name: value}
    what = {} if body is None else {"json": body}
    return await send(method, address + query, headers, **what)


async def test_nothing_follows_a_run_of_another(app: Rota, one: Send, client: Client, theirs: dict[str, str]) -> None:
    before = await everything_of(client, TWO)
    for part in [part for run_id in theirs.values() for part in parts_of(run_id)]:
        options: list[dict[str, Any]] = [
            {"job": "pry", "after": [part]},
            {"job": "pry", "after": [{"run": part, "on": "end"}]},
            {"job": "work", "inputs": {"colour": part}},
            {"job": "work", "inputs": {"colour": [part]}},
        ]
        for body in options:
            for sent in (body, {"runs": [{"job": "work"}, body]}):
                answer = await one("POST", "/runs", json=sent)
                assert (answer.status_code, answer.json()["code"]) == (404, "unknown-run"), answer.text
    await adrain(app)
    assert await everything_of(client, TWO) == before
    assert not (await client.list(RunFilter(job="pry")))


async def test_a_short_part_means_own_runs_only(one: Send, client: Client, theirs: dict[str, str]) -> None:
    own = await client.list(RunFilter(scope=ONE))
    for answer in (
        await one("GET", "/runs/01"),
        await one("GET", "/runs?parent=01"),
        await one("POST", "/runs", json={"job": "work", "after": ["01"]}),
        await one("POST", "/runs/01/cancel"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous-run")
        assert all(run.id in answer.json()["hint"] for run in own)
        require_nothing_of(theirs, answer, "01")
    nothing_of_mine = await sender_of_nobody(client, one)
    assert (await nothing_of_mine("GET", "/runs/01")).json()["code"] == "unknown-run"
    only = await nothing_of_mine("POST", "/runs", json={"job": "work", "delay": "1h"})
    assert (await nothing_of_mine("GET", "/runs/01")).json()["id"] == only.json()["id"], "it is the only one there"


async def sender_of_nobody(client: Client, one: Send) -> Send:
    issued = await client.tokens.create("three", Role.OPERATOR, scope=("tenant", "3"))

    async def send(method: str, path: str, **what: Any) -> httpx2.Response:
        return await one(method, path, {"Authorization": f"Bearer {issued.secret}"}, **what)

    return send


async def test_own_runs_are_found_by_any_part(one: Send, client: Client, theirs: dict[str, str]) -> None:
    mine = (await client.list(RunFilter(scope=ONE, key="key-1")))[0].id
    for part in parts_of(mine):
        assert (await one("GET", f"/runs/{part}")).json()["id"] == mine, part
        followed = await one("POST", "/runs", json={"job": "work", "after": [part]})
        assert followed.status_code == 201, followed.text
        parents = await one("GET", f"/runs/{followed.json()['id']}/parents")
        assert [parent["id"] for parent in parents.json()["items"]] == [mine]


async def test_a_key_of_another_is_free(one: Send, two: Send, client: Client, theirs: dict[str, str]) -> None:
    """Each tenant's request is executed and recognised when repeated, whatever keys the other uses."""
    failed = {"1": (await client.list(RunFilter(scope=ONE, error="red-1")))[0].id, "2": theirs["failed"]}
    requests: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
        "one": lambda who: ("/runs", {"job": "work", "payload": {"n": int(who)}}),
        "the very same": lambda who: ("/runs", {"job": "work"}),
        "many": lambda who: ("/runs", {"runs": [{"job": "work"}, {"job": "work", "payload": {"n": int(who)}}]}),
        "retry": lambda who: (f"/runs/{failed[who]}/retry", {}),
        "keeping": lambda who: (f"/runs/{failed[who]}/retry", {"keep_steps": True}),
    }
    for what, request in requests.items():
        key, made = {"Idempotency-Key": f"k-{what}"}, {}
        for who, send in (("2", two), ("1", one)):
            path, body = request(who)
            first, again = [await send("POST", path, key, json=body) for _ in range(2)]
            assert first.status_code == 201, (what, who, first.text)
            assert ids_in(first) == ids_in(again), (what, who)
            made[who] = ids_in(first)
        assert not made["1"] & made["2"], what
        other = await one("POST", "/runs", key, json={"job": "work", "payload": {"n": 99}})
        assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused"), other.text


def ids_in(answer: httpx2.Response) -> set[str]:
    body = answer.json()
    return {run["id"] for run in body["items"]} if "items" in body else {body["id"]}


async def test_whoever_is_for_no_scope_has_keys_of_its_own(one: Send, http: httpx2.AsyncClient, client: Client) -> None:
    everybody = await sender(http, client, Role.OPERATOR, None)
    key, body = {"Idempotency-Key": "k"}, {"job": "work", "scope": {"kind": "tenant", "id": "1"}}
    made = [await send("POST", "/runs", key, json=body) for send in (everybody, one, everybody, one)]
    assert [answer.status_code for answer in made] == [201, 201, 200, 200]
    assert len({answer.json()["id"] for answer in made}) == 2
    other = {**body, "scope": {"kind": "tenant", "id": "2"}}
    assert (await everybody("POST", "/runs", key, json=other)).status_code == 422


async def test_unique_is_within_a_scope(one: Send, two: Send, client: Client) -> None:
    ways: list[dict[str, Any]] = [{"key": "order-17"}, {"fields": ["n"]}, {}]
    for number, (way, conflict) in enumerate(product(ways, ["existing", "reject", "replace"])):
        body: dict[str, Any] = {"job": "work", "payload": {"n": number}, "delay": "1h"}
        body["unique"] = {"on_conflict": conflict, "fields": way.get("fields", [])}
        body |= {"key": f"{way['key']}-{number}"} if "key" in way else {}
        held = await two("POST", "/runs", json=body)
        before = await everything_of(client, TWO)
        mine = await one("POST", "/runs", json=body)
        assert (held.status_code, mine.status_code) == (201, 201), mine.text
        require_nothing_of({"held": held.json()["id"]}, mine, "")
        assert await everything_of(client, TWO) == before


async def test_what_is_looked_for_is_looked_for_among_own_runs(
    one: Send, client: Client, theirs: dict[str, str]
) -> None:
    """A filter by the other tenant's values finds nothing, like one by values that nobody has."""
    faults = (await client.list(RunFilter(scope=TWO, error="red-2")))[0]
    assert faults.error is not None
    fingerprint = faults.error.fingerprint or ""
    cursor, group_cursor = cursor_at(theirs["done"]), cursor_at((0, faults.finished_at, faults.id, faults.finished_at))
    values = {
        "key": ("key-2", "key-9"), "tag": ("tag-2", "tag-9"), "scope": ("tenant/2", "tenant/9"),
        "schedule": ("news", "olds"), "worker": (str(faults.worker_id), "nobody@1"), "queue": ("default", "default"),
        "fingerprint": (fingerprint, fingerprint), "error": ("red-2", "red-9"), "payload": (SECRET, "none"),
        "cursor": (cursor, cursor), "created_after": ("2020-01-01T00:00:00Z",) * 2,
        "created_before": ("2020-01-01T00:00:00Z",) * 2, "since": ("2020-01-01T00:00:00Z",) * 2,
        "until": ("2190-01-01T00:00:00Z",) * 2, "search": ("red-2", "red-9"),
    }  # fmt: skip
    mine = {run.id for run in await client.list(RunFilter(scope=ONE), limit=500)}
    for method, path, route in scoped():
        for where, name in fields_of(method, path):
            if where != "query" or FIELDS[f"query.{name}"] != WORD:
                continue
            own = path.replace("{id}", next(iter(mine)))
            texts = values[name]
            if name == "cursor" and path != "/runs":
                others = {"/error-groups": group_cursor, "/runs/{id}/logs": "1.1"}
                texts = (others.get(path, cursor_at(0)),) * 2
            answers = [await ask(one, method, own, route, where, name, text) for text in texts]
            for answer, text in zip(answers, texts, strict=True):
                require_nothing_of(theirs, answer, text)
                assert answer.status_code == (403 if name == "scope" else 200), (path, name, answer.text)
                found = [item["id"] for item in answer.json().get("items", ()) if "job_version" in item]
                assert set(found) <= mine, (path, name)
            if name != "worker":  # one does the runs of all
                assert told(answers[0], texts[0]) == told(answers[1], texts[1]), (path, name)
    counts = (await one("GET", "/error-groups")).json()
    assert [group["count"] for group in counts["items"]] == [1]


async def test_the_scope_of_another_cannot_be_named(one: Send, client: Client, theirs: dict[str, str]) -> None:
    before = await everything_of(client, TWO)
    for name in ("2", "9"):
        elsewhere = {"job": "work", "scope": {"kind": "tenant", "id": name}}
        for body in (elsewhere, {"runs": [{"job": "work"}, elsewhere]}):
            answer = await one("POST", "/runs", json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    refs = {"runs": [{"job": "work", "ref": theirs["done"]}, {"job": "work", "after": [theirs["done"]]}]}
    linked = await one("POST", "/runs", json=refs)
    assert linked.status_code == 201, "a ref of one's own call may be called anything"
    first, second = (run["id"] for run in linked.json()["items"])
    parents = (await one("GET", f"/runs/{second}/parents")).json()["items"]
    assert [parent["id"] for parent in parents] == [first]
    assert await everything_of(client, TWO) == before


async def test_links_that_somebody_else_made_are_not_told(one: Send, client: Client, theirs: dict[str, str]) -> None:
    """A caller who sees all scopes may let runs of two scopes depend on each other."""
    mine = await client.enqueue(Order("work", {}, {"scope": ONE, "after": [theirs["waits"]]}))
    await client.enqueue(Order("work", {}, {"scope": TWO, "after": [mine.id]}))
    others = {run.id: run.id for run in await client.list(RunFilter(scope=TWO))}
    paths = ["", "/parents", "/children", "/family", "/events", "/explain"]
    assert "of other scopes" in (await one("GET", f"/runs/{mine.id}/explain")).text
    waiting = [await one("GET", f"/runs/{mine.id}{path}") for path in paths]
    await client.cancel(theirs["waits"])
    ended = [await one("GET", f"/runs/{mine.id}{path}") for path in paths]
    for answer in (*waiting, *ended, await one("GET", "/runs?state=skipped")):
        assert answer.status_code == 200
        require_nothing_of(others, answer, mine.id)
    assert ended[0].json()["reason"] == "a run that it follows was cancelled"
    assert (await client.get(mine.id)).reason == f"run {theirs['waits']} was cancelled"


async def test_an_explanation_counts_own_runs_only(one: Send, two: Send, client: Client) -> None:
    for _ in range(3):
        await two("POST", "/runs", json={"job": "work", "priority": 5})
    (await one("POST", "/runs", json={"job": "work"})).json()
    last = (await one("POST", "/runs", json={"job": "work"})).json()
    assert (await one("GET", f"/runs/{last['id']}/explain")).json()["facts"]["before"] == 1
    assert (await client.explain(last["id"])).facts["before"] == 4


async def test_a_log_goes_on_where_it_was(one: Send, client: Client, theirs: dict[str, str]) -> None:
    own = (await client.list(RunFilter(scope=ONE)))[-1].id
    answers = [
        await one("GET", f"/runs/{own}/logs?follow=1", {"Last-Event-ID": text}) for text in (theirs["done"], NOBODY)
    ]
    assert told(answers[0], theirs["done"]) == told(answers[1], NOBODY)
    assert (await one("GET", f"/runs/{theirs['done']}/logs?follow=1")).status_code == 404


async def test_what_one_tenant_does_leaves_the_other_alone(
    one: Send, two: Send, client: Client, theirs: dict[str, str]
) -> None:
    """Both use the other's key at the same time, and get answers as if they were alone."""
    body = {"job": "work", "key": "same", "delay": "1h"}
    made = [await send("POST", "/runs", {"Idempotency-Key": "same"}, json=body) for send in (one, two, one, two)]
    assert [answer.status_code for answer in made] == [201, 201, 200, 200]
    mine, others = made[0].json()["id"], made[1].json()["id"]
    assert (await one("POST", f"/runs/{mine}/cancel")).json()["state"] == "cancelled"
    assert (await two("GET", f"/runs/{others}")).json()["state"] == "scheduled"
