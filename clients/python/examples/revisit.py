"""Fetches the pages of a store, and fetches them again after some time:

    python3 revisit.py http://127.0.0.1:8080 [PERIOD [LEASE]]

PERIOD (30d) is the time between two fetches of a page, LEASE (1h) the time
after which a page that another crawler has taken and not fetched is taken
over.  Run as many as you like at the same time, and kill them as you like.
The zone needs marks=visited and revisit=1m or longer.  It ends when nothing
is left to do.
"""

import sys
import time
import urllib.error
import urllib.request

from urlstore import Store

MARK = "visited"
BATCH = 20


def due(store, mark, older):
    """Pages with this mark that were claimed longer ago, claimed by us now:
    of any number of crawlers that ask, one gets a page."""
    urls = []
    for entry in store.feed(0, mark=mark, older=older):
        urls.append(entry.url)
        if len(urls) == BATCH:
            mine = store.add_all(urls, older=older).to_fetch()
            if mine:
                return mine
            urls = []                            # others were faster
    return store.add_all(urls, older=older).to_fetch()


def take(store, period, lease):
    """The next pages to fetch."""
    pages = due(store, "!" + MARK, lease)
    if pages:
        return pages
    pages = due(store, MARK, period)
    # from here on, a kill leaves them to whoever comes after the lease
    store.unmark(MARK, [page.id for page in pages])
    return pages


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            reply.read()
    except urllib.error.HTTPError as e:
        e.close()


def main(address, period="30d", lease="1h"):
    with Store(address) as store:
        while True:
            pages = take(store, period, lease)
            if not pages:
                return
            for page in pages:
                fetch(page.url)
                store.claim([page.id])           # fetched now
                store.mark(MARK, [page.id])
                time.sleep(0.01)                 # be polite


if __name__ == "__main__":
    main(*sys.argv[1:])
