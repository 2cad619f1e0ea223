"""The requests of the service, and the rules of retrying, without I/O.

A call is a generator.  It yields what a transport has to do,

    Send    send this request: the transport sends back Reply or Lost
    Sleep   wait: the transport sends back None

and its return value is the answer.  Store (sync.py) and AsyncStore (aio.py)
are two transports of the same calls.

The rules, which the clients in other languages share:

- A request is sent again when no whole answer came, on the codes in RETRIED
  and on any refusal that brings Retry-After.
- It is sent again with the same bytes and the same Idempotency-Key.
- The wait is what Retry-After says, plus a random part of a backoff that
  doubles from BACKOFF to BACKOFF_MAX seconds.
- A wait that would end later than `patience` seconds after the first try is
  not begun: the call raises what the last try met.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import random
import time
import uuid
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import (Any, Callable, Dict, Generator, Iterable, Iterator, List,
                    Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar,
                    Union)
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from .cache import Cache, Known
from .errors import NoAnswer, Problem, UrlStoreError
from .values import Batch, Entry, Found, Item, Marked, Progress

T = TypeVar("T")

logger = logging.getLogger("urlstore")

RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504))
BACKOFF = 0.1
BACKOFF_MAX = 5.0
GZIP_FROM = 1024

JSON = "application/json"
NDJSON = "application/x-ndjson"


class Send(NamedTuple):
    method: str
    target: str                 # path and query
    headers: Dict[str, str]
    body: Optional[bytes]


class Sleep(NamedTuple):
    seconds: float
    reason: str                 # what the last try met


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Lost(NamedTuple):
    """No whole answer.

    sent    the service may have received the request
    stale   it may have been sent over a connection that an earlier request
            had used, and nothing came back: the service may have closed it
            meanwhile, so the first such request is sent again at once
    """

    reason: str
    sent: bool
    stale: bool = False


Step = Union[Send, Sleep]
Got = Union[Reply, Lost, None]
Call = Generator[Step, Got, T]

V = TypeVar("V", int, str, Union[int, str])
Part = Sequence[Tuple[V, bytes]]    # values, each with its JSON

# epoch and number of ids, at least, by shard; a store alone is shard 0
Shards = Dict[int, Tuple[Optional[int], int]]
Place = Dict[str, str]          # where a feed goes on: from=ID, or cursor=C

Duration = Union[str, int, float, timedelta]
Ref = Union[int, str]           # an id, or a URL


class Options:
    """Of a store: its address and how to talk to it; see sync.Store."""

    def __init__(self, address: str, *, timeout: float = 30.0,
                 patience: float = 50.0, batch: int = 1000,
                 body: int = 1 << 20, gzip: bool = False, cache: int = 0,
                 headers: Optional[Mapping[str, str]] = None) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"address {address!r}: an http or https URL "
                             "is needed")
        if not 1 <= batch <= 10000:
            raise ValueError(f"batch {batch}: 1 to 10000 items are allowed")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        self.prefix = parts.path.rstrip("/")
        self.address = f"{parts.scheme}://{self.netloc}{self.prefix}"
        self.timeout = timeout
        self.patience = patience
        self.batch = batch
        self.body = body
        self.gzip = gzip
        self.cache = cache
        self.headers = {"User-Agent": "urlstore-python/1.0"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(
                user.encode()).decode()
        self.headers.update(headers or {})


class Core:
    """What all calls of one store share."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.cache = Cache(options.cache)
        self._lock = Lock()
        self._shards: Shards = {}
        self._silent = False            # and a warning has said so

    # one request

    def exchange(self, method: str, path: str,
                 args: Mapping[str, Optional[str]], payload: Optional[bytes],
                 read: Callable[[Reply], T], accept: str = JSON,
                 patience: Optional[float] = None) -> Call[Tuple[T, int, bool]]:
        """The answer as `read` returns it, the number of tries, and whether
        a lost try may have changed the store before, and the service does
        not repeat what it answered then.  `read` raises ValueError for an
        answer that is not whole."""
        send = self._request(method, path, args, payload, accept)
        limit = self.options.patience if patience is None else patience
        where = f"{method} {self.options.address}{path}"
        first = time.monotonic()
        tries = pauses = lost = 0
        while True:
            got = yield send
            tries += 1
            after: Optional[float] = None
            fault: UrlStoreError
            if isinstance(got, Reply):
                self._silent = False
                if 200 <= got.status < 300:
                    try:
                        return read(got), tries, (lost > 0
                                                  and not repeated(got))
                    except (ValueError, KeyError, TypeError) as e:
                        fault = NoAnswer(f"{where}: "
                                         f"the answer is not whole: {e}")
                        lost += 1
                else:
                    after = retry_after(got.headers.get("retry-after"))
                    fault = Problem(got.status, document(got), after, where)
                    lost += fault.applied
                    if got.status not in RETRIED and after is None:
                        limit = 0
            else:
                assert isinstance(got, Lost)
                fault = NoAnswer(f"{where}: {got.reason}")
                lost += got.sent
                if got.stale and tries == pauses + 1:
                    continue
            wait = (after or 0.0) + backoff(pauses)
            pauses += 1
            if time.monotonic() - first + wait > limit:
                fault.tries = tries
                fault.unsure = lost > 0
                raise fault
            if isinstance(got, Lost) and not self._silent:
                self._silent = True
                logger.warning("%s; it is tried again for %g s", fault, limit)
            yield Sleep(wait, str(fault))

    def _request(self, method: str, path: str,
                 args: Mapping[str, Optional[str]], payload: Optional[bytes],
                 accept: str) -> Send:
        query = urlencode({k: v for k, v in args.items() if v is not None})
        headers = dict(self.options.headers)
        headers["Accept"] = accept
        if payload is not None:
            headers["Content-Type"] = JSON
            if self.options.gzip and len(payload) >= GZIP_FROM:
                payload = gzip.compress(payload, 1)
                headers["Content-Encoding"] = "gzip"
        if changes(method, path):
            headers["Idempotency-Key"] = f'"{uuid.uuid4()}"'
        return Send(method, self.options.prefix + path
                    + ("?" + query if query else ""), headers, payload)

    # what was learnt from answers

    def _learn(self, found: Shards) -> None:
        """Remembers how many ids were given, at least.  The cache does not
        outlive an epoch of any shard."""
        with self._lock:
            for number, (epoch, next_id) in found.items():
                before = self._shards.get(number)
                if before is not None and before[0] != epoch:
                    self.cache.clear()
                elif before is not None:
                    next_id = max(next_id, before[1])
                self._shards[number] = (epoch, next_id)

    # calls

    def look_up(self, path: str, urls: Iterable[str], base: Optional[str],
                only_new: bool, older: Optional[Duration], sites: bool,
                times: bool, set: Optional[str] = None) -> Iterator[
                    Call[Batch]]:
        """One call for each request that the URLs take, in order."""
        args = {"only": "new" if only_new else None,
                "older": None if older is None else duration(older),
                "set": set,
                "sites": "1" if sites else None,
                "times": "1" if times else None}
        # what is in the store may be due, or new to the set
        cached = older is None and set is None and not times
        index = 0
        for part in chunks(urls, self.options.batch,
                           self.options.body - len(encoded(base or ""))):
            yield self._part(path, part, index, base, args, cached)
            index += len(part)

    def _part(self, path: str, urls: Part[str], index: int,
              base: Optional[str], args: Mapping[str, Optional[str]],
              cached: bool) -> Call[Batch]:
        batch = Batch()
        only_new = args["only"] is not None
        asked: List[int] = []
        for at, (url, text) in enumerate(urls):
            known = self.cache.get(url, base) if cached else None
            if known is not None:
                batch.seen += 1
                if not only_new:
                    batch.items.append(Item(
                        index + at, known.id, "seen", known.url,
                        new_site=False if args["sites"] else None))
            elif len(text) > self.options.body:
                batch.errors += 1
                if not only_new:
                    batch.items.append(Item(index + at, None, "invalid",
                                            reason="length"))
            else:
                asked.append(at)
        try:
            if asked:
                yield from self._ask(path, urls, asked, index, base, args,
                                     batch)
        except UrlStoreError as e:
            e.done = in_order(batch.items)
            raise
        batch.items = in_order(batch.items)
        return batch

    def _ask(self, path: str, urls: Part[str], asked: Sequence[int],
             index: int, base: Optional[str],
             args: Mapping[str, Optional[str]],
             batch: Batch, lost_at: Optional[Shards] = None) -> Call[None]:
        """Adds to the batch what the service answers for urls[asked].  Asks
        again for the items whose outcome is unknown: what is `seen` then may
        be of the first request.  `lost_at`: it may be of a whole, of
        which this is a half, whose try then was lost."""
        with self._lock:
            before = dict(self._shards) if lost_at is None else lost_at
        if args["older"] is not None or args["set"] is not None:
            before = {}     # no id shows what a lost try changed
        only_new = args["only"] is not None
        first = time.monotonic()
        rounds = 0
        while True:
            left = self.options.patience - (time.monotonic() - first)
            try:
                answer, tries, lost = yield from self._asked(
                    path, urls, asked, base, args, left)
            except UrlStoreError as e:
                if rounds:
                    break   # the items are in the batch, and unsure
                if (not isinstance(e, Problem) or e.status != 413
                        or e.processed or len(asked) == 1):
                    raise
                half = len(asked) // 2
                for part in asked[:half], asked[half:]:
                    yield from self._ask(path, urls, part, index, base, args,
                                         batch, before if e.unsure else lost_at)
                return
            lost = changes("POST", path) and (lost or rounds > 0
                                             or lost_at is not None)
            found = shards(answer)
            self._learn(found)
            if rounds:
                again = {index + at for at in asked}
                batch.items = [item for item in batch.items
                               if item.index not in again]
                batch.errors -= len(again)
            unknown: List[int] = []
            for at, result in enumerate(answer["results"]):
                at = asked[result.get("index", at)]
                item = Item(index + at, result["id"], result["status"],
                            result.get("url"), result.get("reason"),
                            result.get("new_site"), result.get("time"),
                            stored=result.get("stored"))
                if item.status == "seen":
                    item.unsure = lost and not known(item.id, before, found)
                elif item.status == "unavailable" and changes("POST", path):
                    item.unsure = lost or str(item.reason).startswith(
                        "unknown:")
                    if item.unsure:
                        item.url = resolved(urls[at][0], base)
                        unknown.append(at)
                if (item.id is not None and item.url is not None
                        and item.status in ("new", "seen")):
                    self.cache.put(urls[at][0], base, Known(item.id, item.url))
                if not rounds or not only_new or item.mine or item.unsure:
                    batch.items.append(item)
            batch.tries += tries
            batch.new += answer["new"]
            batch.due += answer.get("due", 0)
            batch.seen += answer["seen"]
            batch.unseen += answer["unseen"]
            batch.errors += answer["errors"]
            if batch.next_id is None:
                batch.next_id = answer.get("next_id")
            batch.epoch = answer.get("epoch")
            wait = backoff(rounds)
            rounds += 1
            if not unknown or (time.monotonic() - first + wait
                               > self.options.patience):
                break
            yield Sleep(wait, f"{len(unknown)} URLs are unavailable")
            asked = unknown
            args = {**args, "only": None}   # which leaves out what is unsure

    def _asked(self, path: str, urls: Part[str], asked: Sequence[int],
               base: Optional[str], args: Mapping[str, Optional[str]],
               patience: float) -> Call[Tuple[Dict[str, Any], int, bool]]:
        def read(reply: Reply) -> Dict[str, Any]:
            answer = parsed(reply)
            if args["only"] is None and len(answer["results"]) != len(asked):
                raise ValueError(f"{len(answer['results'])} results for "
                                 f"{len(asked)} URLs")
            return answer

        payload = b'{"urls":[' + b",".join([urls[at][1]
                                            for at in asked]) + b"]"
        if base is not None:
            payload += b',"base":' + encoded(base)
        answer = yield from self.exchange("POST", path, args, payload + b"}",
                                          read, patience=patience)
        return answer

    def url(self, number: int) -> Call[str]:
        answer, _, _ = yield from self.exchange(
            "GET", f"/url/{number:d}", {}, None,
            lambda reply: str(parsed(reply)["url"]))
        return answer

    def urls(self, ids: Iterable[int], times: bool) -> Iterator[
            Call[List[Found]]]:
        args = {"times": "1" if times else None}
        for part in chunks(ids, self.options.batch, self.options.body):
            yield self._found(part, args)

    def _found(self, ids: Part[int],
               args: Mapping[str, Optional[str]]) -> Call[List[Found]]:
        def read(reply: Reply) -> List[Found]:
            results = parsed(reply)["results"]
            if len(results) != len(ids):
                raise ValueError(f"{len(results)} results for {len(ids)} ids")
            return [Found(r["id"], r["status"], r.get("url"), r.get("time"))
                    for r in results]

        payload = b'{"ids":[' + joined(ids) + b"]}"
        found, _, _ = yield from self.exchange("POST", "/url", args, payload,
                                               read)
        return found

    def mark(self, path: str, refs: Iterable[Ref],
             args: Mapping[str, Optional[str]]) -> Iterator[
                 Call[List[Marked]]]:
        """/mark/NAME, /set/NAME or /claim; one call for each request."""
        index = 0
        for part in chunks(refs, self.options.batch, self.options.body):
            yield self._marked(path, part, index, args)
            index += len(part)

    def _marked(self, path: str, refs: Part[Ref], index: int,
                args: Mapping[str, Optional[str]]) -> Call[List[Marked]]:
        def read(reply: Reply) -> List[Marked]:
            results = parsed(reply)["results"]
            if len(results) != len(refs):
                raise ValueError(f"{len(results)} results for "
                                 f"{len(refs)} items")
            return [Marked(index + at, r["id"], r["status"], r.get("url"),
                           r.get("reason"))
                    for at, r in enumerate(results)]

        payload = b"[" + joined(refs) + b"]"
        marked, _, lost = yield from self.exchange("POST", path, args,
                                                   payload, read)
        for item in marked:
            item.unsure = (item.status == "was" and lost
                           or item.status == "unavailable"
                           and (lost or str(item.reason).startswith(
                               "unknown:")))
        return marked

    def make_set(self, name: str) -> Call[bool]:
        made, _, lost = yield from self.exchange(
            "PUT", below("/set", name), {}, None,
            lambda reply: reply.status == 201)
        return made or lost

    def begin(self, set: str, done: Optional[str]) -> Call[None]:
        """Makes the set of a crawl, and that of its pages that are done.
        The second one does not outlive the first: pages that are new to a
        new set are not done."""
        made = yield from self.make_set(set)
        if done:
            if made:
                yield from self.drop_set(done)
            yield from self.make_set(done)

    def drop_set(self, name: str) -> Call[None]:
        try:
            yield from self.exchange("DELETE", below("/set", name), {}, None,
                                     lambda reply: None)
        except Problem as e:
            if e.status != 404 or e.document.get("reason") != "set":
                raise

    def delete(self, number: int) -> Call[None]:
        self.cache.clear()
        try:
            yield from self.exchange("DELETE", f"/url/{number:d}", {}, None,
                                     lambda reply: None)
        except Problem as e:
            if e.status != 410:
                raise

    def page(self, place: Place, args: Mapping[str, Optional[str]]) -> Call[
            Tuple[List[Entry], Place, bool]]:
        """The next entries of the feed, where to go on, and whether there
        are more."""
        def read(reply: Reply) -> Tuple[List[Entry], Place, bool]:
            entries: List[Entry] = []
            for line in reply.body.splitlines():
                entry = json.loads(line)
                if "next" in entry:
                    after = {"from": str(entry["next"])}
                    return entries, after, after != place
                if "cursor" in entry:       # of a router
                    if entry.get("unavailable") and not entries:
                        raise ValueError("shards that do not answer: "
                                         f"{entry['unavailable']}")
                    return entries, {"cursor": entry["cursor"]}, entry["more"]
                entries.append(Entry(entry["id"], entry.get("url"),
                                     entry.get("time")))
            raise ValueError("the last line is missing")

        answer, _, _ = yield from self.exchange(
            "GET", "/urls", {**place, **args}, None, read, NDJSON)
        return answer

    def left(self, place: Place, set: str, done: str, limit: int) -> Call[
            Tuple[List[Entry], Place, bool]]:
        """The next entries of a set that are not in the set `done`, as of
        page()."""
        entries, place, more = yield from self.page(
            place, {"limit": str(limit), "set": set})
        entries = [entry for entry in entries if entry.url is not None]
        there: List[Item] = []
        for call in self.look_up("/seen", [str(entry.url)
                                           for entry in entries],
                                 None, False, None, False, False, done):
            part = yield from call
            there += part.items
        return ([entry for entry, item in zip(entries, there)
                 if item.status != "seen"], place, more)

    def get(self, path: str, args: Mapping[str, Optional[str]]) -> Call[
            Dict[str, Any]]:
        answer, _, _ = yield from self.exchange("GET", path, args, None,
                                                parsed)
        return answer

    def health(self, write: bool) -> Call[Dict[str, Any]]:
        try:
            answer, _, _ = yield from self.exchange(
                "GET", "/health", {"write": "1" if write else None}, None,
                parsed, patience=0)
            return answer
        except Problem as e:
            if e.status == 503 and e.document:
                return e.document
            raise


