"""Adds the same URLs from several threads and processes.  Prints how many of
them no caller got to fetch, and how many more than one caller got.

    python3 test/threads.py STORE
"""

import os
import pathlib
import random
import sys
import threading
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from urlstore import Store  # noqa

URLS = [f"http://host{n % 50}.example/page/{n}" for n in range(20000)]
THREADS = 4


def work(store, fetch):
    urls = URLS[:]
    random.shuffle(urls)
    for at in range(0, len(urls), 100):
        fetch.extend(item.url
                     for item in store.add_all(urls[at:at + 100]).to_fetch())


def threads(store):
    fetch = []
    all_ = [threading.Thread(target=work, args=(store, fetch))
            for _ in range(THREADS)]
    for thread in all_:
        thread.start()
    for thread in all_:
        thread.join()
    return fetch


def main():
    store = Store(sys.argv[1])
    store.health()      # a connection that the child must not use as well
    read, write = os.pipe()
    child = os.fork()
    fetch = threads(store)
    if child == 0:
        with os.fdopen(write, "w") as out:
            out.write("\n".join(fetch))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as text:
        fetch += text.read().split("\n")
    os.waitpid(child, 0)
    count = Counter(fetch)
    print(sum(url not in count for url in URLS),
          sum(n > 1 for n in count.values()))


main()
