"""Words in pictures: control characters escaped, widths, and the direction of writing."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_LEFT_TO_RIGHT_MARK = "\u200e"
_JOINERS = "\u200c\u200d"  # between letters of Persian and of Indian scripts, and between emoji
_NARROW = set("fijlrtI.,:;!'`|()[]{}/\\ ")
_BROAD = set("mwMW@%&—…")


def escaped(word: str) -> str:
    """The word with control and format characters escaped, like \\x1b or \\u202e."""
    return "".join(_escaped(character) for character in word)


def _escaped(character: str) -> str:
    # controls, formats (direction overrides), surrogates, private use, unassigned, separators
    if character in _JOINERS:
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def cut(word: str, length: int) -> str:
    return word if len(word) <= length else word[: length - 1] + "…"


def cells(text: str) -> int:
    """The width in a terminal, in character cells."""
    return sum(_cells(character) for character in text)


def fitted(text: str, room: int) -> str:
    """Cut to at most `room` character cells of a terminal."""
    while cells(text) > room:
        text = cut(text, len(text) - 1)
    return text


def kept_in_place(text: str) -> str:
    """Between direction marks, so that a bidirectional terminal keeps the order of the line."""
    turned = any(map(is_right_to_left, text))
    return f"{_LEFT_TO_RIGHT_MARK}{text}{_LEFT_TO_RIGHT_MARK}" if turned else text


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pixels(text: str, size: float = 15) -> float:
    """An upper estimate of the width in a sans-serif font, by classes of letters."""
    return size * sum(_ems(character) for character in text)


def _ems(character: str) -> float:
    if (columns := _cells(character)) != 1:
        return columns / 2
    if character in _NARROW:
        return 0.34
    if character in _BROAD:
        return 0.96
    return 0.72 if character.isupper() else 0.58


def is_right_to_left(word: str) -> bool:
    """Whether the first character with a strong direction is right-to-left."""
    kinds = map(unicodedata.bidirectional, word)
    return next((kind != "L" for kind in kinds if kind in ("L", "R", "AL")), False)


def run_right_to_left(words: Sequence[str]) -> bool:
    """Whether most words with a strong direction are right-to-left."""
    directed = [word for word in words if any(map(_has_direction, word))]
    return 2 * sum(map(is_right_to_left, directed)) > len(directed)


def _has_direction(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("L", "R", "AL")