# --- parts of requests and answers --------------------------------------


_encode = json.JSONEncoder(ensure_ascii=False).encode


def changes(method: str, path: str) -> bool:
    """Whether a request changes the store."""
    return method == "POST" and (path in ("/add", "/claim")
                                 or path.startswith(("/mark/", "/set/")))


def below(path: str, name: str) -> str:
    """The path of a set or a mark."""
    return f"{path}/{quote(name, safe='')}"


def encoded(value: Union[int, str]) -> bytes:
    """JSON of a number or a string.  A lone surrogate, which no URL has,
    becomes U+FFFD as in browsers; the service refuses a body with one."""
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (text.encode("utf-16-le", "surrogatepass")
                .decode("utf-16-le", "replace").encode())


def chunks(values: Iterable[V], count: int, size: int) -> Iterator[Part[V]]:
    """Parts of at most `count` values and, with more than one, `size`
    bytes."""
    part: List[Tuple[V, bytes]] = []
    used = 64
    for value in values:
        text = encoded(value)
        if part and (len(part) == count or used + len(text) + 1 > size):
            yield part
            part, used = [], 64
        part.append((value, text))
        used += len(text) + 1
    if part:
        yield part


def joined(part: Part[V]) -> bytes:
    return b",".join([text for _, text in part])


