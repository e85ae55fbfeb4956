"""Commands of verbs: parse as the verb declares it, call the client, print what REST would answer, or a look of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack

import click
import msgspec
from click.core import ParameterSource

from rota.cli.connect import actor, ask
from rota.cli.options import examples, params_of, shared
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.output import print_json
from rota.cli.verbs.looks import Look, Reply
from rota.cli.verbs.verb_options import Form, Settings, forms_of
from rota.client.client import Client
from rota.verbs.answers import document_of, is_silent, page_of
from rota.verbs.pages import place_of
from rota.verbs.parameters import Place, Request, request_of
from rota.verbs.verb import Declared, declarations

C = TypeVar("C", bound=click.Command)

_NAME = re.compile(r"`(\w+)`")
_OF_PYTHON = [
    (re.compile(r"^Return "), "Show "),
    (re.compile(r"[;,] (?:or )?raise `\w+`[^.]*|\s*Raise `\w+`[^.]*\."), ""),
    (re.compile(r"\bNone\b"), "`none`"),
]
"""What docstrings say to programmers, and help otherwise: an error is printed, and one types `none`."""
_NO_TIME = datetime.min.replace(tzinfo=UTC)
_by_hand: dict[click.Command, dict[Callable[..., Any], Mapping[str, str]]] = {}


class Consent(msgspec.Struct, frozen=True):
    """Question before an act. `read` reads what it is about; nothing is asked if `question` returns None."""

    read: Callable[[Client, Mapping[str, Any]], Awaitable[Any]]
    question: Callable[[Any, Mapping[str, Any]], str | None]


class Facts(TypedDict, total=False):
    """Differences between a command and its verb.

    `words` replace the help from the docstring. `settings` says how options differ from the declaration, `forms` which
    parameters are typed otherwise. `refine` completes the arguments; `act` is called instead of the verb; `also` reads
    more for the look, from the answer and the arguments; `code` tells the exit code.
    """

    name: str
    words: str
    settings: Settings
    forms: Sequence[Callable[[], Form]]
    consent: Consent
    refine: Callable[[Client, dict[str, Any]], Awaitable[dict[str, Any]]]
    act: Callable[..., Awaitable[Any]]
    also: Callable[[Client, Any, Mapping[str, Any]], Awaitable[Any]]
    code: Callable[[Reply], int]


def verb_command(part: str, method: Callable[..., Any], look: Look, *lines: str, **facts: Unpack[Facts]) -> VerbCommand:
    """Make the command of a verb: `verb_command("quotas", QuotasClient.list, table(…), "rota quota list")`.

    `lines` are examples. Of several routes of the verb, the one with the longest path counts.
    """
    route = max(declarations(method), key=lambda verb: len(verb.placeholders()))
    return VerbCommand(Declared(part, method.__name__, method, route), look, *lines, **facts)


def carries_out(method: Callable[..., Any], **names: str) -> Callable[[C], C]:
    """Note which verb a command that is written by hand carries out. `names` are click's names of its parameters, where
    they differ."""

    def note(command: C) -> C:
        _by_hand.setdefault(command, {})[method] = names
        return command

    return note


def methods_of(command: click.Command) -> Mapping[Callable[..., Any], Mapping[str, str]]:
    """Return the methods of the client that a command calls, each with the names of its parameters that differ."""
    return {command.declared.function: {}} if isinstance(command, VerbCommand) else _by_hand.get(command, {})


class VerbCommand(click.Command):
    """Command of one verb. Its parameters are made when they are needed: one call needs those of one command."""

    def __init__(self, declared: Declared, look: Look, *lines: str, **facts: Unpack[Facts]) -> None:
        self.declared = declared
        self.when_made: Callable[[click.Command], None] | None = None
        self._look, self._facts, self._words = look, facts, facts.get("words")
        self._forms: Sequence[Form] = ()
        self._made: list[click.Parameter] | None = None
        name = facts.get("name", declared.name.replace("_", "-"))
        super().__init__(name, callback=self._act, epilog=examples(*lines))

    @property
    def params(self) -> list[click.Parameter]:
        """Return the arguments and options."""
        if self._made is None:
            by_hand = [form() for form in self._facts.get("forms", ())]
            self._forms = forms_of(self.declared, by_hand, self._facts.get("settings", {}))
            self._made = [param for form in self._forms for param in form.params]
            asks = "consent" in self._facts
            self._made += params_of(lambda command: yes_option(shared(command)) if asks else shared(command))
            if self.when_made is not None:
                self.when_made(self)
        return self._made

    @params.setter
    def params(self, value: list[click.Parameter]) -> None:
        """Ignore what click sets at the start."""

    def _help(self) -> str:
        """Return what the verb's docstring says, in words of the command line."""
        if self._words is None:
            words = "\n\n".join(part for part in (self.declared.summary, self.declared.description) if part)
            paging = self.declared.verb.page
            if paging is not None and paging.after is not None:  # a person types --cursor
                words = re.sub(rf"; `{paging.after}` is [^.;]*|\s*`{paging.after}` is [^.;]*\.", "", words)
            for word, typed in _OF_PYTHON:
                words = word.sub(typed, words)
            self._words = _NAME.sub(self._typed, words)
        return self._words

    @property
    def forms(self) -> Sequence[Form]:
        """Return how the verb's parameters are typed."""
        return self._forms if self.params else ()

    @property
    def _request(self) -> Request:
        return request_of(self.declared)

    def _typed(self, match: re.Match[str]) -> str:
        parameter = self._request.parameters.get(match[1])
        if parameter is None:
            return match[0]
        name = parameter.wire_name
        return name.upper() if parameter.place is Place.PATH else f"--{name.replace('_', '-')}"

    def _act(self, *, database: str | None, as_json: bool, yes: bool = False, **values: Any) -> int | None:
        limit, cursor = values.get("limit"), values.get("cursor")
        arguments = {name: value for form in self._forms for name, value in form.read(values).items()}
        before = self._ask_first(database, arguments, yes=yes)

        async def act(client: Client) -> Any:
            refine = self._facts.get("refine")
            refined = arguments if refine is None else await refine(client, arguments)
            result = await self._method(client)(**refined, **self._implied(limit, cursor))
            if as_json:
                return result, _NO_TIME, None
            also = self._facts.get("also")
            return result, await client.time(), also and await also(client, result, arguments)

        result, now, also = ask(database, act)
        value, following = page_of(self.declared, result, limit, cursor) if self._is_list else (result, None)
        reply = Reply(value, now, self._in_order(values), arguments, following, before, also)
        if as_json:
            print_json(self._document(result, arguments, limit, cursor))
        else:
            self._look(reply)
        code = self._facts.get("code")
        return None if code is None else code(reply)

    def _method(self, client: Client) -> Callable[..., Awaitable[Any]]:
        act = self._facts.get("act")
        if act is not None:
            return partial(act, client)
        part = getattr(client, self.declared.part) if self.declared.part else client
        method: Callable[..., Awaitable[Any]] = getattr(part, self.declared.name)
        return method

    @property
    def _is_list(self) -> bool:
        return self._request.lists

    def _in_order(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {param.name or "": values[param.name or ""] for param in self.params if param.name in values}

    def _implied(self, limit: int | None, cursor: str | None) -> dict[str, Any]:
        """Return the arguments that nobody types: who gives the command, and the place in a list."""
        paging, names = self.declared.verb.page, self._request.parameters
        implied: dict[str, Any] = {name: actor() for name, parameter in names.items() if parameter.place is Place.ACTOR}
        if paging is not None and "limit" in names:
            implied["limit"] = limit
        if paging is not None and paging.after is not None and cursor is not None:
            implied[paging.after] = place_of(cursor, names[paging.after].annotation)
        return implied

    def _ask_first(self, database: str | None, arguments: Mapping[str, Any], *, yes: bool) -> Any:
        consent = self._facts.get("consent")
        if consent is None:
            return None
        subject = ask(database, lambda client: consent.read(client, arguments))
        question = consent.question(subject, arguments)
        if question is not None and not yes:
            require_consent(question, command=self._as_typed())
        return subject

    def _as_typed(self) -> str:
        """Return the command with its arguments, and … in place of its options: a hint does not repeat their values."""
        context = click.get_current_context()
        words = [str(context.params[param.name or ""]) for param in self.params if isinstance(param, click.Argument)]
        options = [param.name or "" for param in self.params if isinstance(param, click.Option)]
        typed = any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in options)
        return " ".join([context.command_path, *words, *(["…"] if typed else [])])

    def _document(self, result: Any, arguments: Mapping[str, Any], limit: int | None, cursor: str | None) -> Any:
        """Return the answer as REST has it. Where REST answers nothing: what was done to what."""
        if not is_silent(self.declared):
            return document_of(self.declared, result, limit, cursor)
        path = [parameter for parameter in self._request.parameters.values() if parameter.place is Place.PATH]
        done = "deleted" if self.declared.verb.method == "DELETE" else "done"
        return {**{parameter.wire_name: arguments.get(parameter.name) for parameter in path}, done: True}

    help = property(_help, lambda *_: None)  # click sets None at the start
