"""Values that are not possible, and a database that does not serve."""

from __future__ import annotations

from collections.abc import Iterable

from rota.errors.families import Invalid, Unavailable, did_you_mean


class BadPayload(Invalid):
    """The payload does not fit the job. `path` leads to the value at fault: `$.user.age`."""

    code = "bad-payload"

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"the payload {problem}" if path == "$" else f"payload at {path}: {problem}", hint=hint)
        self.path = path
        self.problem = problem


class BadDuration(Invalid):
    """A text that is no duration. `what`: the key under which it was found."""

    code = "bad-duration"

    def __init__(self, text: object, problem: str = "is not a duration", *, what: str | None = None) -> None:
        said = f"{text!r} {problem}"
        super().__init__(
            said if what is None else f"{what}: {said}", hint='write a number and a unit: "90s", "15m", "6h", "1d"'
        )


class BadTrigger(Invalid):
    """A cron expression, zone, interval, window or date that cannot be. `field` is the part at fault: `minute`."""

    code = "bad-trigger"

    def __init__(self, problem: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{field}: {problem}" if field else problem, hint=hint)
        self.field = field


class BadConfig(Invalid):
    """A setting that cannot be, or settings that do not go together."""

    exit_code, code = 78, "bad-configuration"


class UnknownOption(Invalid):
    """A parameter or an option that does not exist."""

    code = "unknown-option"

    def __init__(self, option: str, known: Iterable[str], *, where: str) -> None:
        super().__init__(f"{where} has no option {option!r}", hint=did_you_mean(option, known))


class SchemaOutdated(Unavailable):
    """The tables of the database are not those of this version."""

    exit_code, code = 78, "schema-outdated"

    def __init__(self, found: int, wanted: int, *, serves: int | None = None) -> None:
        if found > wanted:
            limit = "" if serves is None else f", which serves programs of schema {serves} and newer"
            super().__init__(
                f"the database is at schema {found}{limit}, this rota knows {wanted}", hint="install a newer rota"
            )
        else:
            super().__init__(f"the database is at schema {found}, this rota needs {wanted}", hint="run `rota migrate`")


class DatabaseMoved(Unavailable):
    """The SQLite file was promoted, and is history: whoever opens it is told where to go."""

    exit_code, code = 78, "database-moved"

    def __init__(self, place: str) -> None:
        hint = "set database_url (ROTA_DATABASE_URL) to it; nothing is written here any more"
        super().__init__(f"this database was promoted to {place}", hint=hint)


class FileReplaced(Unavailable):
    """The SQLite file, or the log beside it, is no longer what was open: it was deleted, replaced or overwritten."""

    code = "file-replaced"

    def __init__(self, path: str, what: str) -> None:
        hint = (
            "this was not acknowledged, and may or may not be in the file: repeat it, with an idempotency key; "
            "what is there now is opened; stop every process before you restore a backup"
        )
        super().__init__(f"{path}: {what}", hint=hint)


class PromotionUnfinished(Unavailable):
    """A promotion has begun: of the two databases, neither is whole or may be written to."""

    exit_code, code = 78, "promotion-unfinished"

    def __init__(self, place: str) -> None:
        hint = "`rota promote` goes on where it was, with the same --to; with --abandon it is taken back"
        super().__init__(f"a promotion to {place} has begun, and is not finished", hint=hint)


class DeadlineExceeded(Unavailable):
    """The database did not answer in time."""

    code = "deadline"

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not finish within {seconds:g}s")
