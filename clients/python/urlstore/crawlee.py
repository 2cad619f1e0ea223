"""Crawlee for Python: queues that take only what is new in a store.

    from urlstore.aio import AsyncStore
    from urlstore.crawlee import Shared

    storage = Shared(FileSystemStorageClient(), AsyncStore(address))
    service_locator.set_storage_client(storage)

The storage client given keeps queues, data sets and all else.  What is added
to a queue goes to the store first, in one request; the queue gets what is
new.  A page is marked in the store when it has been handled; left() lists
those without the mark, which a killed crawler has left.

Requests that the store has answered have KEY and the canonical URL as their
unique_key.  Requests with a body, another method, or a unique_key of the
caller's own pass.
"""

from __future__ import annotations

import logging
from typing import Any, AsyncIterator, Dict, List, Optional, Sequence, Set

from .aio import AsyncStore
from .errors import UrlStoreError

logger = logging.getLogger(__name__)

KEY = "urlstore:"
FLUSH_AT = 100              # pages that wait for their mark
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
    """A StorageClient over another one; mark="" marks nothing."""

    def __init__(self, client: Any, store: AsyncStore,
                 mark: str = "visited") -> None:
        self._client = client
        self._store = store
        self._mark = mark
        self.handled: List[str] = []
        self.owed: Set[str] = set()     # keys that are new, and in no queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_storage_client_cache_key(self, configuration: Any) -> Any:
        return (__name__, self._client.get_storage_client_cache_key(
            configuration))

    async def create_rq_client(self, **args: Any) -> Queue:
        return Queue(await self._client.create_rq_client(**args), self)

    async def left(self) -> AsyncIterator[Any]:
        """The stored pages without the mark, as requests."""
        from crawlee import Request
        async for entry in self._store.feed(mark=f"!{self._mark}"):
            if entry.url is not None:
                yield Request.from_url(entry.url,
                                       unique_key=KEY + entry.url)

    async def judge(self, requests: Sequence[Any]) -> List[Optional[str]]:
        """The key of each request in the queue, or None.  After a lost answer
        all pass: some pages are fetched twice, none is lost."""
        keys: List[Optional[str]] = [r.unique_key for r in requests]
        asked = [n for n, r in enumerate(requests) if plain(r)]
        try:
            items = await self._store.add_all(
                [requests[n].url for n in asked])
        except UrlStoreError as e:
            if not e.unsure:
                raise
            return keys
        for n, item in zip(asked, items):
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
        urls, self.handled = self.handled, []
        try:
            await self._store.mark(self._mark, urls)
        except UrlStoreError as e:
            logger.error("pages are not marked: %s", e)
            self.handled += urls
