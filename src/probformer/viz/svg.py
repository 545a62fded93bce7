"""SVG as text: elements, numbers, and the style of all pictures, for light and dark mode."""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from probformer.viz.words import escaped

_STYLE = """
svg.probformer { font-family: Helvetica, Arial, sans-serif; }
svg.probformer .paper { fill: #ffffff; }
svg.probformer .ink { fill: #1c2430; }
svg.probformer .dim { fill: #5b6675; }
svg.probformer .line { stroke: #8a94a3; fill: none; }
svg.probformer .outline { stroke: #1c2430; stroke-width: 1.4px; }
svg.probformer .stage { stroke: #2563a8; stroke-width: 1.4px; }
svg.probformer .arc { stroke: #2563a8; fill: none; }
svg.probformer .tip { fill: #2563a8; }
svg.probformer .root { stroke: #b4491a; fill: none; }
svg.probformer .root-tip { fill: #b4491a; }
svg.probformer .halo { stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
@media (prefers-color-scheme: dark) {
svg.probformer .paper { fill: #14181f; }
svg.probformer .ink { fill: #e8ecf1; }
svg.probformer .dim { fill: #a3adba; }
svg.probformer .line { stroke: #687385; }
svg.probformer .outline { stroke: #e8ecf1; }
svg.probformer .stage { stroke: #7db3f0; }
svg.probformer .arc { stroke: #7db3f0; }
svg.probformer .tip { fill: #7db3f0; }
svg.probformer .root { stroke: #f0a070; }
svg.probformer .root-tip { fill: #f0a070; }
svg.probformer .halo { stroke: #14181f; }
}
"""


class Block(NamedTuple):
    """A part of a picture, with its top left corner at 0, 0."""

    width: float
    height: float
    body: str


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, *children: str, **attributes: str | float) -> str:
    """An element; `class_` becomes class, `font_size` font-size. Children are markup."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}="
        + quoteattr(value if isinstance(value, str) else number(value))
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def text(content: str, x: float, y: float, size: float = 15, **attributes: str | float) -> str:
    attributes = {"class_": "ink", "text_anchor": "middle", "font_size": size, **attributes}
    return tag("text", markup(content), x=x, y=y, **attributes)


def markup(content: str) -> str:
    """A text, escaped for terminals and for SVG or HTML."""
    return escape(escaped(content), {'"': "&quot;"})


def moved(block: Block, x: float, y: float) -> str:
    return tag("g", block.body, transform=f"translate({number(x)} {number(y)})")


def document(block: Block, title: str, padding: float = 12) -> str:
    width, height = block.width + 2 * padding, block.height + 2 * padding
    return tag(
        "svg",
        tag("title", markup(title)),
        tag("style", _STYLE),
        tag("rect", class_="paper", width=width, height=height, rx=8),
        moved(block, padding, padding),
        xmlns="http://www.w3.org/2000/svg",
        class_="probformer",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
    )
