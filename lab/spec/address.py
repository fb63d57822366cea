"""Addresses as they may be printed and kept: without what logs in."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def without_login(url: str) -> str:
    """``url`` without user, password, query and fragment, any of which may be a secret; one that has none as it is.

    What can't be taken apart is cut before its last "@", so that nothing of a login is left.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        return url.rpartition("@")[2].partition("?")[0].partition("#")[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
