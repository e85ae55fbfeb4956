"""Fingerprints: which errors count as the same."""

import json
import time

import msgspec
import pytest

from rota.core.runs.error_fingerprint import fingerprint_of, lasting, stored_error
from rota.core.runs.run import RunError
from rota.engine.handlers import context_backend

SAID = [
    ("no answer after 30s", "no answer after <n>s"),
    ("no answer after 1.5s from 10.0.0.7:5432", "no answer after <n>s from <n>"),
    ("user 42 of 1,000 is not there", "user <n> of <n> is not there"),
    ("row 019c1a2b-7d1e-7c3a-9f00-5d1f3c2b1a00 is gone", "row <id> is gone"),
    ("object at 0x7f3a2b1c", "object at <id>"),
    ("commit 5be1c0ffee00d is unknown", "commit <id> is unknown"),
    ("order AB12CD34EF is unknown", "order <id> is unknown"),
    ("invalid literal for int(): 'Ada'", "invalid literal for int(): <text>"),
    ('no column "name" in `people`', "no column <text> in <text>"),
    ("it isn't Ada's, and can't be", "it isn't Ada's, and can't be"),
    ("cannot reach https://example.com/a?b=c now", "cannot reach <address> now"),
    ("worker web-1@5be1c0ffee00 did not renew its lease", "worker <address> did not renew its lease"),
    ("ada.lovelace+jobs@example.com bounced", "<address> bounced"),
    ("cannot read /srv/data/2026-01-31/in.csv", "cannot read /srv/data/*/in.csv"),
    ("cannot read /tmp/qwerty/in.csv", "cannot read /tmp/*/in.csv"),
    ("cannot read /var/folders/tmpqwerty/in.csv", "cannot read /var/folders/*/in.csv"),
    (r"cannot read C:\People\ada\run7\in.csv", "cannot read C:/People/ada/*/in.csv"),
    ("GET /users/17 failed", "GET /users/* failed"),
    ("either/or is no path", "either/or is no path"),
    ("two\n  lines", "two lines"),
    ("", ""),
]


@pytest.mark.parametrize(("message", "stays"), SAID)
def test_what_stays_of_a_message(message: str, stays: str) -> None:
    assert lasting(message) == stays


def traceback(*frames: tuple[str, int, str]) -> str:
    lines = [f'  File "{file}", line {line}, in {function}\n    …\n' for file, line, function in frames]
    return "Traceback (most recent call last):\n" + "".join(lines) + "ValueError: no\n"


OWN = ("/srv/app/crawler.py", 7, "crawl")
SAME_PLACE = [
    traceback(OWN),
    traceback(("/opt/ada/app/crawler.py", 19, "crawl")),
    traceback(("/srv/app/main.py", 3, "main"), OWN),
    traceback(OWN, ("/srv/app/.venv/lib/python3.12/site-packages/httpx/_client.py", 1, "send")),
    traceback(OWN, ("/usr/lib/python3.12/json/decoder.py", 1, "decode"), ("<frozen runpy>", 1, "run")),
    traceback(OWN, (context_backend.__file__, 1, "step")),
    traceback(OWN, (json.__file__, 1, "loads")),
]


@pytest.mark.parametrize("told", SAME_PLACE)
def test_the_same_place(told: str) -> None:
    wanted = fingerprint_of(RunError("ValueError", "no", traceback=SAME_PLACE[0]))
    assert fingerprint_of(RunError("ValueError", "no", traceback=told)) == wanted


def test_what_tells_errors_apart() -> None:
    errors = [
        RunError("ValueError", "no"),
        RunError("TypeError", "no"),
        RunError("ValueError", "yes"),
        RunError("ValueError", "no", code="bad"),
        RunError("ValueError", "no", traceback=traceback(OWN)),
        RunError("ValueError", "no", traceback=traceback((OWN[0], 7, "parse"))),
        RunError("ValueError", "no", traceback=traceback(("/srv/app/parser.py", 7, "crawl"))),
    ]
    prints = [fingerprint_of(error) for error in errors]
    assert len(set(prints)) == len(errors)
    assert all(len(one) == 12 and set(one) <= set("0123456789abcdef") for one in prints)


def test_only_what_tells_it_counts() -> None:
    one, other = (RunError("ReplicasFailed", f"worker {name}: no") for name in ("ada", "bob"))
    assert fingerprint_of(one) != fingerprint_of(other)
    assert fingerprint_of(one, "no") == fingerprint_of(other, "no")


def test_it_is_stored_with_the_error() -> None:
    error = RunError("ValueError", "item 7", code="bad", traceback="…")
    kept = msgspec.json.decode(stored_error(error), type=RunError)
    assert kept == msgspec.structs.replace(error, fingerprint=fingerprint_of(error))


def test_an_old_error_has_none() -> None:
    assert msgspec.json.decode(b'{"type":"A","message":"b"}', type=RunError).fingerprint is None


@pytest.mark.parametrize("sign", ["'", '"', "/", "a", "1", "a1", "@", "a@", "0x", "://", "-", "a-1", "/a", "\\", "\n"])
def test_no_message_takes_long(sign: str) -> None:
    began = time.process_time()
    lasting(sign * 100_000)
    assert time.process_time() - began < 0.5
