"""Where the files of a corpus come from: addresses, a folder, an archive.

Every failure is an `InputError` that names the address or the path.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PureWindowsPath
from typing import IO, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import probformer
from probformer.data.registry import CorpusFile
from probformer.errors import InputError, require

ProgressCallback = Callable[[str, int, int], None]
"""Called with the name of a file, its bytes so far, and all its bytes, 0 if unknown."""

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile)
"""The errors that reading a damaged file raises."""

_SCHEMES = ("http", "https", "file")
_TIMEOUT = 30.0  # seconds without an answer
_BLOCK = 2**16
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_UNSUPPORTED = 0x61  # the flags of encryption and of patches


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Offer:
    """A source of bytes, such as a file in an archive, which may be a wanted file."""

    where: str
    """What messages call it."""
    name: str
    """If it ends in ".gz", the bytes are compressed."""
    open: Callable[[], AbstractContextManager[Any]]


def local_file(path: Path) -> Offer:
    return Offer(str(path), path.name, lambda: path.open("rb"))


def raw_blocks(offer: Offer) -> Generator[bytes, None, None]:
    """The bytes on offer, decompressed; errors are those of the libraries."""
    with offer.open() as raw:
        stream: _Stream = gzip.GzipFile(fileobj=raw) if offer.name.endswith(".gz") else raw
        while block := stream.read(_BLOCK):
            yield block
        left = getattr(raw, "length", None)  # http.client counts the bytes that are still missing
        require(not left, f"{offer.where}: the connection was cut {left} bytes before the end")


def blocks(offer: Offer) -> Generator[bytes, None, None]:
    """The bytes on offer, decompressed."""
    try:
        yield from raw_blocks(offer)
    except InputError:
        raise
    except (OSError, HTTPException, ValueError, *DAMAGED) as error:
        raise InputError(f"{offer.where}: {reason(error)}") from None


def reason(error: BaseException | str) -> str:
    """The cause of an error, for the end of a message."""
    if isinstance(error, HTTPError):
        error.close()
        if 300 <= error.code < 400:
            return f"a redirect ({error.code}) in a circle, without a target or to another scheme"
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        return reason(error.reason)
    if isinstance(error, TimeoutError):
        return f"no answer within {_TIMEOUT:g} seconds"
    if isinstance(error, DAMAGED):
        return "the file is damaged or cut off"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@contextmanager
def find_offers(
    wanted: Sequence[CorpusFile], source: str | None, tell: ProgressCallback
) -> Iterator[list[list[Offer]]]:
    """For each wanted file, one or more offers.

    They come from the files' own addresses, or from `source`: a folder, an archive, or the address
    of an archive, in which files are found by name in any subfolder.
    """
    if source is None:
        yield [[_at_address(file.address, file.address)] for file in wanted if file.address]
        return
    with _everything_in(source, tell) as offers:
        found = []
        for file in wanted:
            name = file.name.removesuffix(".gz")
            found.append([offer for offer in offers if offer.name.removesuffix(".gz") == name])
            require(bool(found[-1]), f"{source}: has no file named {file.name}")
        yield found


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to another scheme: not from https to http, nor to a local file."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str):
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise HTTPError(newurl, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _at_address(address: str, name: str) -> Offer:
    def opened() -> AbstractContextManager[Any]:
        known = urlsplit(address).scheme in _SCHEMES
        require(known, f"{address}: expected an address that starts with {', '.join(_SCHEMES)}")
        headers = {"User-Agent": f"probformer/{probformer.__version__}"}
        request = urllib.request.Request(address, headers=headers)
        return urllib.request.build_opener(_SameScheme).open(request, timeout=_TIMEOUT)

    return Offer(address, name, opened)


@contextmanager
def _everything_in(source: str, tell: ProgressCallback) -> Iterator[list[Offer]]:
    if os.path.isdir(source):
        paths = sorted(path for path in Path(source).rglob("*") if path.is_file())
        yield [local_file(path) for path in paths]
        return
    with ExitStack() as opened:
        try:
            if "://" in source:
                file = opened.enter_context(tempfile.TemporaryFile())
                for block in blocks(_at_address(source, name="")):  # the archive as it is
                    file.write(block)
                    tell(source, file.tell(), 0)
            else:
                file = opened.enter_context(open(source, "rb"))
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{source}: {reason(error)}") from None
        yield _members(file, source, opened)


def _members(file: IO[bytes], source: str, opened: ExitStack) -> list[Offer]:
    """The files in an archive, which is refused if a member is unsafe, such as a link."""
    try:
        offers = _tar_members(file, source, opened)
        return _zip_members(file, source, opened) if offers is None else offers
    except InputError:
        raise
    except (OSError, ValueError, NotImplementedError, *DAMAGED):
        raise InputError(f"{source}: damaged, or neither a zip nor a tar archive") from None


def _tar_members(file: IO[bytes], source: str, opened: ExitStack) -> list[Offer] | None:
    """None if it is not a tar archive."""
    tar = None
    for mode in ("r:", "r:gz"):
        file.seek(0)
        with suppress(tarfile.ReadError):
            tar = tarfile.open(fileobj=file, mode=mode)  # noqa: SIM115  closed with `opened`
            break
    if tar is None:
        return None
    members = opened.enter_context(tar).getmembers()
    for member in members:
        _check_member(source, member.name, member.isreg() or member.isdir())

    def offer(member: tarfile.TarInfo) -> Offer:
        name = PureWindowsPath(member.name).name
        return Offer(f"{source}: {member.name}", name, lambda: closing(tar.extractfile(member)))

    return [offer(member) for member in members if member.isreg()]


def _zip_members(file: IO[bytes], source: str, opened: ExitStack) -> list[Offer]:
    archive = opened.enter_context(zipfile.ZipFile(file))
    members = archive.infolist()
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        _check_member(source, member.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))

    def offer(member: zipfile.ZipInfo) -> Offer:
        def opened_member() -> AbstractContextManager[Any]:
            known = not member.flag_bits & _ZIP_UNSUPPORTED and member.compress_type in _ZIP_METHODS
            expected = "expected one that is stored or deflated, without a password"
            require(known, f"{source}: {member.filename} cannot be unpacked, {expected}")
            return archive.open(member)

        name = PureWindowsPath(member.filename).name
        return Offer(f"{source}: {member.filename}", name, opened_member)

    return [offer(member) for member in members if not member.filename.endswith("/")]


def _check_member(source: str, name: str, plain: bool) -> None:
    path = PureWindowsPath(name)  # handles both separators, and drives
    safe = plain and not path.anchor and ".." not in path.parts
    expected = "expected files and folders inside it, no links, no devices"
    require(safe, f"{source}: the archive is not safe because of {name!r}, {expected}")
