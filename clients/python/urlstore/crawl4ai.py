"""crawl4ai: a URLFilter that lets through what is new in a store.

    from urlstore.aio import AsyncStore
    from urlstore.crawl4ai import Filter

    BFSDeepCrawlStrategy(max_depth=9, filter_chain=FilterChain([
        DomainFilter(...), Filter(AsyncStore(address, cache=100000))]))

It is the last of its chain: a URL that it has let through is in the store,
and no other crawler gets it.
"""

from __future__ import annotations

import logging

from .aio import AsyncStore
from .errors import UrlStoreError

logger = logging.getLogger(__name__)


class Filter:
    """The interface is that of crawl4ai.deep_crawling.filters.URLFilter."""

    name = "UrlStoreFilter"

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def apply(self, url: str) -> bool:
        """After a lost answer, or without any, the URL passes: a page may be
        fetched twice, none is lost."""
        try:
            item = await self._store.add(url)
        except UrlStoreError as e:
            logger.error("%s is let through: %s", url, e)
            return True
        return (item.mine or item.unsure
                or item.status in ("full", "unavailable"))
