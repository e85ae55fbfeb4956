"""HTML that cannot forget to escape: text is text unless it is `Html`."""

from __future__ import annotations

from html import escape

_VOID = {"input", "link", "meta"}


class Html(str):
    """Markup made by `tag`."""

    __slots__ = ()


Content = str | int | None


def tag(name: str, /, *content: Content, **attributes: Content) -> Html:
    """`class_`, `http_equiv`: an underscore at the end goes, one inside becomes a hyphen. None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    return Html("".join(_escaped(part) for part in content if part is not None))


def _escaped(part: str | int) -> str:
    return part if isinstance(part, Html) else escape(str(part))
