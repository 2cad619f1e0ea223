"""What calls return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, NamedTuple, Optional, overload


@dataclass
class Item:
    """The answer for one URL.

    index     its position in the input, from 0
    id        None where there is none
    status    new, due, seen, unseen, invalid, rejected, refused (erased),
              full, unavailable;
              with set= it is about the set
    url       the canonical URL, or None where it was refused
    reason    why it was refused
    new_site  with sites=True: whether it is the first URL of its site
    time      with times=True: when it was last claimed, in seconds
    unsure    True if the status is "seen" or "unavailable", and an earlier
              try got no answer or a shard did not answer: this call may have
              added the URL itself, claimed it with older, or put it into
              the set
    stored    with set=: the status without it (new, seen, unseen)
    """

    index: int
    id: Optional[int]
    status: str
    url: Optional[str] = None
    reason: Optional[str] = None
    new_site: Optional[bool] = None
    time: Optional[int] = None
    unsure: bool = False
    stored: Optional[str] = None

    @property
    def mine(self) -> bool:
        """Whether this call added or claimed the URL: fetch it."""
        return self.status in ("new", "due")


class Batch:
    """The items of a call, in the order of its input, and their counts.

    next_id   number of ids given when the call began; None at a router
    epoch     of the last answer; ids of another epoch are void; None at a
              router
    tries     requests sent, retries included
    """

    def __init__(self) -> None:
        self.items: List[Item] = []
        self.new = self.due = self.seen = self.unseen = self.errors = 0
        self.next_id: Optional[int] = None
        self.epoch: Optional[int] = None
        self.tries = 0

    def to_fetch(self) -> List[Item]:
        """Items that are this caller's to fetch, and those that may be."""
        return [item for item in self.items if item.mine or item.unsure]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> List[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | List[Item]:
        return self.items[at]


class Found(NamedTuple):
    """The answer for one id: status is ok, unknown or deleted."""

    id: int
    status: str
    url: Optional[str] = None
    time: Optional[int] = None


@dataclass
class Marked:
    """The answer for one item of mark(), unmark(), claim(), put_in() and
    take_out().

    status    set, clear, claimed, in, was, out, unseen, unknown, deleted, or
              why it was refused
    unsure    True if the status is "was" or "unavailable", and this call may
              have put the item into the set itself, as of Item
    """

    index: int
    id: Optional[int]
    status: str
    url: Optional[str] = None
    reason: Optional[str] = None
    unsure: bool = False


class Entry(NamedTuple):
    """A line of the feed; url is None where the id is deleted."""

    id: int
    url: Optional[str]
    time: Optional[int] = None


class Progress(NamedTuple):
    """Where a stream is, after each of its requests.

    total     length of the input, or None where it has none
    seconds   since the stream began
    """

    done: int
    total: Optional[int]
    new: int
    seen: int
    errors: int
    seconds: float

    @property
    def rate(self) -> float:
        """URLs a second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> Optional[float]:
        """Seconds left, where the total is known."""
        if self.total is None or not self.rate:
            return None
        return (self.total - self.done) / self.rate

    def __str__(self) -> str:
        text = (f"{self.done:,} URLs, {self.new:,} new, "
                f"{self.errors:,} refused, {self.rate:,.0f}/s")
        return text if self.left is None else f"{text}, {self.left:.0f} s left"
