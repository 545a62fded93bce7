"""Corpora arrive whole and right, or not at all."""

import errno
import gzip
import io
import random
import re
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import probformer
from helpers.messages import check_wording, refused
from probformer.data import fetch, sources
from probformer.data.fetch import check_corpus, fetch_corpus
from probformer.data.registry import CorpusEntry, CorpusFile, find_corpus, list_corpora
from probformer.errors import InputError

TRAIN = b"the cat sat on the mat\n" * 9000  # several blocks
TEST = b"a dog stood by\n"


def known(name: str, text: bytes, address: str | None = None) -> CorpusFile:
    return CorpusFile(name, len(text), sha256(text).hexdigest(), address)


def corpus(*files: CorpusFile) -> CorpusEntry:
    return CorpusEntry("cats", "Cats", "free", "the library", files)


def tree(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder: the bytes of files, None for folders."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


class Handler(BaseHTTPRequestHandler):
    """Sends what the server has under a path; some paths misbehave."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append((self.path, self.headers["User-Agent"]))
        name = self.path.removeprefix("/")
        self.close_connection = True
        if name in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[name])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif name == "silent":
            self.server.released.wait(10)
        elif name == "chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\na dog\r\n64\r\n stood")
        elif name in self.server.files:
            body = self.server.files[name]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + self.server.withheld))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # wait for them at the end

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"train.txt": TRAIN, "test.txt": TEST}
        self.redirects = {}
        self.requests = []
        self.withheld = 0
        self.released = threading.Event()

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cats(server) -> CorpusEntry:
    return corpus(
        known("train.txt", TRAIN, server.address("train.txt")),
        known("test.txt", TEST, server.address("test.txt")),
    )


@pytest.fixture(params=["new", "old"])
def folder(request, tmp_path) -> Path:
    """A folder that is not there yet, or one with a bad copy and other files in it."""
    if request.param == "new":
        return tmp_path / "some" / "where"
    place = tmp_path / "data" / "cats"
    place.mkdir(parents=True)
    (place / "train.txt").write_bytes(b"not this")
    (place / "mine.txt").write_bytes(b"keep this")
    return tmp_path / "data"


def refusal(tmp_path: Path, *arguments) -> str:
    """The message of a fetch that fails and changes nothing."""
    before = tree(tmp_path)
    with pytest.raises(InputError) as error:
        fetch_corpus(*arguments)
    assert tree(tmp_path) == before
    return str(error.value)


def check_refusal(tmp_path: Path, *arguments, named: str) -> None:
    """The same, in the words of the snapshot, without numbers of ports and processes."""
    message = refusal(tmp_path, *arguments)
    assert named in message
    message = re.sub(r"127\.0\.0\.1:\d+", "SERVER", message)
    check_wording(re.sub(r"\.\d+\.part", ".PROCESS.part", message))


# The registry


def test_the_registry_is_well_formed():
    names = [known.name for known in list_corpora()]
    assert len(set(names)) == len(names)
    for known in list_corpora():
        assert re.fullmatch(r"[a-z0-9_]+", known.name)
        assert known.title
        assert known.licence
        assert known.home
        assert not known.home.endswith(".")
        assert len({file.name for file in known.files}) == len(known.files)
        for file in known.files:
            assert Path(file.name).name == file.name
            assert file.size > 0
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            assert file.address is None or file.address.startswith("https://")


@pytest.mark.parametrize("name", ["conll2003", "wsj_sample", "ptb", "bllip"])
def test_licensed_text_is_not_downloaded(name, tmp_path):
    licensed = find_corpus(name)
    check_refusal(tmp_path, licensed, tmp_path, named=licensed.home)
    assert refusal(tmp_path, licensed, tmp_path).endswith(str(tmp_path / name))


@pytest.mark.parametrize("name", ["ptb", "bllip"])
def test_where_no_file_is_known_no_source_helps(name, tmp_path):
    assert check_corpus(find_corpus(name), tmp_path) == []
    check_refusal(tmp_path, find_corpus(name), tmp_path, str(tmp_path), named=name)


def test_a_corpus_is_found_by_its_name():
    assert find_corpus("cogs").licence == "MIT"
    with refused("'ud-ewt'", "ud_ewt"):
        find_corpus("ud-ewt")
    with refused("ptb_lm", "bllip"):
        find_corpus("")


def test_the_names_of_the_two_cogs_files_are_not_mixed_up():
    files = {file.name: file for file in find_corpus("cogs").files}
    old, new = files["gen.tsv"], files["gen.2022-09-fix.tsv"]
    assert old.size == new.size
    assert old.sha256 != new.sha256
    assert old.address != new.address


def test_importing_asks_for_nothing():
    """All there is, after what fetches without the rest."""
    code = """
import importlib, importlib.util, pkgutil, socket, sys
def refuse(*_): raise AssertionError("the network is used")
socket.socket.connect = socket.getaddrinfo = refuse
import probformer.data.fetch
probformer.data.registry.list_corpora()
assert "torch" not in sys.modules
TRITON = importlib.util.find_spec("triton")
for module in pkgutil.walk_packages(probformer.__path__, "probformer."):
    needs_triton = module.name.startswith("probformer.kernels.")  # which not all systems have
    if not module.name.endswith("__main__") and (not needs_triton or TRITON):
        importlib.import_module(module.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Checking


def test_each_file_is_ok_or_missing_or_differs(tmp_path):
    cats = corpus(known("a", TRAIN), known("b", TEST), known("c", TEST), known("d", TEST))
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "a").write_bytes(TRAIN)
    (tmp_path / "cats" / "c").write_bytes(TEST + b"!")
    (tmp_path / "cats" / "d").write_bytes(TEST.upper())
    a, b, c, d = check_corpus(cats, tmp_path)
    assert [state.state for state in (a, b, c, d)] == ["ok", "missing", "differs", "differs"]
    assert (b.size, b.sha256) == (None, None)
    assert (c.size, c.sha256) == (len(TEST) + 1, sha256(TEST + b"!").hexdigest())
    assert str(a) == f"ok: {tmp_path / 'cats' / 'a'}"
    assert str(b) == f"missing: {tmp_path / 'cats' / 'b'}"
    check_wording(str(d), f"differs: {tmp_path / 'cats' / 'd'}", sha256(TEST.upper()).hexdigest())


def test_of_a_compressed_file_the_text_counts(tmp_path):
    cats = corpus(known("train.txt.gz", TRAIN))
    (tmp_path / "cats").mkdir()
    path = tmp_path / "cats" / "train.txt.gz"
    good = gzip.compress(TRAIN, 9)
    for data, expected in {
        good: "ok",
        gzip.compress(TRAIN, 1): "ok",
        gzip.compress(TRAIN[:-1]): "differs",
        good[:-1]: "differs",
        good[:-8] + bytes(8): "differs",
        good[:50] + bytes(50) + good[100:]: "differs",
        TRAIN: "differs",
        b"": "differs",
    }.items():
        path.write_bytes(data)
        (state,) = check_corpus(cats, tmp_path)
        assert state.state == expected


def test_damage_behind_the_last_byte_of_the_text_counts(tmp_path):
    text = bytes(2**20)  # whole blocks, so that all of it is read before the damage
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "x.gz").write_bytes(gzip.compress(text)[:-8] + bytes(8))
    (state,) = check_corpus(corpus(known("x.gz", text)), tmp_path)
    assert state.state == "differs"
    assert state.size == len(text)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path, cats):
    (tmp_path / "cats" / "train.txt").mkdir(parents=True)
    check_refusal(tmp_path, cats, tmp_path, named="train.txt: ")
    other = tmp_path / "file"
    other.write_bytes(b"")
    check_refusal(tmp_path, cats, other, named="train.txt: ")
    assert "embedded null" in refusal(tmp_path, cats, tmp_path / "a\0b")


