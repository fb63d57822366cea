"""A PNG image packed as small as its pixels allow: the chart renderer packs for speed, a page of many images wants size."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def packed(png: bytes) -> bytes:
    """The same image with its pixel data compressed anew, bit for bit the same pixels. ``ValueError`` if it is no PNG."""
    if not png.startswith(SIGNATURE):
        raise ValueError("packed: not a PNG image")
    before, data, after = b"", b"", b""
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        chunk = png[at : at + 12 + length]
        if chunk[4:8] == b"IDAT":
            data += chunk[8:-4]
        elif data:
            after += chunk
        else:
            before += chunk
        at += len(chunk)
    return SIGNATURE + before + _chunk(b"IDAT", zlib.compress(zlib.decompress(data), 9)) + after


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
