"""The Internet Archive's seencheck protocol, as Zeno speaks it, over a store:

    python3 -m urlstore.seencheck --listen 127.0.0.1:8087 STORE

    zeno get hq --hq-seencheck-url http://127.0.0.1:8087/ ...

POST of a JSON array of objects with a "value", the URL.  The answer is 200
with those objects that were not seen before, byte for byte as they came and
in their order, or 204 if all were seen.  docs/clients.md has the contract.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, permutations
from threading import Lock
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from .errors import Problem, UrlStoreError
from .sync import Store
from .values import Batch, Item

MAX_BODY = 8 << 20
MAX_ITEMS = 10000
PATIENCE = 4.0              # Zeno gives up after 5 s, and asks again
THREADS = 64                # requests to the store at the same time
MAX_OWED = 1000000          # URLs
MAX_NAMES = 5               # of a query, whose orders are all answered: 120
MAX_SPELLED = 100000        # spellings in an answer: half a second

_BLANK = re.compile(r"[ \t\r\n]*")
_BROKEN = re.compile("%(?![0-9A-Fa-f]{2})")
_decoder = json.JSONDecoder()


class Refused(Exception):
    """The request is answered by a problem document."""

    def __init__(self, status: int, title: str, detail: str,
                 retry_after: Optional[float] = None) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after = retry_after


class Element(NamedTuple):
    value: str
    text: str               # as it came


def elements(text: str) -> List[Element]:
    """The objects of a JSON array."""
    found: List[Element] = []
    at = blank(text, 0)
    if text[at:at + 1] != "[":
        raise Refused(400, "Bad Request", "the body is no JSON array")
    at = blank(text, at + 1)
    while text[at:at + 1] != "]" or found:
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            raise Refused(400, "Bad Request", f"no JSON at character {at}"
                          ) from None
        url = value.get("value") if isinstance(value, dict) else None
        if not isinstance(url, str):
            raise Refused(400, "Bad Request", f"element {len(found)} is no "
                          'object with a "value"')
        if len(found) == MAX_ITEMS:
            raise Refused(413, "Content Too Large", "a request has at most "
                          f"{MAX_ITEMS} elements")
        found.append(Element(url, text[at:end]))
        at = blank(text, end)
        if text[at:at + 1] == "]":
            break
        if text[at:at + 1] != ",":
            raise Refused(400, "Bad Request", f"no JSON at character {at}")
        at = blank(text, at + 1)
    if blank(text, at + 1) != len(text):
        raise Refused(400, "Bad Request", "text after the array")
    return found


def blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def spellings(value: str) -> Iterator[str]:
    """Zeno (read at ef2b39b0, July 2026) sends one spelling of a URL and looks
    for another one in the answer: its query is decoded, grouped by names,
    encoded again, and the names are in a random order.  What it does not find
    it never fetches."""
    front, hash_, fragment = value.partition("#")
    path, _, query = front.partition("?")
    groups: Dict[str, List[str]] = {}
    for pair in query.split("&"):
        if pair and ";" not in pair and not _BROKEN.search(pair):
            name, _, text = pair.partition("=")
            groups.setdefault(escaped(name), []).append(escaped(text))
    if not query or len(groups) > MAX_NAMES:
        return
    for names in permutations(groups):
        new = "&".join(f"{name}={text}" for name in names
                       for text in groups[name])
        spelled = path + (new and "?" + new) + hash_ + fragment
        if spelled != value:
            yield spelled


def escaped(text: str) -> str:
    plain = unquote_to_bytes(text.replace("+", " "))
    return quote_from_bytes(plain, safe=" ").replace(" ", "+")


class Seen:
    """A store, with one deadline for all that a request asks.  What the store
    adds for a request that was answered 503 is owed: it is unseen to the next
    one that asks for it, or it would be lost.  As long as that is under way,
    any of its URLs may be one of them."""

    def __init__(self, store: Store, set_: Optional[str] = None) -> None:
        self._store = store
        self._set = set_
        self._ready = set_ is None
        self._pool = ThreadPoolExecutor(THREADS)
        self._lock = Lock()
        self._owed: Dict[str, None] = {}
        self._under_way: Dict[Future[Batch], Set[str]] = {}

    def unseen(self, asked: List[Element]) -> List[Element]:
        """Adds what is new.  What the store cannot hold counts as unseen, or
        it would be lost; what a rule of the store rejects, and what was
        erased, as seen, though it be owed."""
        work = self._pool.submit(self._add,
                                 [element.value for element in asked])
        try:
            items = work.result(PATIENCE)
        except FutureTimeout:
            if not work.cancel():
                with self._lock:
                    self._under_way[work] = {e.value for e in asked}
                work.add_done_callback(lambda w: self._owe(asked, w))
            raise Refused(503, "Service Unavailable", "the store has not "
                          f"answered for {PATIENCE:g} s", 1) from None
        except UrlStoreError:
            self._owe(asked, work)
            raise
        with self._lock:
            return [element for element, item in zip(asked, items)
                    if item.status not in ("rejected", "refused")
                    and (self._pay(element.value)
                         or item.status != "seen" or item.unsure)]

    def _add(self, values: List[str]) -> Batch:
        if self._set is not None and not self._ready:
            self._store.make_set(self._set)
            self._ready = True
        return self._store.add_all(values, set=self._set)

    def _pay(self, value: str) -> bool:
        """Whether it is owed, to one who asks; it is not any more."""
        paid = self._owed.pop(value, self) is None
        for values in self._under_way.values():
            paid |= value in values
            values.discard(value)
        return paid

    def _owe(self, asked: List[Element], work: Future[Batch]) -> None:
        e = work.exception()
        items: List[Item] = list(work.result()) if e is None else []
        if isinstance(e, UrlStoreError):
            items = e.done
        owed = {item.index for item in items if item.mine or item.unsure}
        if isinstance(e, UrlStoreError) and e.unsure:
            owed |= set(range(len(asked))) - {item.index for item in items}
        with self._lock:
            left = self._under_way.pop(work, None)
            self._owed.update((asked[at].value, None) for at in owed
                              if left is None or asked[at].value in left)
            while len(self._owed) > MAX_OWED:
                del self._owed[next(iter(self._owed))]


def answer(seen: Seen, body: bytes, zeno: bool) -> Tuple[int, bytes]:
    """The status and the body."""
    try:
        asked = elements(body.decode())
    except UnicodeDecodeError:
        raise Refused(400, "Bad Request", "the body is no UTF-8") from None
    try:
        new = seen.unseen(asked)
    except Problem as e:
        raise Refused(503, "Service Unavailable", str(e),
                      e.retry_after or 1) from None
    except UrlStoreError as e:
        raise Refused(503, "Service Unavailable", str(e), 1) from None
    if not new:
        return 204, b""
    texts = [element.text for element in new]
    if zeno:
        texts += islice((json.dumps({"value": spelled}) for element in new
                         for spelled in spellings(element.value)),
                        MAX_SPELLED)
    return 200, ("[" + ",".join(texts) + "]").encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Seen

    def do_POST(self) -> None:
        try:
            agent = self.headers.get("User-Agent", "")
            status, body = answer(self.seen, self.body(),
                                  agent.startswith("gocrawlhq/"))
            self.reply(status, body, "application/json", {})
        except Refused as e:
            self.refuse(e)

    def do_GET(self) -> None:
        self.refuse(Refused(405, "Method Not Allowed", "seencheck is a POST"))

    def body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]+", length):
            self.close_connection = True
            if length:
                raise Refused(400, "Bad Request",
                              "Content-Length is no number")
            raise Refused(411, "Length Required", "Content-Length is needed")
        if len(length) > 9 or int(length) > MAX_BODY:
            self.close_connection = True
            raise Refused(413, "Content Too Large",
                          f"a body has at most {MAX_BODY} bytes")
        body = self.rfile.read(int(length))
        coding = self.headers.get("Content-Encoding", "identity")
        if coding == "gzip":
            return inflated(body)
        if coding != "identity":
            raise Refused(415, "Unsupported Media Type",
                          "Content-Encoding: use gzip or identity")
        return body

    def refuse(self, e: Refused) -> None:
        headers: Dict[str, str] = {}
        if e.retry_after is not None:
            headers["Retry-After"] = str(int(e.retry_after + 0.999))
        if e.status == 405:
            headers["Allow"] = "POST"
        document = {"type": "about:blank", "title": e.title,
                    "status": e.status, "detail": e.detail}
        self.reply(e.status, json.dumps(document).encode(),
                   "application/problem+json", headers)

    def reply(self, status: int, body: bytes, kind: str,
              headers: Dict[str, str]) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """No line for each request."""


def inflated(body: bytes) -> bytes:
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = unpack.decompress(body, MAX_BODY)
    except zlib.error:
        raise Refused(400, "Bad Request", "the body is no gzip") from None
    if unpack.unconsumed_tail:
        raise Refused(413, "Content Too Large",
                      f"a body has at most {MAX_BODY} bytes")
    if not unpack.eof:
        raise Refused(400, "Bad Request", "the gzip body is cut off")
    return text


def server(host: str, port: int, seen: Seen) -> ThreadingHTTPServer:
    """Listens; serve_forever() of it answers."""
    handler = type("StoreHandler", (Handler,), {"seen": seen})
    listening = ThreadingHTTPServer((host, port), handler)
    listening.daemon_threads = True
    return listening


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m urlstore.seencheck",
        description="The seencheck protocol over a URL store.")
    parser.add_argument("store", metavar="STORE",
                        help="its address, such as http://127.0.0.1:8080")
    parser.add_argument("--listen", metavar="HOST:PORT",
                        default="127.0.0.1:8087",
                        help="where to listen (127.0.0.1:8087)")
    parser.add_argument("--cache", metavar="N", type=int, default=100000,
                        help="URLs kept in memory (100000)")
    parser.add_argument("--set", metavar="NAME",
                        help="a set: what is new to it, not to the store; "
                        "made if it is not there")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit():
        parser.error(f"--listen {options.listen}: HOST:PORT is needed")
    store = Store(options.store, patience=PATIENCE, timeout=PATIENCE,
                  cache=0 if options.set else options.cache)
    try:
        server(host.strip("[]"), int(port),
               Seen(store, options.set)).serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
