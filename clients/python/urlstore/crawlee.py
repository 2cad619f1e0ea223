"""Crawlee for Python: queues that take only what is new in a store.

    from urlstore.aio import AsyncStore
    from urlstore.crawlee import Shared

    storage = Shared(FileSystemStorageClient(), AsyncStore(address))
    service_locator.set_storage_client(storage)

The storage client given keeps queues, data sets and all else.  What is added
to a queue goes to the store first, in one request; the queue gets what is
new.  A page is marked in the store when it has been handled; left() lists
those without the mark, which a killed crawler has left.

Shared(..., set="crawl-7") asks for what is new to a set, which it makes: a
crawl with another set begins fresh, crawlers with the same one share it.

Requests that the store has answered have KEY and the canonical URL as their
unique_key.  Requests with a body, another method, or a unique_key of the
caller's own pass.
"""

from __future__ import annotations

import builtins
import logging
from typing import (Any, AsyncIterator, Dict, Iterable, List, Optional,
                    Sequence, Set)

from .aio import AsyncStore
from .errors import UrlStoreError
from .values import Entry, Item

logger = logging.getLogger(__name__)

KEY = "urlstore:"
FLUSH_AT = 100              # pages that wait for their mark
LEFT = 500                  # pages that are looked for at a time
FAILED = (5, 6)             # RequestState.ERROR_HANDLER, ERROR


def plain(request: Any) -> bool:
    """Whether the URL says all of the request."""
    return (request.method == "GET" and not request.payload
            and request.unique_key
            == type(request).from_url(request.url).unique_key)


class Queue:
    """A RequestQueueClient over another one."""

    def __init__(self, queue: Any, shared: Shared) -> None:
        self._queue = queue
        self._shared = shared

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def add_batch_of_requests(self, requests: Sequence[Any], *,
                                    forefront: bool = False) -> Any:
        keys = await self._shared.judge(requests)
        copies: Dict[str, Any] = {}
        for request, key in zip(requests, keys):
            if key is not None:
                copies.setdefault(key, request)
        try:
            answer = await self._queue.add_batch_of_requests(
                [request.model_copy(update={"unique_key": key})
                 for key, request in copies.items()], forefront=forefront)
        except Exception:
            self._shared.owed.update(copies)
            raise
        for done in answer.processed_requests:
            if done.was_already_handled:
                self._shared.done(done.unique_key)
            done.unique_key = copies[done.unique_key].unique_key
        for refused in answer.unprocessed_requests:
            self._shared.owed.add(refused.unique_key)
            refused.unique_key = copies[refused.unique_key].unique_key
        from crawlee.storage_clients.models import ProcessedRequest
        answer.processed_requests += [
            ProcessedRequest(unique_key=request.unique_key,
                             was_already_present=True,
                             was_already_handled=True)
            for request, key in zip(requests, keys) if key is None]
        return answer

    async def mark_request_as_handled(self, request: Any) -> Any:
        answer = await self._queue.mark_request_as_handled(request)
        if request.state not in FAILED:
            self._shared.done(request.unique_key)
            if len(self._shared.handled) >= FLUSH_AT:
                await self._shared.flush()
        return answer

    async def is_finished(self) -> bool:
        """Crawlee asks when a crawler has nothing to do."""
        finished: bool = await self._queue.is_finished()
        if finished:
            await self._shared.flush()
        return finished


class Shared:
    """A StorageClient over another one.

    mark   of pages that are done ("visited", with a set its name and ".done",
           which is another set); "" marks nothing
    set    the name of a set: what this crawl has seen; %(queue)s in it is
           the name of the queue
    """

    def __init__(self, client: Any, store: AsyncStore,
                 mark: Optional[str] = None,
                 set: Optional[str] = None) -> None:
        self._client = client
        self._store = store
        self._set = set
        self._given = mark
        self._queues: Dict[str, Shared] = {}    # with sets of queues
        done = "visited" if set is None else f"{set}.done"
        self._mark = done if mark is None else mark
        self._done = done if self._mark == done else None
        self._ready = set is None
        self.handled: List[str] = []
        self.owed: Set[str] = builtins.set()    # keys that no queue took

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_storage_client_cache_key(self, configuration: Any) -> Any:
        return (__name__, self._client.get_storage_client_cache_key(
            configuration))

    async def create_rq_client(self, **args: Any) -> Queue:
        queue = args.get("name") or args.get("alias") or args.get("id")
        return Queue(await self._client.create_rq_client(**args),
                     self._of(queue if queue and queue != "__default__"
                              else "default"))

    def _of(self, queue: str) -> Shared:
        """What is shared by those who use a queue of this name."""
        if self._set is None or "%(queue)s" not in self._set:
            return self
        if queue not in self._queues:
            self._queues[queue] = Shared(
                self._client, self._store, self._given,
                self._set.replace("%(queue)s", queue))
        return self._queues[queue]

    async def left(self, queue: str = "default") -> AsyncIterator[Any]:
        """The stored pages without the mark, as requests; of the queue's
        set, where sets have names of queues."""
        from crawlee import Request
        if self._of(queue) is not self:
            async for request in self._of(queue).left():
                yield request
            return
        await self.begin()
        if self._set is None:
            entries = self._store.feed(mark=f"!{self._mark}")
        else:
            entries = self._left(self._set)
        async for entry in entries:
            if entry.url is not None:
                yield Request.from_url(entry.url,
                                       unique_key=KEY + entry.url)

    async def _left(self, set: str) -> AsyncIterator[Entry]:
        place, more = {"from": "0"}, True
        while more:
            entries, place, more = await self._store._run(
                self._store._core.left(place, set, self._mark, LEFT))
            for entry in entries:
                yield entry

    async def begin(self) -> None:
        if self._set is not None and not self._ready:
            await self._store._run(
                self._store._core.begin(self._set, self._done))
            self._ready = True

    async def judge(self, requests: Sequence[Any]) -> List[Optional[str]]:
        """The key of each request in the queue, or None.  After a lost answer
        all pass of which there is none: some pages are fetched twice, none is
        lost."""
        keys: List[Optional[str]] = [r.unique_key for r in requests]
        asked = [n for n, r in enumerate(requests) if plain(r)]
        await self.begin()
        try:
            items: Iterable[Item] = await self._store.add_all(
                [requests[n].url for n in asked], set=self._set)
        except UrlStoreError as e:
            if not e.unsure:
                raise
            items = e.done
        for item in items:
            n = asked[item.index]
            key = f"{KEY}{item.url}"
            if item.mine or item.unsure or key in self.owed:
                self.owed.discard(key)
                keys[n] = key
            elif item.status not in ("full", "unavailable"):
                keys[n] = None
        return keys

    def done(self, key: str) -> None:
        if self._mark and key.startswith(KEY):
            self.handled.append(key[len(KEY):])

    async def flush(self) -> None:
        """Marks the pages that are done."""
        for shared in self._queues.values():
            await shared.flush()
        urls, self.handled = self.handled, []
        try:
            await self._store.mark(self._mark, urls)
        except UrlStoreError as e:
            logger.error("pages are not marked: %s", e)
            self.handled += urls
