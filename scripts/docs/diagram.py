"""Mermaid diagrams as SVG, drawn while the site is built: a browser would fetch a program for it."""

import re

import mermaidx

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def with_diagrams(markdown: str) -> str:
    """A page whose Mermaid blocks are figures."""
    return BLOCK.sub(_drawn, markdown)


def _drawn(block: re.Match[str]) -> str:
    svg = mermaidx.render(block[1]).svg()
    return f'<figure class="diagram">{" ".join(svg.split())}</figure>'
