"""The main calls, with the standard library:

    python3 examples/example.py http://127.0.0.1:8080
"""

import json
import sys
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit


class Store:
    """One keep-alive connection to the store."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.connection = HTTPConnection(parts.netloc, timeout=60)
        self.prefix = parts.path.rstrip("/")

    def call(self, method, path, body=None):
        headers = {"Accept": "application/json"}
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        self.connection.request(method, self.prefix + path, body, headers)
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 400:
            raise RuntimeError(f"{answer.status} {content['title']}")
        return content

    def add_one(self, url):
        """Is this URL new?  It is added if so."""
        return self.call("POST", "/add", {"url": url})

    def add_page(self, base, links):
        """All links of a page, as they stand in it; one answer for each."""
        return self.call("POST", "/add",
                         {"base": base, "urls": links})["results"]

    def seen(self, url):
        """Is it known?  Adds nothing."""
        return self.call("GET", "/seen?" + urlencode({"url": url}))

    def url(self, number):
        """id -> URL"""
        return self.call("GET", f"/url/{number}")["url"]

    def urls(self, numbers):
        """The same for many."""
        return self.call("POST", "/url", {"ids": numbers})["results"]

    def since(self, number):
        """Everything from an id on: an export, and a feed of new URLs."""
        while True:
            self.connection.request(
                "GET", f"{self.prefix}/urls?from={number}&limit=1000")
            lines = self.connection.getresponse().read().splitlines()
            if not lines:
                return
            for line in lines:
                number, url = line.decode().split("\t")
                yield number, url
            number = int(number) + 1


def show(item):
    number = "-" if item["id"] is None else item["id"]
    print(number, item["status"], item.get("url") or item["reason"], sep="\t")


def main():
    store = Store(sys.argv[1] if len(sys.argv) > 1
                  else "http://127.0.0.1:8080")
    page = "http://example.com/shop/list.html"

    show(store.add_one(page))
    for item in store.add_page(page, [
            "item?id=7", "/about.html",
            "HTTP://WWW.Example.com/about.html#team", "ftp://example.com/"]):
        show(item)
    show(store.seen("http://example.com/shop/./item?id=7"))
    show(store.seen("http://example.com/never"))
    print(store.url(1))
    for item in store.urls([0, 2, 99]):
        print(item["id"], item["url"] or "-\t" + item["status"], sep="\t")
    for number, url in store.since(0):
        print(number, url, sep="\t")


main()
