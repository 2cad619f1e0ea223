"""Client of a URL store: is this URL new or seen, and what is its id?

    from urlstore import Store

    with Store("http://127.0.0.1:8080") as store:
        for item in store.add_all(links, base=page):
            if item.mine and item.url:  # else deleted meanwhile
                queue.append(item.url)

Store is synchronous and needs the standard library only.  urlstore.aio has
the same for asyncio, urlstore.scrapy the classes for Scrapy.
"""

from .errors import NoAnswer, Problem, UrlStoreError
from .sync import Store
from .values import Batch, Entry, Found, Item, Marked, Progress

__all__ = ["Batch", "Entry", "Found", "Item", "Marked", "NoAnswer",
           "Problem", "Progress", "Store", "UrlStoreError"]
__version__ = "1.0.0"
