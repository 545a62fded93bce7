"""One picture of every kind, for any words."""

import xml.etree.ElementTree as ET

import numpy as np

from probformer import viz

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>alert(1)</script>", "&amp;", "$%#_{}\\", "\x1b[31m", "\u202eevil", "\"'", "]]>"]


def random_heads(n, h, seed=0):
    """Heads (h, n, n) and root (h, n)."""
    scores = np.random.default_rng(seed).normal(scale=2, size=(h, n, n + 1))
    scores[:, range(n), range(n)] = -np.inf
    values = np.exp(scores)
    values /= values.sum(-1, keepdims=True)
    return values[:, :, :n], values[:, :, n]


def random_labels(words, shape, seed=0):
    """Texts (…, n, n+1), out of the words, and their probabilities."""
    chance = np.random.default_rng(seed)
    size = (*shape, len(words), len(words) + 1)
    return chance.choice(list(words), size=size).tolist(), chance.random(size)


def pictures(words):
    n = len(words)
    heads, root = random_heads(n, 3)
    names, certain = random_labels(words, (3,))
    labelled = {"labels": names, "label_probabilities": certain, "probabilities": True}
    labels = np.random.default_rng(0).dirichlet(np.ones(5), size=len(words))
    return {
        "arcs": viz.arcs(words, heads[0], root[0], probabilities=True, titles=[words[0]]),
        "grid": viz.arcs(words, heads, root, titles=["a", "b", words[0]]),
        "animation": viz.animation(words, heads, root, threshold=0.1, titles=list(words[:3])),
        "labelled": viz.arcs(words, heads, root, **labelled),
        "moving labels": viz.animation(words, heads, root, threshold=0.1, **labelled),
        "tree": viz.tree(words, range(-1, n - 1), words[::-1], label_probabilities=root[0]),
        "heat": viz.heat_map(words, heads, root, probabilities=True),
        "labels": viz.label_table(words, labels, dict.fromkeys(range(5), words)),
    }


def texts(svg, kind=None):
    elements = ET.fromstring(svg).iter(f"{SVG}text")
    return ["".join(e.itertext()) for e in elements if kind in (None, e.get("class"))]
