"""The main calls:

    python3 tour.py http://127.0.0.1:8080
"""

import sys

from urlstore import Problem, Store


def show(item):
    print("-" if item.id is None else item.id, item.status,
          item.url or item.reason, sep="\t")


def tour(store):
    page = "http://example.com/shop/list.html"
    links = ["item?id=7", "/about.html",
             "HTTP://WWW.Example.com/about.html#team", "ftp://example.com/"]

    # Is this URL new?  It is added if so.
    show(store.add(page))

    # All links of a page, as they stand in it; one answer for each.
    batch = store.add_all(links, base=page)
    for item in batch:
        show(item)

    # What this caller is to fetch.
    queue = [item.url for item in batch.to_fetch()]
    print(len(queue))

    # Is it known?  Adds nothing.
    show(store.seen("http://example.com/shop/./item?id=7"))
    show(store.seen("http://example.com/never"))

    # id -> URL, and the same for many.
    print(store.url(1))
    for found in store.urls([0, 2, 99]):
        print(found.id, found.status, found.url or "-", sep="\t")

    # A mark says what is done; the feed, what is left.
    store.mark("visited", [0, 2])
    for entry in store.feed(mark="!visited"):
        print(entry.id, entry.url, sep="\t")

    # A refusal carries the problem document.
    try:
        store.url(99)
    except Problem as e:
        print(e.status, e.title)

    # A crawl of its own: what is new to its set, whether stored or not.
    store.make_set("crawl-7")
    for item in store.add_all(links[:2], base=page, set="crawl-7"):
        show(item)


with Store(sys.argv[1], cache=100000) as store:
    tour(store)