# Fetching from addresses


def test_a_corpus_is_downloaded(folder, cats, server):
    place = folder / "cats"
    told = []
    paths = fetch_corpus(cats, folder, progress=lambda *news: told.append(news))
    assert paths == [place / "train.txt", place / "test.txt"]
    found = tree(place)
    assert found.pop("mine.txt", b"keep this") == b"keep this"
    assert found == {"train.txt": TRAIN, "test.txt": TEST}
    assert {agent for _, agent in server.requests} == {f"probformer/{probformer.__version__}"}
    trained = [done for name, done, total in told if (name, total) == ("train.txt", len(TRAIN))]
    assert trained == sorted(trained)
    assert trained[-1] == len(TRAIN)
    assert len(trained) > 1
    assert told[-1] == ("test.txt", len(TEST), len(TEST))


def test_what_is_there_is_not_downloaded_again(tmp_path, cats, server):
    (tmp_path / "cats").mkdir()
    test = tmp_path / "cats" / "test.txt"
    test.write_bytes(TEST)
    before = test.stat()
    assert fetch_corpus(cats, tmp_path) == [tmp_path / "cats" / "train.txt"]
    assert [path for path, _ in server.requests] == ["/train.txt"]
    assert fetch_corpus(cats, tmp_path) == []
    assert fetch_corpus(cats, tmp_path, "no such source") == []
    assert len(server.requests) == 1
    assert (test.stat().st_ino, test.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("served", ["x.txt", "x.txt.gz"])
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_compression_changes_on_the_way(tmp_path, server, served, name):
    server.files["x.txt"], server.files["x.txt.gz"] = TRAIN, gzip.compress(TRAIN)
    cats = corpus(known(name, TRAIN, server.address(served)))
    (path,) = fetch_corpus(cats, tmp_path)
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == TRAIN
    assert fetch_corpus(cats, tmp_path) == []


def test_a_redirect_is_followed(tmp_path, cats, server):
    server.redirects["train.txt"] = "/moved"
    server.files["moved"] = TRAIN
    fetch_corpus(cats, tmp_path)
    assert (tmp_path / "cats" / "train.txt").read_bytes() == TRAIN


def test_a_good_first_file_does_not_stay_without_the_second(tmp_path, folder, cats, server):
    del server.files["test.txt"]
    check_refusal(tmp_path, cats, folder, named=server.address("test.txt"))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("body", "size"),
    [(TEST.upper(), "15 bytes"), (TEST[:-1], "14"), (TEST + TRAIN, "more than 15"), (b"", "0")],
    ids=["other", "shorter", "longer", "empty"],
)
def test_other_bytes_are_refused(tmp_path, folder, cats, server, body, size):
    server.files["test.txt"] = body
    check_refusal(tmp_path, cats, folder, named=size)


