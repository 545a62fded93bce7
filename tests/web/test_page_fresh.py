"""The built page of the explorer is that of its sources."""

import hashlib
import json

from helpers.places import ROOT

FRONTEND = ROOT / "frontend"
STATIC = ROOT / "src/probformer/web/static"


def hash_of_sources() -> str:
    """As frontend/source-hash.mjs makes it, with which a build ends."""
    names = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.js"]
    sources = [path for path in (FRONTEND / "src").rglob("*") if path.is_file()]
    names += [path.relative_to(FRONTEND).as_posix() for path in sources]
    digest = hashlib.sha256()
    for name in sorted(names):
        text = (FRONTEND / name).read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def test_the_built_page_is_that_of_its_sources():
    built_from = (STATIC / "source.sha256").read_text().strip()
    assert built_from == hash_of_sources(), "frontend/ has changed: run `make page` and commit it"


def test_the_page_names_the_files_that_are_there():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assets = list((STATIC / "assets").iterdir())
    assert assets
    for asset in assets:
        assert f"./assets/{asset.name}" in page


def test_the_page_needs_no_other_host_and_no_inline_code():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "//" not in page.replace("</", "")
    assert "<style" not in page
    scripts = page.count("<script")
    assert scripts == page.count('<script type="module" crossorigin src="./assets/')


def test_the_lock_file_names_no_registry():
    packages = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert len(packages) > 2
    assert not any("resolved" in package for package in packages.values())
    assert all("integrity" in package for name, package in packages.items() if name)
