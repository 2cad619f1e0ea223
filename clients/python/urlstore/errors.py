"""What a call raises when it has no answer to return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from .values import Item


class UrlStoreError(Exception):
    """A request failed for good.

    tries   how often it was sent
    unsure  True if the service may have applied a part of it: what is `seen`
            when it is asked again may be new
    done    of a call that takes several requests: the items that earlier
            requests of this call answered
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.tries = 0
        self.unsure = False
        self.done: List[Item] = []


class NoAnswer(UrlStoreError):
    """No whole answer came: refused, cut off, timed out, or not readable.

    The service may have applied the request.
    """


# without "processed", these can come after a change; 503 and 429 cannot
UNKNOWN = frozenset((408, 500, 502, 504))


class Problem(UrlStoreError):
    """The service refused the request.

    status       the HTTP status code
    document     the problem document (RFC 9457); empty if there was none
    retry_after  seconds the service asked to wait, or None
    """

    def __init__(self, status: int, document: Dict[str, Any],
                 retry_after: Optional[float], where: str) -> None:
        self.status = status
        self.document = document
        self.retry_after = retry_after
        detail = self.detail
        if not document and status in (404, 405):
            detail = "no urlstore answers at this address"
        super().__init__(f"{where}: {status} {self.title}".rstrip()
                         + (f": {detail}" if detail else ""))

    @property
    def title(self) -> str:
        return str(self.document.get("title", ""))

    @property
    def detail(self) -> str:
        return str(self.document.get("detail", ""))

    @property
    def processed(self) -> int:
        """How many items of the batch were applied before the fault."""
        n = self.document.get("processed", 0)
        return n if isinstance(n, int) else 0

    @property
    def applied(self) -> bool:
        """Whether the request may have changed the store: the service says
        that it did, or did not say, as a proxy that waits in vain."""
        if "processed" in self.document:
            return self.processed > 0
        return self.status in UNKNOWN