def test_a_cut_connection_is_noticed(tmp_path, folder, cats, server):
    server.files["train.txt"], server.withheld = TRAIN[:-1000], 1000
    check_refusal(tmp_path, cats, folder, named="train.txt: ")


def test_a_connection_cut_after_the_last_byte_of_the_text_is_noticed(tmp_path, cats, server):
    server.withheld = 7
    check_refusal(tmp_path, cats, tmp_path, named="7 bytes")


def test_a_cut_connection_is_noticed_in_other_encodings(tmp_path, folder, server):
    cats = corpus(known("test.txt", TEST, server.address("chunks")))
    assert refusal(tmp_path, cats, folder).startswith(f"{server.address('chunks')}: Incomplete")
    packed = gzip.compress(TRAIN)
    server.files["x.gz"], server.withheld = packed[:-100], 100
    cats = corpus(known("train.txt", TRAIN, server.address("x.gz")))
    check_refusal(tmp_path, cats, folder, named="x.gz: ")


@pytest.mark.parametrize(
    "target", ["/train.txt", "https://127.0.0.1/x", "ftp://127.0.0.1/x", "FILE", ""]
)
def test_a_redirect_in_circles_or_elsewhere_is_not_followed(tmp_path, folder, cats, server, target):
    secret = tmp_path / "secret"
    secret.write_bytes(TRAIN)  # even the right bytes
    server.redirects["train.txt"] = secret.as_uri() if target == "FILE" else target
    check_refusal(tmp_path, cats, folder, named=f"{server.address('train.txt')}: ")
    assert len(server.requests) < 12


