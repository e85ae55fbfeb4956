"""The site: it is built without a warning, every link in it leads somewhere, and nothing comes from elsewhere."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import pytest

from tests.support.documents.pages import ROOT

FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "srcset"}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Page(HTMLParser):
    """Where it leads, what can be led to in it, and what it needs to be shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and said.get("href"):
            self.links.add(said["href"])
        if tag in FETCHED and said.get("rel") not in ("canonical", "prev", "next"):
            self.fetched.add(said.get(FETCHED[tag], ""))


def is_elsewhere(address: str) -> bool:
    return re.match(r"(?:[a-z]+:)?//|mailto:", address) is not None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    assert load("docs_site").build(folder) == 0
    return {path.resolve(): Page(path.read_text()) for path in (folder / "site").rglob("*.html")}


def test_the_site_is_whole(site: dict[Path, Page]) -> None:
    """One test, so that it is built once, wherever tests are run."""
    assert len(site) > 30
    assert [
        f"{path.name}: {link}" for path, page in site.items() for link in page.links if not leads(path, link, site)
    ] == []
    assert [f"{path.name}: {one}" for path, page in site.items() for one in page.fetched if is_elsewhere(one)] == []
    (folder,) = {path.parent for path in site if path.name == "404.html"}
    assert for_agents_is_whole(folder) == []
    styles = [style for path in site for style in path.parent.glob("assets/**/*.css")]
    assert styles
    assert [style.name for style in styles if re.search(r"url\(.?https?:|@import", style.read_text())] == []


def for_agents_is_whole(folder: Path) -> list[str]:
    """Return pages without a twin, pages that `llms.txt` does not name, and links of either that lead nowhere."""
    pages = {path.relative_to(folder).with_suffix(".md").as_posix() for path in folder.rglob("*.html")} - {"404.md"}
    index, full = ((folder / name).read_text() for name in ("llms.txt", "llms-full.txt"))
    named = set(re.findall(r"^- \[.+?\]\(([^)\s]+\.md)\)", index, re.MULTILINE))
    found = [f"{page}: no twin" for page in pages if not (folder / page).is_file()]
    found += [f"llms.txt: {page}" for page in pages ^ named]
    for page in named:
        text = (folder / page).read_text()
        found += [] if text.strip() in full else [f"llms-full.txt: {page}"]
        for link in re.findall(r"\]\(([^)#\s]+\.md)(?=[)#])", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if not is_elsewhere(link) and not (folder / page).parent.joinpath(link).resolve().is_file():
                found.append(f"{page}: {link}")
    return found


def leads(path: Path, link: str, site: dict[Path, Page]) -> bool:
    if is_elsewhere(link) or path.name == "404.html":
        return True
    address, anchor = urldefrag(link)
    target = (path.parent / unquote(address)).resolve() if address else path
    target = target / "index.html" if target.is_dir() else target
    if target not in site:
        return target.is_file() and not anchor
    return not anchor or unquote(anchor) in site[target].anchors


def test_the_reference_is_what_the_program_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_is_in_the_navigation() -> None:
    build = load("docs_site")
    listed = list(build.leaves(build.navigation()))
    assert sorted(listed) == sorted(set(listed)), "a page is there twice"
    missing = {build.place(source) for source in build.sources()} - set(listed)
    assert missing == set(), "add them to `nav` in zensical.toml, in the order in which they are read"


def test_a_page_is_prepared_for_the_site() -> None:
    build = load("docs_site")
    text = """<!-- type: rota migrate -->
# A

1. One:

   ```console
   $ rota run ls
   ```
- two
  - three ([b](b.md#c), [w](../examples/worker.mjs))

```python file=jobs.py
x = [1](2)
```
"""
    links = build.Links(ROOT / "docs" / "howto" / "a.md", "howto/a.md", {ROOT / "docs" / "howto" / "b.md": "b.md"})
    assert (
        build.page(text, links)
        == """# A

1. One:

    ```sh
    rota run ls
    ```
- two
    - three ([b](../b.md#c), [w](../examples/worker.mjs))

```python title="jobs.py"
x = [1](2)
```
"""
    )