def parsed(reply: Reply) -> Dict[str, Any]:
    answer = json.loads(reply.body)
    if not isinstance(answer, dict):
        raise ValueError("no JSON object")
    return answer


def document(reply: Reply) -> Dict[str, Any]:
    """The problem document of a refusal; {} if there is none."""
    if "json" not in reply.headers.get("content-type", ""):
        return {}
    try:
        return parsed(reply)
    except ValueError:
        return {}


def repeated(reply: Reply) -> bool:
    """Whether what was new to an earlier try is so again (Idempotency-Key)."""
    return reply.headers.get("idempotency-status") == "repeated"


def shards(answer: Mapping[str, Any]) -> Shards:
    """What an answer says of its shards; the top bits of an id name one."""
    ids: List[int] = [r["id"] for r in answer["results"]
                      if r["id"] is not None]
    found: Shards
    if "next_ids" in answer:                # of a router
        found = {int(number): (answer["epochs"][number], next_id or 0)
                 for number, next_id in answer["next_ids"].items()}
    else:
        most = max([answer.get("next_id") or 0] + ids)
        found = {most >> 40: (answer.get("epoch"), most)}
    for id in ids:
        if id >> 40 in found:
            epoch, most = found[id >> 40]
            found[id >> 40] = (epoch, max(most, id + 1))
    return found