def test_silence_is_not_waited_for(tmp_path, folder, server, monkeypatch):
    monkeypatch.setattr(sources, "_TIMEOUT", 0.1)
    cats = corpus(known("test.txt", TEST, server.address("silent")))
    check_refusal(tmp_path, cats, folder, named="0.1 seconds")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("ftp://127.0.0.1/x", "http, https, file"),
        ("data:text/plain,x", "http, https, file"),
        ("http://127.0.0.1:1/x", "Connection refused"),
        ("http:///x", "no host given"),
        ("http://[/x", "Invalid IPv6 URL"),
        ("http://127.0.0.1:x/x", "nonnumeric port: 'x'"),
        ("file:///no/such/file", "No such file or directory"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(tmp_path, folder, address, reason):
    cats = corpus(known("test.txt", TEST, address))
    message = refusal(tmp_path, cats, folder)
    assert message.startswith(f"{address}: ")
    assert reason in message


def test_a_full_disk_leaves_nothing(tmp_path, folder, cats, monkeypatch):
    class FullDisk(io.FileIO):
        written = 0

        def write(self, data):
            FullDisk.written += len(data)
            if FullDisk.written > 100_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(fetch, "open", lambda path, mode: FullDisk(path, mode), raising=False)
    check_refusal(tmp_path, cats, folder, named="No space left on dev")
    assert FullDisk.written > 100_000


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, cats, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    expected = f"{tmp_path / 'new' / 'cats'}: cannot be written: Permission denied"
    assert refusal(tmp_path, cats, tmp_path / "new") == expected


def test_an_interrupt_leaves_nothing(tmp_path, folder, cats):
    def interrupt(name, done, total):
        if name == "test.txt":
            assert list((folder / "cats").glob("*.part"))
            raise KeyboardInterrupt

    before = tree(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fetch_corpus(cats, folder, progress=interrupt)
    assert tree(tmp_path) == before


# Fetching from a folder or an archive

TEXTS = {"deep/er/train.txt": TRAIN, "test.txt": TEST, "README": b"cats\n"}
OWNED = corpus(known("train.txt", TRAIN), known("test.txt", TEST))


def zipped(texts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("deep")
        for name, text in texts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(texts: dict[str, bytes], compression: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:
        folder = tarfile.TarInfo("deep")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


ARCHIVES = {
    "cats.zip": zipped,
    "cats.tar": tarred,
    "cats.tar.gz": lambda texts: tarred(texts, "gz"),
    "cats.tgz": lambda texts: tarred(texts, "gz"),
}


@pytest.fixture
def written(tmp_path):
    def write(name: str, data: bytes) -> str:
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    return write


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("way", ["path", "file", "http"])
def test_a_corpus_comes_from_an_archive(folder, server, written, name, way):
    data = ARCHIVES[name](TEXTS)
    server.files[name] = data
    path = written(name, data)
    source = {"path": path, "file": Path(path).as_uri(), "http": server.address(name)}[way]
    paths = fetch_corpus(OWNED, folder, source)
    assert [path.read_bytes() for path in paths] == [TRAIN, TEST]
    assert not (folder / "cats" / "README").exists()
    assert fetch_corpus(OWNED, folder, source) == []


def test_a_corpus_comes_from_a_folder(tmp_path, folder, written):
    for name, text in TEXTS.items():
        source = written(name, text)
    source = str(tmp_path / "source")
    paths = fetch_corpus(OWNED, folder, source)
    assert [path.read_bytes() for path in paths] == [TRAIN, TEST]


@pytest.mark.parametrize("name", ARCHIVES)
def test_among_files_of_one_name_the_known_one_is_taken(folder, written, name):
    texts = {"a/test.txt": TEST.upper(), "b/test.txt": TRAIN, "c/test.txt": TEST, "d/test.txt": b""}
    (path,) = fetch_corpus(
        corpus(known("test.txt", TEST)), folder, written(name, ARCHIVES[name](texts))
    )
    assert path.read_bytes() == TEST


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_file_may_be_compressed_in_the_source(folder, written, name):
    texts = {"train.txt.gz": gzip.compress(TRAIN), "test.txt": TEST}
    cats = corpus(known("train.txt", TRAIN), known("test.txt.gz", TEST))
    train, test = fetch_corpus(cats, folder, written(name, ARCHIVES[name](texts)))
    assert train.read_bytes() == TRAIN
    assert gzip.decompress(test.read_bytes()) == TEST


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_source_with_other_files_is_refused(tmp_path, folder, written, name):
    source = written(name, ARCHIVES[name]({"train.txt": TRAIN, "x/test.txt": TEST.upper()}))
    check_refusal(tmp_path, OWNED, folder, source, named=f"{source}: x/test.txt: ")
    source = written(name, ARCHIVES[name]({"train.txt": TRAIN, "test.txt.bak": TEST}))
    check_refusal(tmp_path, OWNED, folder, source, named="test.txt")


NAMES_THAT_LEAD_OUT = ["../evil", "deep/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "\\evil"]


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("evil", NAMES_THAT_LEAD_OUT)
def test_an_archive_that_leads_out_is_refused_as_a_whole(tmp_path, folder, written, name, evil):
    source = written(name, ARCHIVES[name]({**TEXTS, evil: b"evil"}))
    message = refusal(tmp_path, OWNED, folder, source)
    assert message.startswith(f"{source}: ")
    assert repr(evil) in message


KINDS = {
    "symlink": (tarfile.SYMTYPE, stat.S_IFLNK),
    "hard link": (tarfile.LNKTYPE, None),
    "pipe": (tarfile.FIFOTYPE, stat.S_IFIFO),
    "character device": (tarfile.CHRTYPE, stat.S_IFCHR),
    "block device": (tarfile.BLKTYPE, stat.S_IFBLK),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_with_links_or_devices_is_refused_as_a_whole(tmp_path, folder, written, kind):
    tar_type, zip_type = KINDS[kind]
    sources = []
    buffer = io.BytesIO(tarred(TEXTS))
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        member = tarfile.TarInfo("odd")
        member.type = tar_type
        member.linkname = "test.txt"
        archive.addfile(member)
    sources.append(written("cats.tar", buffer.getvalue()))
    if zip_type is not None:
        buffer = io.BytesIO(zipped(TEXTS))
        with zipfile.ZipFile(buffer, "a") as archive:
            member = zipfile.ZipInfo("odd")
            member.external_attr = (zip_type | 0o777) << 16
            archive.writestr(member, "test.txt")
        sources.append(written("cats.zip", buffer.getvalue()))
    for source in sources:
        check_refusal(tmp_path, OWNED, folder, source, named="'odd'")


def test_an_unsafe_archive_is_refused_before_anything_is_written(
    tmp_path, folder, written, monkeypatch
):
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: pytest.fail("a folder is made"))
    monkeypatch.setattr(fetch, "open", lambda *_: pytest.fail("a file is opened"), raising=False)
    source = str(tmp_path / "cats.zip")
    Path(source).write_bytes(zipped({**TEXTS, "../evil": b""}))
    check_refusal(tmp_path, OWNED, folder, source, named="'../evil'")


@pytest.mark.parametrize(
    "data",
    [b"", b"cats\n", bytes(2000), gzip.compress(TRAIN), b"PK\3\4" * 9],
    ids=["empty", "text", "zeros", "gzip", "zip"],  # zeros are an empty tar archive
)
def test_what_is_no_archive_is_refused(tmp_path, folder, written, data):
    source = written("cats.zip", data)
    check_refusal(tmp_path, OWNED, folder, source, named=f"{source}: ")


def test_a_source_that_is_not_there_is_refused(tmp_path, folder, server):
    source = str(tmp_path / "no.zip")
    check_refusal(tmp_path, OWNED, folder, source, named=source)
    assert "embedded null" in refusal(tmp_path, OWNED, folder, "a\0b")
    check_refusal(tmp_path, OWNED, folder, server.address("no.zip"), named="404")
    check_refusal(tmp_path, OWNED, folder, "ftp://127.0.0.1/x.zip", named="http, https, file")


def test_an_archive_cut_on_the_way_is_refused(tmp_path, folder, server):
    server.files["cats.zip"], server.withheld = zipped(TEXTS), 3
    check_refusal(tmp_path, OWNED, folder, server.address("cats.zip"), named="3 bytes")


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (8, 32), (8, 64), (10, 12)])
def test_a_zip_with_a_password_or_another_method_is_refused(
    tmp_path, folder, written, offset, value
):
    data = bytearray(zipped({"test.txt": TEST}))
    data[data.rindex(b"PK\1\2") + offset] |= value
    source = written("cats.zip", bytes(data))
    check_refusal(tmp_path, corpus(known("test.txt", TEST)), folder, source, named="test.txt")


def test_a_zip_that_points_behind_its_end_is_refused(tmp_path, folder, written):
    data = bytearray(zipped({"test.txt": TEST}))
    data[data.rindex(b"PK\1\2") + 42] = len(data) - 9
    source = written("cats.zip", bytes(data))
    check_refusal(tmp_path, corpus(known("test.txt", TEST)), folder, source, named="test.txt")


@pytest.mark.parametrize("name", ARCHIVES)
def test_damage_is_never_worse_than_an_error_to_read(tmp_path, written, name):
    """Bytes changed or cut at random: what is taken is right all the same."""
    chance = random.Random(0)
    texts = {"train.txt": chance.randbytes(500), "test.txt": TEST, "x.gz": gzip.compress(TEST)}
    cats = corpus(known("train.txt", texts["train.txt"]), known("test.txt", TEST), known("x", TEST))
    whole = ARCHIVES[name](texts)
    failed = 0
    for trial in range(150):
        data = bytearray(whole)
        if trial % 3 == 0:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(chance.choice([1, 3, 30])):
                data[chance.randrange(len(data))] = chance.randrange(256)
        source = written(name, bytes(data))
        folder = tmp_path / str(trial)
        try:
            paths = fetch_corpus(cats, folder, source)
        except InputError:
            failed += 1
            assert not folder.exists()
        else:
            assert [path.read_bytes() for path in paths] == [texts["train.txt"], TEST, TEST]
    assert failed > 50
