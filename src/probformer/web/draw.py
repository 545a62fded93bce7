"""`POST /api/v1/draw`: the picture that `probformer draw` makes, as the text of a file."""

from __future__ import annotations

from probformer.analysis.draw import check_options, draw_marginals
from probformer.analysis.marginals import infer_sentence
from probformer.web.evidence import evidence_of
from probformer.web.limits import check_numbers, check_picture, checked_words
from probformer.web.open_runs import OpenRuns
from probformer.web.requests import DrawRequest


def draw(runs: OpenRuns, request: DrawRequest) -> str:
    run = runs[request.run]
    words = checked_words(run, request.sentence)
    check_numbers(run, [words])
    channel = None if request.channel is None else str(request.channel)
    options = request.kind, channel, request.iteration, request.threshold
    check_options(*options)
    marginals = infer_sentence(run, words, evidence_of(run, len(words), request.clamps))
    picture = draw_marginals(run, marginals, *options)
    check_picture(picture)
    return {"svg": picture.svg, "html": picture.html, "tex": picture.tikz}[request.format]()
