"""crawl4ai: a URLFilter that lets through what is new in a store.

    from urlstore.aio import AsyncStore
    from urlstore.crawl4ai import Filter

    BFSDeepCrawlStrategy(max_depth=9, filter_chain=FilterChain([
        DomainFilter(...), Filter(AsyncStore(address, cache=100000))]))

It is the last of its chain: a URL that it has let through is in the store,
and no other crawler gets it.  Filter(store, set="crawl-7") lets through what
is new to a set, which it makes: a crawl with another set begins fresh.
"""

from __future__ import annotations

import logging
from typing import Optional

from .aio import AsyncStore
from .errors import UrlStoreError

logger = logging.getLogger(__name__)


class Filter:
    """The interface is that of crawl4ai.deep_crawling.filters.URLFilter."""

    name = "UrlStoreFilter"

    def __init__(self, store: AsyncStore,
                 set: Optional[str] = None) -> None:
        self._store = store
        self._set = set
        self._ready = set is None

    async def apply(self, url: str) -> bool:
        """After a lost answer, or without any, the URL passes: a page may be
        fetched twice, none is lost."""
        try:
            if self._set is not None and not self._ready:
                await self._store.make_set(self._set)
                self._ready = True
            item = await self._store.add(url, set=self._set)
        except UrlStoreError as e:
            logger.error("%s is let through: %s", url, e)
            return True
        return (item.mine or item.unsure
                or item.status in ("full", "unavailable"))
