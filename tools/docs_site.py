"""The site: pages prepared as zensical wants them, built, and put into `site/`.

    python tools/docs_site.py            build
    python tools/docs_site.py serve      build, serve on a port, and prepare pages again as they change

Pages are written for whoever reads them in the repository, too: files that snippets are for (`file=jobs.py`), words to
tests, links to files outside of docs/. Here they become titles, nothing, and pages or files of the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BUILD = ROOT / "build" / "docs"  # zensical wants its pages and its result below its configuration
SITE = ROOT / "site"
SETTINGS = ROOT / "zensical.toml"
ZENSICAL = [sys.executable, "-m", "zensical"]
CONFIG = ["--config-file", "zensical.toml"]

BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")  # in the code of a table; Python-Markdown needs no backslash there
COMMENT = re.compile(r"^<!-- \w+: .*? -->\n+", re.MULTILINE)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?P<words>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"\bfile=(\S+)")
ITEM = re.compile(r"(?:[-*]|\d+\.) +")
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
ORDER = re.compile(r"^<!-- order: (\d+) -->$", re.MULTILINE)
PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img src="([^"]+)" alt="([^"]*)">\s*</picture>')

Nav = list[Any]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["serve"]:
        return serve(arguments[1:])
    if code := build(BUILD):
        return code
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(BUILD / "site", SITE)
    return 0


def build(folder: Path) -> int:
    """Into `folder/site`; its exit code."""
    prepare(folder)
    code = subprocess.call([*ZENSICAL, "build", "--clean", "--strict", *CONFIG], cwd=folder)
    if not code:
        for name, text in for_agents(folder / "docs").items():
            write(folder / "site" / name, text.encode())
    return code


def for_agents(pages: Path) -> dict[str, str]:
    """Each prepared page as Markdown beside its HTML, `llms.txt` with an index of them, and all in `llms-full.txt`."""
    twins = {name: (pages / name).read_text() for name in leaves(navigation())}
    index = [f"# {settings()['site_name']}", "", f"> {settings()['site_description']}", ""]
    index += ["Every page of this site is also there as Markdown, under the same name with the ending `.md`.", ""]
    for entry in navigation():
        ((title, inner),) = entry.items()
        index += [f"## {title}", ""]
        index += [f"- [{title_of(twins[name])}]({name}){about(twins[name])}" for name in leaves([inner])]
        index += [""]
    full = "\n\n".join(f"<!-- {name} -->\n\n{text.strip()}" for name, text in twins.items())
    return {**twins, "llms.txt": "\n".join(index).rstrip() + "\n", "llms-full.txt": full + "\n"}


def title_of(text: str) -> str:
    return text.lstrip().partition("\n")[0].removeprefix("# ")


def about(text: str) -> str:
    """The first sentence of a page, without links: ": …", or nothing if it begins otherwise."""
    paragraphs = [part for part in text.split("\n\n")[1:] if part[:1].isalpha() or part[:1] in "`["]
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split())) if paragraphs else ""
    sentence = re.split(r"(?<=[.:])\s", words, maxsplit=1)[0]
    return f": {sentence.removesuffix(':')}" if sentence else ""


def serve(arguments: list[str]) -> int:
    prepare(BUILD)
    server = subprocess.Popen([*ZENSICAL, "serve", *CONFIG, *arguments], cwd=BUILD)
    try:
        while server.poll() is None:
            time.sleep(1)
            prepare(BUILD)
    except KeyboardInterrupt:
        server.terminate()
    return server.wait()


def prepare(folder: Path) -> None:
    """The pages in `folder/docs` and their configuration; only what changed is written."""
    pages = {source: place(source) for source in sources()}
    wanted = {"zensical.toml": configuration().encode()}
    for source, target in pages.items():
        links = Links(source, target, pages)
        wanted[f"docs/{target}"] = page(source.read_text(), links).encode()
        wanted |= {f"docs/{name}": file.read_bytes() for name, file in links.files.items()}
    for kind in ("assets", "images"):
        wanted |= {f"docs/{kind}/{file.name}": file.read_bytes() for file in (DOCS / kind).iterdir()}
    for name, content in wanted.items():
        write(folder / name, content)
    for left in (folder / "docs").rglob("*"):
        if left.is_file() and left.relative_to(folder).as_posix() not in wanted:
            left.unlink()


def write(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def sources() -> list[Path]:
    """Every page of docs/, and those beside it that the navigation names."""
    external = [DOCS / name for name in leaves(settings()["nav"]) if name.startswith("../")]
    return [*sorted(DOCS.rglob("*.md")), *[path.resolve() for path in external]]


def place(source: Path) -> str:
    """Where a page is in the site."""
    if source.is_relative_to(DOCS):
        return source.relative_to(DOCS).as_posix()
    return f"project/{(source.parent.name if source.stem == 'README' else source.stem).lower()}.md"


def settings() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(SETTINGS.read_text())["project"]
    return project


def leaves(nav: Nav) -> Iterator[str]:
    for entry in nav:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from leaves(inner) if isinstance(inner, list) else [inner]


def configuration() -> str:
    """zensical.toml with the navigation as it is: folders opened, sections without pages left out."""
    text = SETTINGS.read_text()
    start = text.index("nav = [")
    end = text.index("\n]\n", start) + 3
    return f"{text[:start]}nav = {as_toml(navigation())}\n{text[end:]}"


def navigation() -> Nav:
    return opened(settings()["nav"])


def opened(nav: Nav) -> Nav:
    result: Nav = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, inner),) = entry.items()
            inner = opened(inner) if isinstance(inner, list) else place((DOCS / inner).resolve())
            result += [{title: inner}] if inner else []
        elif entry.endswith("/"):
            result += [place(path) for path in in_order(DOCS / entry)]
        else:
            result.append(entry)
    return result


def in_order(folder: Path) -> list[Path]:
    def rank(path: Path) -> tuple[int, str]:
        said = ORDER.search(path.read_text())
        return int(said[1]) if said else 1000, path.name

    return sorted(folder.glob("*.md"), key=rank)


def as_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {as_toml(inner)}' for name, inner in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


class Links:
    """Of one page: to other pages as they are; to files of the repository, which come along."""

    def __init__(self, source: Path, target: str, pages: dict[Path, str]) -> None:
        self._source = source
        self._target = target
        self._pages = {**pages, ROOT / "README.md": "index.md"}
        self.files: dict[str, Path] = {}

    def __call__(self, link: re.Match[str]) -> str:
        file = (self._source.parent / link[1]).resolve()
        if file.is_dir() and (file / "README.md").exists():
            file /= "README.md"
        there = self._pages.get(file)
        if there is None and file.is_file():
            there = place_of_file(file)
            self.files[there] = file
        return link[1] if there is None else posixpath.relpath(there, posixpath.dirname(self._target))


def place_of_file(file: Path) -> str:
    """As it is, also if it is Markdown: that would be a page which nobody finds."""
    inside = file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT).as_posix()
    return inside if file.is_relative_to(DOCS) else f"files/{inside}" + (".txt" if file.suffix == ".md" else "")


def page(text: str, links: Links) -> str:
    text = COMMENT.sub("", text)
    text = PICTURE.sub(r'<img src="\2#only-light" alt="\3">\n<img src="\1#only-dark" alt="\3">', text)
    parts: list[str] = []
    after = 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(links, text[after : fence.start()]), block(fence)]
        after = fence.end()
    return BAR.sub(lambda code: code[0].replace("\\|", "|"), indented("".join([*parts, LINK.sub(links, text[after:])])))


def block(fence: re.Match[str]) -> str:
    """A fenced block with its file as its title; consoles without output lose their prompts, to be copied."""
    language, text, indent = fence["language"], fence["text"], fence["indent"]
    name = FILE.search(fence["words"])
    if language == "console":
        lines = text.splitlines(keepends=True)
        if all(line.removeprefix(indent).startswith("$ ") or not line.strip() for line in lines):
            text = "".join(line.replace("$ ", "", 1) for line in lines)
        language = "console" if re.search(rf"^{indent}\$ ", text, re.MULTILINE) else "sh"
    title = f' title="{name[1]}"' if name else ""
    return f"{indent}```{language}{title}\n{text}{indent}```"


def indented(text: str) -> str:
    """What belongs to an item of a list begins at its text in the repository; Python-Markdown wants four spaces."""
    result: list[str] = []
    columns: list[int] = []  # where the text of each item begins that a line is in
    fenced = False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        while line.strip() and not fenced and columns and indent < columns[-1]:
            columns.pop()
        result.append(" " * (4 * len(columns) - columns[-1] if columns and line.strip() else 0) + line)
        item = ITEM.match(line.lstrip())
        if item and not fenced:
            columns.append(indent + len(item[0]))
        fenced ^= line.lstrip().startswith("```")
    return "\n".join(result) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
