"""The synchronous client: http.client, and nothing else."""

from __future__ import annotations

import os
import ssl
import time
from collections import deque
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from selectors import EVENT_READ, DefaultSelector
from typing import (Any, Callable, Deque, Dict, Iterable, Iterator, List,
                    Mapping, Optional, Tuple, TypeVar, Union)

from . import protocol
from .errors import UrlStoreError
from .protocol import Call, Duration, Got, Lost, Ref, Reply, Send, Sleep
from .values import Batch, Entry, Found, Item, Marked, Progress

T = TypeVar("T")


class Store:
    """A store at an address such as http://127.0.0.1:8080/urls.

    timeout   seconds that a connection may be silent
    patience  a request is tried again for this many seconds.  The service
              remembers an Idempotency-Key for 5 minutes: stay below that.
    batch     items in a request, at most 10,000
    body      bytes in a request, before compression
    gzip      compresses bodies of 1 KiB and more
    cache     URLs whose id and canonical form are kept here: a link found
              among them is answered as "seen" without a request.  Entries
              leave when the id is deleted through this object or the epoch
              changes; a delete by another client is not noticed.
    headers   sent with each request, e.g. {"Authorization": ...}
    context   for https

    Safe to use from any thread, and after a fork.  A call that fails closes
    its connection; the next one opens another.
    """

    def __init__(self, address: str, *, timeout: float = 30.0,
                 patience: float = 50.0, batch: int = 1000,
                 body: int = 1 << 20, gzip: bool = False, cache: int = 0,
                 headers: Optional[Mapping[str, str]] = None,
                 context: Optional[ssl.SSLContext] = None) -> None:
        self._core = protocol.Core(protocol.Options(
            address, timeout=timeout, patience=patience, batch=batch,
            body=body, gzip=gzip, cache=cache, headers=headers))
        self._context = context
        self._idle: Deque[HTTPConnection] = deque()
        self._pid = os.getpid()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections; the object can still be used."""
        while self._idle:
            self._idle.pop().close()

    # adding and looking up

    def add(self, url: str, base: Optional[str] = None, *,
            older: Optional[Duration] = None, set: Optional[str] = None,
            sites: bool = False, times: bool = False) -> Item:
        """Is this URL new?  It is added if so."""
        return self.add_all([url], base, older=older, set=set, sites=sites,
                            times=times)[0]

    def add_all(self, urls: Iterable[str], base: Optional[str] = None, *,
                only_new: bool = False, older: Optional[Duration] = None,
                set: Optional[str] = None, sites: bool = False,
                times: bool = False) -> Batch:
        """Adds what is new; one answer for each URL, in their order.

        base      the URL of the page: links are given as they stand in it
        only_new  leaves out all answers but `new` and `due`
        older     a URL last claimed longer ago than this ("30d", seconds
                  or a timedelta) is claimed now and answered as `due`
        set       the name of a set: a URL that is not in it is put in and
                  answered as `new`, whether the store had it or not
        sites     says for each whether it is the first URL of its site
        times     gives the time of the last claim
        """
        return self._gather(self._core.look_up(
            "/add", urls, base, only_new, older, sites, times, set))

    def add_stream(self, urls: Iterable[str], base: Optional[str] = None, *,
                   only_new: bool = False, older: Optional[Duration] = None,
                   set: Optional[str] = None, sites: bool = False,
                   times: bool = False,
                   progress: Optional[Callable[[Progress], object]] = None,
                   ) -> Iterator[Item]:
        """add_all() for inputs of any length: items are returned as the
        service answers them, and one request is in memory at a time."""
        counter = protocol.Counter(urls, progress)
        for call in self._core.look_up("/add", urls, base, only_new, older,
                                       sites, times, set):
            part = self._run(call)
            counter.add(part)
            yield from part

    def seen(self, url: str, base: Optional[str] = None, *,
             older: Optional[Duration] = None, set: Optional[str] = None,
             times: bool = False) -> Item:
        """Is it known, or in the set?  Adds nothing, claims nothing."""
        return self.seen_all([url], base, older=older, set=set,
                             times=times)[0]

    def seen_all(self, urls: Iterable[str], base: Optional[str] = None, *,
                 older: Optional[Duration] = None,
                 set: Optional[str] = None, times: bool = False) -> Batch:
        """The same for many."""
        return self._gather(self._core.look_up(
            "/seen", urls, base, False, older, False, times, set))

    # by id

    def url(self, number: int) -> str:
        """The URL of an id.  Problem 404: not given yet; 410: deleted."""
        return self._run(self._core.url(number))

    def urls(self, ids: Iterable[int], *, times: bool = False) -> List[Found]:
        """The URLs of many ids, in their order."""
        return [found for call in self._core.urls(ids, times)
                for found in self._run(call)]

    def delete(self, number: int) -> None:
        """Forgets the URL of an id.  Clears the cache of this object."""
        self._run(self._core.delete(number))

    # sets, marks and claims; an item is an id (int) or a URL (str)

    def make_set(self, name: str) -> bool:
        """Makes a set, unless it is there.  Whether this call made it, or
        may have (a lost try).  get(f"/set/{name}") describes it."""
        return self._run(self._core.make_set(name))

    def drop_set(self, name: str) -> None:
        """Drops a set, if it is there.  Its URLs stay in the store."""
        self._run(self._core.drop_set(name))

    def put_in(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Puts into a set what the store has: `in` is answered to one caller
        of all, the others get `was`."""
        return self._mark(protocol.below("/set", name), items, {})

    def take_out(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Takes out of a set: `out`, or `unseen`."""
        return self._mark(protocol.below("/set", name), items,
                          {"remove": "1"})

    def mark(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Sets a mark."""
        return self._mark(protocol.below("/mark", name), items, {})

    def unmark(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Clears a mark."""
        return self._mark(protocol.below("/mark", name), items,
                          {"clear": "1"})

    def claim(self, items: Iterable[Ref],
              at: Union[str, int, float, datetime, None] = None,
              clear: bool = False) -> List[Marked]:
        """Claims now, or at a time (seconds since 1970, RFC 3339 or a
        datetime).  clear=True makes them due at once."""
        return self._mark("/claim", items, protocol.claim_args(at, clear))

    def _mark(self, path: str, items: Iterable[Ref],
              args: Dict[str, Optional[str]]) -> List[Marked]:
        return [marked for call in self._core.mark(path, items, args)
                for marked in self._run(call)]

    # the feed

    def feed(self, start: int = 0, *, limit: int = 1000,
             site: Optional[str] = None, prefix: Optional[str] = None,
             mark: Optional[str] = None, set: Optional[str] = None,
             older: Optional[Duration] = None, times: bool = False,
             deleted: bool = False, new_sites: bool = False,
             follow: Optional[float] = None) -> Iterator[Entry]:
        """All URLs from an id on, in the order of ids.

        mark      only URLs with this mark, or without it ("!visited")
        set       the same of a set
        follow    at the end, asks again every so many seconds, for ever
        """
        args = protocol.feed_args(limit, site, prefix, mark, older, times,
                                  deleted, new_sites, set)
        place = {"from": str(start)}
        while True:
            entries, place, more = self._run(
                self._core.page(place, args))
            yield from entries
            if not more:
                if follow is None:
                    return
                time.sleep(follow)

    # all else

    def get(self, path: str, **args: str) -> Dict[str, Any]:
        """Any other GET that answers JSON: get("/normalize", url=...)."""
        return self._run(self._core.get(path, args))

    def health(self, write: bool = False) -> Dict[str, Any]:
        """The state of the service; tried once.  Raises NoAnswer if it does
        not run."""
        return self._run(self._core.health(write))

    # the transport

    def _gather(self, calls: Iterator[Call[Batch]]) -> Batch:
        batch = Batch()
        try:
            for call in calls:
                protocol.join(batch, self._run(call))
        except UrlStoreError as e:
            e.done = batch.items + e.done
            raise
        return batch

    def _run(self, call: Call[T]) -> T:
        got: Got = None
        while True:
            try:
                step = call.send(got)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, Sleep):
                time.sleep(step.seconds)
                got = None
            else:
                got = self.transport(step)

    def transport(self, send: Send) -> Union[Reply, Lost]:
        """Sends one request, once."""
        connection, used = self._take()
        whole = False
        try:
            if not used:
                try:
                    connection.connect()
                except OSError as e:
                    return Lost(str(e) or type(e).__name__, False)
            reply = self._talk(connection, send)
            whole = True
        except (OSError, HTTPException) as e:
            stale = used and isinstance(e, ConnectionError)
            return Lost(str(e) or type(e).__name__, True, stale)
        finally:
            if not whole:
                connection.close()
        if connection.sock is not None:
            self._idle.append(connection)
        return reply

    @staticmethod
    def _talk(connection: HTTPConnection, send: Send) -> Reply:
        try:
            connection.request(send.method, send.target, send.body,
                               send.headers)
        except (BrokenPipeError, ConnectionResetError):
            # The service may have answered before it read all of the body.
            if connection.sock is None:
                raise
        response = connection.getresponse()
        body = response.read()
        return Reply(response.status,
                     {k.lower(): v for k, v in response.getheaders()}, body)

    def _take(self) -> Tuple[HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._idle = deque()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            with DefaultSelector() as idle:     # select() ends at 1024
                idle.register(connection.sock, EVENT_READ)
                if not idle.select(0):
                    return connection, True
            connection.close()      # the service closed it
        o = self._core.options
        if o.secure:
            return HTTPSConnection(o.host, o.port, timeout=o.timeout,
                                   context=self._context), False
        return HTTPConnection(o.host, o.port, timeout=o.timeout), False
