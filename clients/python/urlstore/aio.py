"""The client for asyncio, on aiohttp.

aiohttp and not httpx: it is what asyncio crawlers have, it is in every
supported Debian, and its cost a request is a fraction of httpx's.

    from urlstore.aio import AsyncStore

    async with AsyncStore("http://127.0.0.1:8080") as store:
        batch = await store.add_all(links, base=page)
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import (Any, AsyncIterator, Callable, Dict, Iterable, Iterator,
                    List, Mapping, Optional, TypeVar, Union)

import aiohttp
from yarl import URL

from . import protocol
from .errors import UrlStoreError
from .protocol import Call, Duration, Got, Lost, Ref, Reply, Send, Sleep
from .values import Batch, Entry, Found, Item, Marked, Progress

T = TypeVar("T")


class AsyncStore:
    """A store, its calls being coroutines; see urlstore.Store for options.

    session   an aiohttp session to use; it is not closed by close()
    """

    def __init__(self, address: str, *, timeout: float = 30.0,
                 patience: float = 50.0, batch: int = 1000,
                 body: int = 1 << 20, gzip: bool = False, cache: int = 0,
                 headers: Optional[Mapping[str, str]] = None,
                 session: Optional[aiohttp.ClientSession] = None) -> None:
        self._core = protocol.Core(protocol.Options(
            address, timeout=timeout, patience=patience, batch=batch,
            body=body, gzip=gzip, cache=cache, headers=headers))
        self._session = session
        self._own = session is None
        self._answered = False

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the session, unless it was given."""
        if self._own and self._session is not None:
            await self._session.close()
            self._session = None

    # adding and looking up

    async def add(self, url: str, base: Optional[str] = None, *,
                  older: Optional[Duration] = None,
                  set: Optional[str] = None, sites: bool = False,
                  times: bool = False) -> Item:
        """Is this URL new?  It is added if so."""
        return (await self.add_all([url], base, older=older, set=set,
                                   sites=sites, times=times))[0]

    async def add_all(self, urls: Iterable[str], base: Optional[str] = None,
                      *, only_new: bool = False,
                      older: Optional[Duration] = None,
                      set: Optional[str] = None, sites: bool = False,
                      times: bool = False) -> Batch:
        """Adds what is new; one answer for each URL, in their order."""
        return await self._gather(self._core.look_up(
            "/add", urls, base, only_new, older, sites, times, set))

    async def add_stream(self, urls: Iterable[str],
                         base: Optional[str] = None, *,
                         only_new: bool = False,
                         older: Optional[Duration] = None,
                         set: Optional[str] = None,
                         sites: bool = False, times: bool = False,
                         progress: Optional[Callable[[Progress],
                                                     object]] = None,
                         ) -> AsyncIterator[Item]:
        """add_all() for inputs of any length."""
        counter = protocol.Counter(urls, progress)
        for call in self._core.look_up("/add", urls, base, only_new, older,
                                       sites, times, set):
            part = await self._run(call)
            counter.add(part)
            for item in part:
                yield item

    async def seen(self, url: str, base: Optional[str] = None, *,
                   older: Optional[Duration] = None,
                   set: Optional[str] = None, times: bool = False) -> Item:
        """Is it known, or in the set?  Adds nothing, claims nothing."""
        return (await self.seen_all([url], base, older=older, set=set,
                                    times=times))[0]

    async def seen_all(self, urls: Iterable[str], base: Optional[str] = None,
                       *, older: Optional[Duration] = None,
                       set: Optional[str] = None,
                       times: bool = False) -> Batch:
        """The same for many."""
        return await self._gather(self._core.look_up(
            "/seen", urls, base, False, older, False, times, set))

    # by id

    async def url(self, number: int) -> str:
        """The URL of an id.  Problem 404: not given yet; 410: deleted."""
        return await self._run(self._core.url(number))

    async def urls(self, ids: Iterable[int], *,
                   times: bool = False) -> List[Found]:
        """The URLs of many ids, in their order."""
        found: List[Found] = []
        for call in self._core.urls(ids, times):
            found += await self._run(call)
        return found

    async def delete(self, number: int) -> None:
        """Forgets the URL of an id.  Clears the cache of this object."""
        await self._run(self._core.delete(number))

    # sets, marks and claims; an item is an id (int) or a URL (str)

    async def make_set(self, name: str) -> bool:
        """Makes a set, unless it is there.  Whether this call made it, or
        may have (a lost try)."""
        return await self._run(self._core.make_set(name))

    async def drop_set(self, name: str) -> None:
        """Drops a set, if it is there.  Its URLs stay in the store."""
        await self._run(self._core.drop_set(name))

    async def put_in(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Puts into a set what the store has: `in` is answered to one caller
        of all, the others get `was`."""
        return await self._mark(protocol.below("/set", name), items, {})

    async def take_out(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Takes out of a set: `out`, or `unseen`."""
        return await self._mark(protocol.below("/set", name), items,
                                {"remove": "1"})

    async def mark(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Sets a mark."""
        return await self._mark(protocol.below("/mark", name), items, {})

    async def unmark(self, name: str, items: Iterable[Ref]) -> List[Marked]:
        """Clears a mark."""
        return await self._mark(protocol.below("/mark", name), items,
                                {"clear": "1"})

    async def claim(self, items: Iterable[Ref],
                    at: Union[str, int, float, datetime, None] = None,
                    clear: bool = False) -> List[Marked]:
        """Claims now or at a time; clear=True makes them due at once."""
        return await self._mark("/claim", items,
                                protocol.claim_args(at, clear))

    async def _mark(self, path: str, items: Iterable[Ref],
                    args: Dict[str, Optional[str]]) -> List[Marked]:
        marked: List[Marked] = []
        for call in self._core.mark(path, items, args):
            marked += await self._run(call)
        return marked

    # the feed

    async def feed(self, start: int = 0, *, limit: int = 1000,
                   site: Optional[str] = None, prefix: Optional[str] = None,
                   mark: Optional[str] = None, set: Optional[str] = None,
                   older: Optional[Duration] = None, times: bool = False,
                   deleted: bool = False, new_sites: bool = False,
                   follow: Optional[float] = None) -> AsyncIterator[Entry]:
        """All URLs from an id on, in the order of ids."""
        args = protocol.feed_args(limit, site, prefix, mark, older, times,
                                  deleted, new_sites, set)
        place = {"from": str(start)}
        while True:
            entries, place, more = await self._run(
                self._core.page(place, args))
            for entry in entries:
                yield entry
            if not more:
                if follow is None:
                    return
                await asyncio.sleep(follow)

    # all else

    async def get(self, path: str, **args: str) -> Dict[str, Any]:
        """Any other GET that answers JSON: get("/normalize", url=...)."""
        return await self._run(self._core.get(path, args))

    async def health(self, write: bool = False) -> Dict[str, Any]:
        """The state of the service; tried once."""
        return await self._run(self._core.health(write))

    # the transport

    async def _gather(self, calls: Iterator[Call[Batch]]) -> Batch:
        batch = Batch()
        try:
            for call in calls:
                protocol.join(batch, await self._run(call))
        except UrlStoreError as e:
            e.done = batch.items + e.done
            raise
        return batch

    async def _run(self, call: Call[T]) -> T:
        got: Got = None
        while True:
            try:
                step = call.send(got)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, Sleep):
                await asyncio.sleep(step.seconds)
                got = None
            else:
                got = await self._send(step)

    async def _send(self, send: Send) -> Union[Reply, Lost]:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        o = self._core.options
        address = URL(f"{'https' if o.secure else 'http'}://{o.netloc}"
                      f"{send.target}", encoded=True)
        limit = aiohttp.ClientTimeout(total=None, sock_connect=o.timeout,
                                      sock_read=o.timeout)
        try:
            async with self._session.request(
                    send.method, address, data=send.body,
                    headers=send.headers, timeout=limit,
                    allow_redirects=False) as response:
                body = await response.read()
                self._answered = True
                return Reply(response.status,
                             {k.lower(): v
                              for k, v in response.headers.items()}, body)
        except aiohttp.ClientConnectorError as e:
            return Lost(str(e), False)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as e:
            stale = self._answered and isinstance(
                e, (aiohttp.ServerDisconnectedError, ConnectionError))
            return Lost(str(e) or type(e).__name__, True, stale)
