"""Limits on what one request may cost; docs/api.md lists them."""

from __future__ import annotations

from collections.abc import Sequence

from probformer import viz
from probformer.errors import counted, require, shortened
from probformer.runs.run_folder import Run
from probformer.web.requests import SentenceText

MAX_WORDS, MAX_CHARACTERS = 200, 100
MAX_PIECES = 300  # of a sentence whose words are split
MAX_NUMBERS = 8_000_000  # 300 pieces, 16 channels and 5 iterations fit
SMALLEST_ARC = 0.01  # that has a label in an answer, so a word has at most 100 of them
MAX_ARCS, MAX_CELLS = 20_000, 200_000  # these take a few seconds to draw


def checked_words(run: Run, sentence: SentenceText) -> list[str]:
    """The words of a sentence, if it is not too long."""
    words = sentence.split() if isinstance(sentence, str) else sentence
    require(len(words) > 0, "a sentence must have words, got none")
    limit = f"a sentence may have at most {MAX_WORDS} words"
    require(len(words) <= MAX_WORDS, f"{limit}, got {counted(len(words), 'word')}")
    for word in words:
        limit = f"a word may have at most {MAX_CHARACTERS} characters"
        require(len(word) <= MAX_CHARACTERS, f"{limit}, got {len(word):,}: {shortened(word)}")
        require(not _has_surrogate(word), f"a word must be valid Unicode, got {shortened(word)}")
    pieces = _count_pieces(run, words)
    limit = f"a sentence may have at most {MAX_PIECES} pieces of words"
    require(pieces <= MAX_PIECES, f"{limit}, got {pieces:,}")
    return words


def check_numbers(run: Run, sentences: Sequence[Sequence[str]]) -> None:
    """Iterations × channels × Σ n², over the sentences together."""
    settings = run.model.encoder.settings
    pairs = sum(_count_pieces(run, words) ** 2 for words in sentences)
    numbers = settings.steps * settings.channels * pairs
    limit = f"iterations × channels × Σ words² may be at most {MAX_NUMBERS:,}"
    remedy = "send fewer or shorter sentences"
    require(numbers <= MAX_NUMBERS, f"{limit}, got {numbers:,}: {remedy}")


def check_picture(picture: viz.Picture) -> None:
    if isinstance(picture, viz.Arcs):
        arcs = sum(len(panel.arcs) for panel in picture.panels)
        limit = f"a picture may have at most {MAX_ARCS:,} arcs"
        require(arcs <= MAX_ARCS, f"{limit}, got {arcs:,}: a higher threshold leaves some out")
    if isinstance(picture, viz.HeatMap):
        cells = sum(matrix.size for _, matrix in picture.panels)
        limit = f"a heat map may have at most {MAX_CELLS:,} cells"
        require(cells <= MAX_CELLS, f"{limit}, got {cells:,}: choose one channel")


def _count_pieces(run: Run, words: Sequence[str]) -> int:
    return len(run.vocabulary.encode(words).ids)


def _has_surrogate(word: str) -> bool:
    """JSON can escape half of a surrogate pair, which UTF-8 cannot encode."""
    return any("\ud800" <= character <= "\udfff" for character in word)