def resolved(link: str, base: Optional[str]) -> str:
    """A URL to fetch, where the service has named none."""
    try:
        return urljoin(base or "", link)
    except ValueError:
        return link


def known(number: Optional[int], before: Shards, found: Shards) -> bool:
    """Whether an id was given before; ids of another epoch say nothing."""
    if number is None:                      # of a filter, which has no ids
        return False
    epoch, next_id = before.get(number >> 40, (None, 0))
    return (number < next_id and number >> 40 in found
            and found[number >> 40][0] == epoch)


def retry_after(value: Optional[str]) -> Optional[float]:
    """Seconds, of a number of seconds or an HTTP date."""
    if value is None:
        return None
    try:
        return max(0.0, float(int(value)))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())


def backoff(pauses: int) -> float:
    """Seconds before the next try, after this many pauses."""
    return random.uniform(0.5, 1.0) * min(BACKOFF_MAX,
                                          BACKOFF * 2.0 ** min(pauses, 20))


def duration(value: Duration) -> str:
    """As the service reads it: "30d", or a number of seconds."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return f"{int(value)}s"


def moment(value: Union[str, int, float, datetime]) -> str:
    """Seconds since 1970, or RFC 3339."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value if isinstance(value, str) else str(int(value))


def feed_args(limit: int, site: Optional[str], prefix: Optional[str],
              mark: Optional[str], older: Optional[Duration], times: bool,
              deleted: bool, new_sites: bool,
              set: Optional[str]) -> Dict[str, Optional[str]]:
    return {"limit": str(limit), "site": site, "prefix": prefix,
            "mark": mark, "set": set,
            "older": None if older is None else duration(older),
            "times": "1" if times else None,
            "deleted": "1" if deleted else None,
            "new_sites": "1" if new_sites else None}


