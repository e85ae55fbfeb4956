"""Errors of invalid values, and of a database that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable

from rota.errors.families import Invalid, Unavailable, did_you_mean


class BadPayload(Invalid):
    """The payload does not match the job. `path` leads to the wrong value: `$.user.age`."""

    code = "bad-payload"

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"the payload {problem}" if path == "$" else f"payload at {path}: {problem}", hint=hint)
        self.path = path
        self.problem = problem


class MaskedSecret(Invalid):
    """A secret that rota has masked was sent back. `path` leads to it: `$.headers['Authorization']`."""

    code = "masked-secret"

    def __init__(self, path: str) -> None:
        hint = "send the secret itself; an update keeps options that it does not name"
        super().__init__(f"{path.removeprefix('$.')} is a masked secret", hint=hint)
        self.path = path


class BadDuration(Invalid):
    """The text is not a duration. `what` is the key that it belongs to."""

    code = "bad-duration"

    def __init__(self, text: object, problem: str = "is not a duration", *, what: str | None = None) -> None:
        message = f"{text!r} {problem}"
        bare = isinstance(text, int | float) and not isinstance(text, bool)
        super().__init__(
            message if what is None else f"{what}: {message}",
            hint=f'write a number and a unit: "{text}s", if these are seconds; units are ms, s, m, h and d'
            if bare
            else 'write a number and a unit: "90s", "15m", "6h", "1d"',
        )


class BadTrigger(Invalid):
    """A cron expression, time zone, interval, window or date is not valid. `field` is the wrong part: `minute`."""

    code = "bad-trigger"

    def __init__(self, problem: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{field}: {problem}" if field else problem, hint=hint)
        self.field = field


class BadConfig(Invalid):
    """A setting is not valid, or settings contradict each other."""

    exit_code, code = 78, "bad-configuration"


_ELSEWHERE = {
    **dict.fromkeys(("max_retries", "retries", "retry", "max_tries"), ("max_attempts", "max_attempts=4 is 3 retries")),
    **dict.fromkeys(("countdown", "defer_by", "schedule_in", "min_backoff"), ("delay", 'delay="60s"')),
    **dict.fromkeys(("eta", "schedule_at", "defer_until", "execute_at"), ("run_at", "run_at=datetime(…, tzinfo=UTC)")),
    **dict.fromkeys(
        ("retry_backoff", "default_retry_delay", "retry_delay"), ("backoff", 'backoff="10s", or Exponential')
    ),
    **dict.fromkeys(("autoretry_for", "retry_when"), ("retry_on", "retry_on=(ConnectionError,)")),
    **dict.fromkeys(("throws", "dont_autoretry_for"), ("no_retry_on", "no_retry_on=(ValueError,)")),
    **dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout"), ("timeout", 'timeout="10m"')),
    **dict.fromkeys(("rate_limit",), ("limit", 'limit={"max": 10, "per": "1m"}')),
    **dict.fromkeys(("result_ttl", "keep_result", "result_expires"), ("keep_for", 'keep_for="7d"')),
    **dict.fromkeys(("queue_name", "routing_key"), ("queue", 'queue="slow"')),
    **dict.fromkeys(("task_id", "job_id", "lock", "queueing_lock"), ("key", 'key="order-7", with unique=True for one')),
    **dict.fromkeys(("depends_on", "link"), ("after", "after=[run]")),
    **dict.fromkeys(("cron", "crontab", "every", "interval"), ("schedule", 'schedule=cron("0 7 * * *")')),
}
"""Words of other libraries: the option that people look for, and how it is written."""


class UnknownOption(Invalid):
    """The parameter or option does not exist. `path` leads to it, if it is in a body: `$.prioriti`."""

    code = "unknown-option"

    def __init__(self, option: str, known: Iterable[str], *, where: str) -> None:
        names = list(known)
        own, advice = _ELSEWHERE.get(option, ("", ""))
        hint = f"{own}: {advice}" if own in names else did_you_mean(option, names)
        super().__init__(f"{where} has no option {option!r}", hint=hint)
        self.option = option
        self.path: str | None = None


class OutOfRange(Invalid):
    """A number, text or list is outside the bounds of its parameter. `path` leads to it, if it is in a body:
    `$.reason`."""

    code = "out-of-range"

    def __init__(self, name: str, problem: str, allowed: str, *, path: str | None = None) -> None:
        super().__init__(f"{name} {problem}", hint=f"give {allowed}")
        self.path = path


class SchemaOutdated(Unavailable):
    """The schema of the database does not match this version of rota."""

    exit_code, code = 78, "schema-outdated"

    def __init__(self, found: int, wanted: int, *, serves: int | None = None) -> None:
        self.may_pass = found < wanted
        if found > wanted:
            limit = "" if serves is None else f", which serves programs of schema {serves} and newer"
            super().__init__(
                f"the database is at schema {found}{limit}, this rota knows {wanted}", hint="install a newer rota"
            )
        else:
            super().__init__(f"the database is at schema {found}, this rota needs {wanted}", hint="run `rota migrate`")


class DatabaseMoved(Unavailable):
    """The SQLite file was promoted to another database, and is no longer used."""

    exit_code, code = 78, "database-moved"
    may_pass = False

    def __init__(self, place: str) -> None:
        hint = "set database_url (ROTA_DATABASE_URL) to it; nothing is written here any more"
        super().__init__(f"this database was promoted to {place}", hint=hint)


class DatabaseCopied(Unavailable):
    """The database is a copy of another, and nobody has said yet that it is the original: it does nothing by itself."""

    code = "database-copied"

    def __init__(self) -> None:
        hint = "`rota database accept`, if this is the original now: a restored backup, or one that was moved"
        super().__init__("the database is a copy: nothing is planned, claimed or sent until it is accepted", hint=hint)


class FileReplaced(Unavailable):
    """The SQLite file, or its WAL, was deleted, replaced or overwritten while it was open."""

    code = "file-replaced"

    def __init__(self, path: str, what: str) -> None:
        hint = (
            "this write was not confirmed, and may or may not be in the file: repeat it with an idempotency key; "
            "the new file is opened now; stop every process before you restore a backup"
        )
        super().__init__(f"{path}: {what}", hint=hint)


class PromotionUnfinished(Unavailable):
    """A promotion has begun: neither of the two databases is complete, and neither accepts writes."""

    exit_code, code = 78, "promotion-unfinished"
    may_pass = False

    def __init__(self, place: str) -> None:
        hint = "`rota promote` with the same --to continues it; --abandon reverts it"
        super().__init__(f"a promotion to {place} has begun, and is not finished", hint=hint)


class DeadlineExceeded(Unavailable):
    """The database did not answer in time."""

    code = "deadline"

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not finish within {seconds:g}s")
