"""Scrapy: crawlers that share what they have seen, and lose no page.

    ADDONS = {"urlstore.scrapy.Addon": 300}             # Scrapy 2.10
    URLSTORE_URL = "http://127.0.0.1:8080"

or, instead of the add-on, in any version:

    DUPEFILTER_CLASS = "urlstore.scrapy.DupeFilter"
    SPIDER_MIDDLEWARES = {"urlstore.scrapy.SpiderMiddleware": 100}

The middleware sends the links of a page to the store in one request and lets
through those that are new.  The duplicate filter then asks nothing for them;
it asks for what did not come from a page, such as the target of a redirect.

A page is marked in the store when its links are stored and its items have
left the pipelines.  A crawler that is killed leaves pages without the mark:
the next one, with URLSTORE_RESUME, begins with these.

    page fetched -> links added -> items through the pipelines -> page marked

Settings:

    URLSTORE_URL       address of the store
    URLSTORE_SET       name of a set: what this crawl has seen, instead of all
                       crawls; %(name)s in it is the name of the spider.  The
                       crawler makes it
    URLSTORE_MARK      name of the mark ("visited", of a set its name and
                       ".done"); "" marks nothing
    URLSTORE_RESUME    crawls what is stored and has no mark, too (False)
    URLSTORE_START     start URLs are filtered like any other (True); False:
                       they are crawled always, unless they were erased
    URLSTORE_OLDER     crawls pages again that were claimed longer ago, such
                       as "30d" (needs revisit= in the zone)
    URLSTORE_LEASE     such as "1h": pages without the mark that nobody has
                       claimed for so long are taken over, each by one
                       crawler (needs revisit=); instead of URLSTORE_RESUME
    URLSTORE_CACHE     links kept in memory (100000; none with a set)
    URLSTORE_PATIENCE  seconds to wait for a service that does not answer
                       (3600); meanwhile the crawler waits
    URLSTORE_HEADERS   sent with each request
"""

from __future__ import annotations

import logging
import re
from itertools import islice
from typing import (Any, AsyncIterator, Dict, Iterable, Iterator, List,
                    Optional, Set, Tuple, TypeVar)

from itemadapter import is_item
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet import task
from twisted.internet.defer import DeferredLock
from twisted.internet.threads import deferToThread

from .errors import UrlStoreError
from .protocol import Call, Got, Place, Sleep, below
from .sync import Store
from .values import Entry, Item

T = TypeVar("T")

logger = logging.getLogger(__name__)

BEGIN = {"from": "0"}
META = "urlstore"           # in the meta of a request: see judged()
FLUSH_AFTER = 1.0           # seconds that a page waits for its mark, at most
FLUSH_AT = 500              # ... unless so many wait
FILTER_PATIENCE = 5.0
START_PATIENCE = 50.0
START_AHEAD = 100           # start URLs that are read ahead
RESUMED = 500               # pages that are taken from the store at a time
DONE = {404, 405, 410, 414, 451}   # not fetched again, as if there was a page


class Page:
    """A page whose items are on their way; `left` counts them, and the
    callback as one."""

    def __init__(self, response: Any, ids: List[int]) -> None:
        self.response = response        # keeps id(response) its own
        self.ids = ids
        self.left = 1
        self.failed = False