def claim_args(at: Union[str, int, float, datetime, None],
               clear: bool) -> Dict[str, Optional[str]]:
    return {"at": None if at is None else moment(at),
            "clear": "1" if clear else None}


def join(batch: Batch, part: Batch) -> None:
    """Appends the answer of one request to those before it."""
    batch.items += part.items
    batch.new += part.new
    batch.due += part.due
    batch.seen += part.seen
    batch.unseen += part.unseen
    batch.errors += part.errors
    batch.tries += part.tries
    if batch.next_id is None:
        batch.next_id = part.next_id
    if part.epoch is not None:
        batch.epoch = part.epoch


def in_order(items: List[Item]) -> List[Item]:
    return sorted(items, key=lambda item: item.index)


class Counter:
    """Counts a stream, and reports it after each of its requests."""

    def __init__(self, urls: Iterable[str],
                 report: Optional[Callable[[Progress], object]]) -> None:
        size = getattr(urls, "__len__", None)
        self._total: Optional[int] = size() if size else None
        self._report = report
        self._start = time.monotonic()
        self._sum = Batch()

    def add(self, part: Batch) -> None:
        if self._report is None:
            return
        part.items, items = [], part.items
        join(self._sum, part)
        part.items = items
        n = self._sum
        self._report(Progress(
            n.new + n.due + n.seen + n.unseen + n.errors, self._total,
            n.new + n.due, n.seen, n.errors,
            time.monotonic() - self._start))
