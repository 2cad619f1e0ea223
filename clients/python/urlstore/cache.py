"""A bounded memory of URLs that the store is known to have.

A URL that is seen stays seen, unless its id is deleted or the epoch changes;
so a client may answer "seen" itself.  The least recently used entry leaves.

The key of a link is what decides how the service resolves it, and no more.
An absolute http(s) link does not depend on its base; a link that begins with
one slash depends on the base's scheme and host; any other, on all of it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple, Optional

_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/\\?#\s]+(?=[/\\?#]|\Z)", re.IGNORECASE)


class Known(NamedTuple):
    id: int
    url: str


def key(url: str, base: Optional[str]) -> str:
    if base is None or _ABSOLUTE.match(url):
        return url
    if url[:1] == "/" and url[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        origin = _ORIGIN.match(base)
        if origin:
            return origin.group() + url
    return f"{len(base)} {base}{url}"


class Cache:
    """At most `size` URLs; 0 keeps none.  Safe to use from any thread."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str, base: Optional[str]) -> Optional[Known]:
        if not self.size:
            return None
        k = key(url, base)
        with self._lock:
            known = self._known.get(k)
            if known is not None:
                self._known.move_to_end(k)
            return known

    def put(self, url: str, base: Optional[str], known: Known) -> None:
        if not self.size:
            return
        k = key(url, base)
        with self._lock:
            self._known[k] = known
            self._known.move_to_end(k)
            if len(self._known) > self.size:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