class Shared:
    """What the filter and the middleware of one crawler share."""

    @classmethod
    def of(cls, crawler: Any) -> Shared:
        if not hasattr(crawler, "urlstore"):
            crawler.urlstore = cls(crawler)
        shared: Shared = crawler.urlstore
        return shared

    def __init__(self, crawler: Any) -> None:
        get = crawler.settings.get
        if not get("URLSTORE_URL"):
            raise NotConfigured("URLSTORE_URL is not set")
        self.stats = crawler.stats
        spider = crawler.spider or crawler.spidercls
        self.set: Optional[str] = get("URLSTORE_SET")
        if self.set:
            self.set = self.set.replace("%(name)s", spider.name)
        done = f"{self.set}.done" if self.set else "visited"
        self.mark: str = get("URLSTORE_MARK", done)
        self._done = done if self.mark == done else None
        self.older: Optional[str] = get("URLSTORE_OLDER")
        self.lease: Optional[str] = get("URLSTORE_LEASE")
        if self.set and (self.older or self.lease):
            raise ValueError("URLSTORE_SET with URLSTORE_OLDER or "
                             "URLSTORE_LEASE: a set has no times")
        self._address: str = get("URLSTORE_URL")
        self._headers = crawler.settings.getdict("URLSTORE_HEADERS")
        self._cache = 0 if self.set else int(get("URLSTORE_CACHE", 100000))
        self.store = self.client(float(get("URLSTORE_PATIENCE", 3600)))
        self.taken: Set[int] = set()        # ids that were scheduled here
        self.visited: List[int] = []        # ids that wait for their mark
        self.marking = DeferredLock()
        self._fingerprint = crawler.request_fingerprinter.fingerprint
        self._local: Set[bytes] = set()
        self._fault = ""                    # of the last marks
        self.used = False                   # the store has answered
        self.make_sets()

    def make_sets(self) -> None:
        if self.set:
            with self.client(START_PATIENCE) as store:
                store._run(store._core.begin(self.set, self._done))

    def drop_sets(self) -> None:
        """The crawl is over; or it begins, if nothing was asked yet."""
        if not self.set:
            return
        with self.client(START_PATIENCE) as store:
            store.drop_set(self.set)
            if self._done is not None:
                store.drop_set(self._done)
        if not self.used:
            self.make_sets()

    def client(self, patience: float) -> Store:
        """Another client of the same store."""
        return Store(self._address, patience=patience, cache=self._cache,
                     timeout=min(patience, 30.0), headers=self._headers)

    def count(self, what: str, n: int = 1) -> None:
        if n:
            self.stats.inc_value(f"urlstore/{what}", n)

    def wanted(self, request: Any, item: Item) -> bool:
        """Whether to fetch it, by the answer of the store."""
        self.used = True
        self.count(item.status)
        if item.mine or (item.unsure and item.id not in self.taken):
            if item.id is not None:
                self.taken.add(item.id)
        elif item.status in ("seen", "rejected", "refused"):
            return False
        elif self.seen_here(request):
            # What the store cannot hold (ftp:, a full zone).
            return False
        judged(request, item.id)
        return True

    def seen_here(self, request: Any) -> bool:
        """For what is no GET of a URL: by Scrapy's fingerprint, in memory
        of this process."""
        print_ = self._fingerprint(request)
        if print_ in self._local:
            return True
        self._local.add(print_)
        return False

    def done(self, ids: Iterable[int]) -> None:
        self.visited += ids
        self.taken.difference_update(ids)

    async def run(self, call: Call[T]) -> T:
        """A call of the client.  Only its requests are in a thread: while it
        waits for the next try, it holds none."""
        got: Got = None
        while True:
            try:
                step = call.send(got)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, Sleep):
                logger.info("%s; next try in %.1f s", step.reason,
                            step.seconds)
                await self.pause(step.seconds)
                got = None
            else:
                got = await maybe_deferred_to_future(
                    deferToThread(  # type: ignore[no-untyped-call]
                        self.store.transport, step))

    @staticmethod
    async def pause(interval: float) -> None:
        from twisted.internet import reactor

        await maybe_deferred_to_future(
            task.deferLater(reactor,  # type: ignore[arg-type]
                            interval, lambda: None))

    async def left(self, place: Place, older: Optional[str]) -> Tuple[
            List[Entry], Place, bool]:
        """The next pages without the mark, where to go on, and whether
        there are more."""
        if self.set:
            return await self.run(self.store._core.left(
                place, self.set, self.mark, RESUMED))
        return await self.run(self.store._core.page(place, {
            "limit": str(RESUMED), "mark": "!" + self.mark,
            "older": older}))

    async def add_all(self, urls: List[str],
                      older: Optional[str]) -> List[Item]:
        items: List[Item] = []
        for call in self.store._core.look_up("/add", urls, None, False,
                                             older, False, False, self.set):
            items += await self.run(call)
        if self.mark and older is not None and older == self.older:
            # A page that is due again is without the mark until it is done.
            due = [item.id for item in items
                   if item.status == "due" and item.id is not None]
            await self.set_mark(due, {"clear": "1"})
        return items

    async def set_mark(self, ids: List[int],
                       args: Dict[str, Optional[str]]) -> None:
        for call in self.store._core.mark(below("/mark", self.mark), ids,
                                          args):
            await self.run(call)

    async def flush(self) -> None:
        """Marks the pages that are done; returns when they are marked."""
        await maybe_deferred_to_future(self.marking.acquire())
        ids, self.visited = self.visited, []
        try:
            if self.mark:
                await self.set_mark(ids, {})
                self.count("visited", len(ids))
            self._fault = ""
        except UrlStoreError as e:
            if self._fault != str(e):   # each second, as long as it lasts
                logger.error("pages are not marked: %s", e)
            self._fault = str(e)
            self.visited = ids + self.visited
        finally:
            self.marking.release()


