"""Error messages: a test says what a message must name; `tests/messages.json` has its wording.

After a change of wording, `make messages` writes that file anew, and its diff shows every message
that has changed. `make messages TESTS=tests/data` does so for the tests of one folder.
"""

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from helpers.places import TESTS
from probformer.errors import InputError

SNAPSHOT = TESTS / "messages.json"
WRITING = bool(os.environ.get("PROBFORMER_WRITE_MESSAGES"))
_FRESH = SNAPSHOT.with_suffix(".part")
_TEMPORARY = re.compile(  # folders of tests are numbered in the order in which tests run
    rf"{re.escape(tempfile.gettempdir())}/pytest-of-\w+/pytest-\d+/(popen-gw\d+/)?"
    r"[\w-]+?\d+(?=[/:;,'\s]|$)"
)
_seen: Counter[str] = Counter()
_known: dict[str, str] = {}


@contextmanager
def refused(*named: str, error: type[Exception] = InputError) -> Iterator[None]:
    """The block raises an error that names all of `named`, in the wording of the snapshot."""
    with pytest.raises(error) as caught:
        yield
    check_wording(str(caught.value), *named)


def check_wording(message: str, *named: str) -> None:
    """The same for a message that does not come as an exception, such as standard error."""
    for part in named:
        assert part in message, f"{part!r} is not named in: {message}"
    assert "\n" not in message.strip(), f"more than one line: {message}"
    message = _TEMPORARY.sub("TEMPORARY", message.strip())
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0].removeprefix("tests/")
    _seen[test] += 1
    key = test if _seen[test] == 1 else f"{test} #{_seen[test]}"
    if WRITING:
        with _FRESH.open("a", encoding="utf-8") as file:  # several processes may do so at a time
            file.write(json.dumps([key, message]) + "\n")
        return
    if not _known:
        _known.update(json.loads(SNAPSHOT.read_text(encoding="utf-8")))
    assert message == _known.get(key), "other words than in tests/messages.json: `make messages`"


def keep_what_was_written() -> None:
    """After all tests: their messages replace those of the same test files in the snapshot."""
    if not _FRESH.is_file():
        return
    messages = json.loads(SNAPSHOT.read_text(encoding="utf-8")) if SNAPSHOT.is_file() else {}
    lines = _FRESH.read_text(encoding="utf-8").splitlines()
    fresh = dict(json.loads(line) for line in lines)
    files = {key.partition("::")[0] for key in fresh}
    messages = {k: v for k, v in messages.items() if k.partition("::")[0] not in files} | fresh
    text = json.dumps(dict(sorted(messages.items())), indent=0, ensure_ascii=False)
    SNAPSHOT.write_text(text + "\n", encoding="utf-8")
    _FRESH.unlink()
