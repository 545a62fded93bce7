"""The site: it builds without a warning, leads nowhere wrong, and needs nothing from elsewhere."""

import dataclasses
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FunctionType, ModuleType
from urllib.parse import unquote, urlsplit

import pytest

from helpers.browser import CHROMIUM, QUIET, Watch
from helpers.places import ROOT
from probformer.config import EncoderSettings, TransformerSettings
from probformer.config.lookup import read_settings, shipped_configs

DOCS = ROOT / "docs"


def config_row(name: str, path: Path) -> str:
    """The table's line for a config: its first sentence, and the encoder that it has."""
    comment = path.read_text(encoding="utf-8").split("\n\n")[0]
    about = " ".join(line.removeprefix("#").strip() for line in comment.splitlines())
    about = re.split(r"\.(?= [A-Z]|$)", about)[0]
    encoder = read_settings(name, []).encoder
    if isinstance(encoder, EncoderSettings):
        rank = getattr(encoder.potential, "rank", None)
        size = f"{encoder.potential.kind}{f' {rank}' if rank else ''}, d {encoder.labels}, "
        size += f"h {encoder.channels}, T {encoder.inference.iterations}"
    else:
        assert isinstance(encoder, TransformerSettings)
        layers = "universal" if encoder.universal else "layers"
        size = f"width {encoder.width}, {encoder.heads} heads, {encoder.layers} {layers}"
    return f"| `{name}` | {about} | {size} |"


def test_the_table_of_configs_has_them_all():
    rows = [config_row(name, path) for name, path in shipped_configs().items()]
    page = (DOCS / "configs.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| `")]
    assert shown == rows, "the table in docs/configs.md should be:\n" + "\n".join(rows)


def test_the_tests_that_the_reliability_page_names_exist():
    page = (DOCS / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/test_\w+)\.py::(test_\w+)`", page)
    assert len(named) > 30
    assert len(named) == page.count("test_") / 2, "a test is named in another way"
    for file, test in named:
        source = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
        assert f"\ndef {test}(" in source, f"{file}.py has no {test}"


def public_objects() -> list[type | FunctionType]:
    """The classes and functions that docs/reference.md names, by themselves or by their module."""
    found: list[type | FunctionType] = []
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    for name, options in re.findall(r"^::: (\S+)\n((?:    .*\n)*)", text, re.M):
        named = pkgutil.resolve_name(name)
        if isinstance(named, ModuleType):
            members = re.search(r"members: \[(.*)\]", options)
            names = members[1].split(", ") if members else getattr(named, "__all__", ())
            found += [getattr(named, member) for member in names]
        else:
            found.append(named)
    return [named for named in found if isinstance(named, type | FunctionType)]


def undescribed(function: FunctionType, *described_by: object) -> list[str]:
    """The parameters that no Args section describes; a single one is named by the first line."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind in kinds and p.name not in ("self", "cls")]
    text = "\n".join(getattr(place, "__doc__", None) or "" for place in described_by)
    known = re.findall(r"^ {4,}(\w+): ", text, re.M) if "Args:" in text else []
    return [name for name in names if name not in known] if len(names) > 1 else []


def test_public_functions_describe_their_arguments():
    """Methods do so themselves, or the method of a base class that they override does."""
    assert len(public_objects()) > 50
    for named in public_objects():
        if isinstance(named, FunctionType):
            assert not undescribed(named, named), named
            continue
        if not dataclasses.is_dataclass(named) and "__init__" in vars(named):
            assert not undescribed(named.__init__, named, named.__init__), named
        for name, member in vars(named).items():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and not name.startswith("_"):
                places = [getattr(base, name, None) for base in named.__mro__]
                assert not undescribed(function, *places), f"{named.__qualname__}.{name}"


class Page(HTMLParser):
    """The targets that a page has, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        self.links += [values["href"] or ""] if tag == "a" and "href" in values else []
        loads = [values.get("src"), values.get("href") if tag == "link" else None]
        loads += [values.get("data"), values.get("poster"), values.get("action")]
        loads += [part.split()[0] for part in (values.get("srcset") or "").split(",") if part]
        self.loaded += [value for value in loads if value]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # what the theme says of MkDocs to come
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


@pytest.mark.long
def test_pages_hold_together_and_load_nothing_from_elsewhere(site):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 20
    for path, page in pages.items():
        for target in page.loaded:
            assert not urlsplit(target).scheme or target.startswith("data:"), f"{path}: {target}"
            assert not target.startswith("//"), f"{path}: {target}"
        for target in [*page.loaded, *page.links]:
            parts = urlsplit(target)
            if parts.scheme or path.name == "404.html":  # that one is served from any depth
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), f"{path}: {target}"
            if parts.fragment and there in pages:
                anchor = unquote(parts.fragment)
                assert anchor in pages[there].anchors, f"{path}: {target}"
    for path in site.rglob("*.css"):
        outside = re.findall(r"url\([\"']?(?:https?:)?//|@import", path.read_text("utf-8"))
        assert not outside, path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_a_phone_and_can_be_searched(site, address, theme):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=QUIET, chromium_sandbox=False
        )
        page = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme=theme)
        watch = Watch(page)
        names = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
        for name in names:
            page.goto(address + name)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, f"{name} is {width} wide"
        dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
        assert dark == (theme == "dark")

        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(address)
        # Typed as a reader does: the theme listens for keys, and `fill` presses none.
        page.locator("input.md-search__input").press_sequentially("mean field")
        page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
        browser.close()
    assert not watch.errors
    assert {urlsplit(request.url).hostname for request in watch.requests} <= {"127.0.0.1", None}