def judged(request: Any, number: Optional[int]) -> None:
    """Notes in a request that the store has answered for this URL, and of
    which ids it came by redirects.  A redirect inherits the note: it holds
    for the URL that stands in it."""
    old = request.meta.get(META)
    before = old["ids"] if old is not None and old["url"] != request.url \
        and "redirect_urls" in request.meta else []
    ids = before + ([] if number is None or number in before else [number])
    request.meta[META] = {"url": request.url, "ids": ids}


def note(request: Any) -> Optional[Dict[str, Any]]:
    """The note of a request, if it is of its URL."""
    found: Optional[Dict[str, Any]] = request.meta.get(META)
    if found is None or found["url"] != request.url:
        return None
    return found


def plain_get(request: Any) -> bool:
    """Whether the URL says all of the request."""
    return request.method == "GET" and not request.body


def seconds(text: str) -> float:
    """Of a duration such as 90s, 15m, 12h, 30d, 1y."""
    parts = re.fullmatch(r"(\d+)([smhdwy]?)", text)
    if parts is None:
        raise NotConfigured(f"{text!r} is no duration such as 15m, 12h, 30d")
    return int(parts[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400,
                            "w": 604800, "y": 31536000}[parts[2]]


class Addon:
    """ADDONS: sets the two classes below, unless the project has set them."""

    def update_settings(self, settings: Any) -> None:
        if not settings.get("URLSTORE_URL"):
            raise NotConfigured("URLSTORE_URL is not set")
        settings.set("DUPEFILTER_CLASS", f"{__name__}.DupeFilter", "addon")
        middleware = f"{__name__}.SpiderMiddleware"
        if middleware not in settings["SPIDER_MIDDLEWARES"]:
            settings["SPIDER_MIDDLEWARES"][middleware] = 100


class DupeFilter:
    """DUPEFILTER_CLASS: asks the store for requests of which the middleware
    has not asked.  Such a question blocks the crawler; if there is no answer
    for FILTER_PATIENCE seconds, the request is let through."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.store = shared.client(FILTER_PATIENCE)

    @classmethod
    def from_crawler(cls, crawler: Any) -> DupeFilter:
        return cls(Shared.of(crawler))

    @classmethod
    def from_spider(cls, spider: Any) -> DupeFilter:
        """scrapy-redis: its scheduler makes the filter by this method, and
        calls neither open() nor close()."""
        return cls.from_crawler(spider.crawler)

    def clear(self) -> None:
        """scrapy-redis: at the end of a crawl without SCHEDULER_PERSIST, or
        at its start with SCHEDULER_FLUSH_ON_START.  The store belongs to
        others as well and keeps its URLs; a set is this crawl's."""
        self.store.close()
        self.shared.drop_sets()

    def open(self) -> None:
        """Nothing to open: the first question connects."""

    def close(self, reason: str) -> None:
        self.store.close()

    def request_seen(self, request: Any) -> bool:
        if not plain_get(request):
            return self.shared.seen_here(request)
        if note(request) is not None:
            return False
        try:
            item = self.store.add(request.url, older=self.shared.older,
                                  set=self.shared.set)
        except UrlStoreError as e:
            logger.error("%s is let through: %s", request.url, e)
            return False
        came_by = request.meta.get(META, {"ids": []})["ids"] \
            if "redirect_urls" in request.meta else []
        if item.id is not None and item.id in came_by:
            # A redirect to another spelling of the same URL, such as www.
            judged(request, item.id)
            return False
        if self.shared.wanted(request, item):
            return False
        self.shared.done(came_by)
        return True

    def log(self, request: Any, spider: Any = None) -> None:
        logger.debug("filtered, the store has it: %s", request,
                     extra={"spider": spider})


class SpiderMiddleware:
    """One request for the links of a page; marks; pages left over."""

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.shared = Shared.of(crawler)
        self.filter_start = settings.getbool("URLSTORE_START", True)
        self.resume = (settings.getbool("URLSTORE_RESUME")
                       or self.shared.lease is not None)
        self._next = BEGIN          # where the list of pages left goes on
        self._tried: Set[int] = set()   # of them, in this run
        self._taking = False
        self._told = False          # of a start URL that is in the store
        self._pages: Dict[int, Page] = {}
        self._clocks: List[Any] = []

    @classmethod
    def from_crawler(cls, crawler: Any) -> SpiderMiddleware:
        self = cls(crawler)
        for signal, handler in (
                (signals.spider_opened, self.spider_opened),
                (signals.spider_idle, self.spider_idle),
                (signals.spider_closed, self.spider_closed),
                (signals.item_scraped, self.item_scraped),
                (signals.item_dropped, self.item_dropped),
                (signals.item_error, self.item_error)):
            crawler.signals.connect(handler, signal)
        return self

    # requests

    def process_start_requests(self, start_requests: Iterable[Any],
                               spider: Any = None) -> Iterator[Any]:
        """Blocks until the store answers for the next START_AHEAD."""
        store = self.shared.client(START_PATIENCE)
        requests = iter(start_requests)
        while True:
            part = list(islice(requests, START_AHEAD))
            if not part:
                return
            asked = [request for request in part if plain_get(request)]
            batch = store.add_all([request.url for request in asked],
                                  older=self.shared.older,
                                  set=self.shared.set)
            items = iter(batch)
            for request in part:
                if not plain_get(request) or self.start_wanted(
                        request, next(items)):
                    yield request

    async def process_start(self, start: AsyncIterator[Any]) -> (
            AsyncIterator[Any]):
        """The same for Scrapy 2.13 and later."""
        async for request in start:
            if not isinstance(request, Request) or not plain_get(request):
                yield request
                continue
            items = await self.shared.add_all([request.url],
                                              self.shared.older)
            if self.start_wanted(request, items[0]):
                yield request

    def start_wanted(self, request: Any, item: Item) -> bool:
        if self.shared.wanted(request, item):
            return True
        if item.status == "refused":    # erased: its URL is for no log
            logger.info("a start URL was erased from the store, so it is not "
                        "crawled")
            return False
        judged(request, item.id)
        if self.filter_start and not self.resume and not self._told:
            self._told = True
            logger.info(
                "%s is in the %s, so it is not crawled again; "
                "URLSTORE_START=0 crawls start URLs each time, "
                "URLSTORE_RESUME=1 crawls stored pages that have no mark",
                request.url, f"set {self.shared.set}" if self.shared.set
                else "store")
        return not self.filter_start

    async def process_spider_output(self, response: Any, result: Any,
                                    spider: Any = None) -> AsyncIterator[Any]:
        page = Page(response, (note(response.request) or {"ids": []})["ids"])
        self._pages[id(response)] = page
        links: List[Any] = []
        fault: Optional[BaseException] = None
        try:
            async for output in result:
                if not isinstance(output, Request):
                    page.left += 1 if is_item(output) else 0
                    yield output
                elif output.dont_filter or not plain_get(output):
                    yield output
                else:
                    links.append(output)
        except Exception as e:      # what came before it counts, in Scrapy
            fault = e
        page.failed = fault is not None
        if links:
            items = await self.shared.add_all(
                [link.url for link in links], self.shared.older)
            for link, item in zip(links, items):
                if item.status == "invalid":
                    self.shared.count("invalid")
                elif self.shared.wanted(link, item):
                    yield link
        self.leave(page)
        if fault is not None:
            raise fault

    def process_spider_exception(self, response: Any, exception: Exception,
                                 spider: Any = None) -> None:
        if isinstance(exception, HttpError) and response.status in DONE:
            self.shared.done((note(response.request) or {"ids": []})["ids"])

    # pages that are done

    def item_scraped(self, item: Any, response: Any, spider: Any) -> None:
        self.leave(self._pages.get(id(response)))

    def item_dropped(self, item: Any, response: Any, exception: Any,
                     spider: Any) -> None:
        self.leave(self._pages.get(id(response)))

    def item_error(self, item: Any, response: Any, spider: Any,
                   failure: Any) -> None:
        page = self._pages.get(id(response))
        if page is not None:
            page.failed = True
        self.leave(page)

    def leave(self, page: Optional[Page]) -> None:
        if page is None:
            return
        page.left -= 1
        if page.left:
            return
        del self._pages[id(page.response)]
        if not page.failed:
            self.shared.done(page.ids)
            if len(self.shared.visited) >= FLUSH_AT:
                self.flush()

    def flush(self) -> None:
        if self.shared.visited and not self.shared.marking.locked:
            deferred_from_coro(self.shared.flush())

    # the life of the spider

    def spider_opened(self, spider: Any) -> None:
        self.every(FLUSH_AFTER, self.flush)
        if self.shared.lease is not None:
            self.every(seconds(self.shared.lease) / 3, self.renew)

    def every(self, interval: float, what: Any) -> None:
        clock = task.LoopingCall(what)
        clock.start(interval, now=False)
        self._clocks.append(clock)

    def renew(self) -> None:
        """Claims again the pages that are waiting here."""
        async def claim() -> None:
            try:
                for call in self.shared.store._core.mark(
                        "/claim", sorted(self.shared.taken), {}):
                    await self.shared.run(call)
            except UrlStoreError as e:
                logger.error("claims are not renewed: %s", e)

        if self.shared.taken:
            deferred_from_coro(claim())

    def spider_idle(self, spider: Any) -> None:
        if not self.resume:
            return
        if not self._taking:
            self._taking = True
            deferred_from_coro(self.take(spider)).addErrback(
                self.take_failed)
        raise DontCloseSpider

    def take_failed(self, failure: Any) -> None:
        logger.error("pages left in the store are not crawled: %s",
                     failure.value)
        self.resume = False

    async def take(self, spider: Any) -> None:
        """Schedules the next pages that are stored and have no mark; after
        the last one, lets the spider close."""
        await self.shared.flush()
        entries, self._next, more = await self.shared.left(
            self._next, self.shared.lease)
        if not more:
            await self.end_of_list()
        entries = [entry for entry in entries
                   if entry.url is not None and entry.id not in self._tried]
        if self.shared.lease is not None:
            items = await self.shared.add_all(
                [entry.url for entry in entries if entry.url is not None],
                self.shared.lease)
            mine = {item.id for item in items if item.mine or item.unsure}
            entries = [entry for entry in entries if entry.id in mine]
        for entry in entries:
            self._tried.add(entry.id)
            self.shared.taken.add(entry.id)
            request = self.request_of(spider, entry.id, str(entry.url))
            judged(request, entry.id)
            self.shared.count("resumed")
            self.crawler.engine.crawl(request)
        self._taking = False

    async def end_of_list(self) -> None:
        """Begins again while others are at work on pages, which this crawler
        may have to take over."""
        lease = self.shared.lease
        if lease is None or not await self.others_at_work():
            self.resume = False
            return
        self._next = BEGIN
        await self.shared.pause(seconds(lease) / 3)

    async def others_at_work(self) -> bool:
        place, more = BEGIN, True
        while more:
            entries, place, more = await self.shared.left(place, None)
            if any(entry.id not in self._tried
                   and entry.id not in self.shared.taken
                   for entry in entries):
                return True
        return False

    @staticmethod
    def request_of(spider: Any, number: int, url: str) -> Any:
        """Spiders that need more than the URL define urlstore_request()."""
        make = getattr(spider, "urlstore_request", None)
        return Request(url) if make is None else make(number, url)

    async def spider_closed(self, spider: Any) -> None:
        for clock in self._clocks:
            if clock.running:
                clock.stop()
        await self.shared.flush()
        if self.shared.visited:
            logger.error("%d pages are left without their mark",
                         len(self.shared.visited))
