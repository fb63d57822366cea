"""A picture as HTML that needs no other file. Pure."""

from __future__ import annotations

import base64
from html import escape


def image(svg: str, alt: str) -> str:
    """The picture as an HTML image, with what is seen in it as its text; "" for none."""
    return f'<img src="{address(svg)}" alt="{escape(alt)}">' if svg else ""


def address(svg: str) -> str:
    """The picture as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
