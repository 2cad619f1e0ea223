"""Adds URLs to a cluster, and divides them among the shards itself:

    python3 cluster.py http://ROUTER NODE=http://HOST:PORT... <URLS

Each URL goes to the shard that owns its slot.  What that shard does not answer
goes to the router: a URL whose slot was computed wrong, because it is not in
its canonical form; a new URL of a slot that has former owners; all URLs of a
shard that is down.
"""

import re
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

from urlstore import Store, UrlStoreError


def slot(url, key):
    rest = re.sub(r"^https?://([^/?#]*@)?(www\.)?", "", url)

    if key == "site":
        rest = re.split("[/?#]", rest, maxsplit=1)[0]

    return zlib.crc32(rest.encode()) >> 20


class Cluster:
    def __init__(self, router, nodes):
        self.router = Store(router)
        self.map = self.router.get("/cluster")
        self.owners = {}

        for slots, owner, *former in self.map["slots"]:
            first, _, last = slots.partition("-")

            for n in range(int(first), int(last or first) + 1):
                self.owners[n] = owner

        self.shards = {int(number): Store(nodes[shard["nodes"][0]])
                       for number, shard in self.map["shards"].items()}

    def add_all(self, urls):
        items = [None] * len(urls)
        unsure = set()      # what a shard may have added without an answer
        parts = {}

        for at, url in enumerate(urls):
            owner = self.owners[slot(url, self.map["key"])]
            parts.setdefault(owner, []).append(at)

        def add(part):
            owner, places = part

            try:
                found = self.shards[owner].add_all([urls[at] for at in places])
            except UrlStoreError as e:
                found = e.done
                unsure.update(places if e.unsure else ())

            for item in found:
                items[places[item.index]] = item

        with ThreadPoolExecutor(len(self.shards)) as pool:
            list(pool.map(add, parts.items()))

        left = [at for at, item in enumerate(items)
                if item is None or item.status == "unavailable"]

        if left:
            rest = self.router.add_all([urls[at] for at in left])

            for at, item in zip(left, rest):
                item.unsure |= at in unsure and item.status == "seen"
                items[at] = item

        return items


def main():
    nodes = dict(word.split("=", 1) for word in sys.argv[2:])
    cluster = Cluster(sys.argv[1], nodes)

    for item in cluster.add_all(sys.stdin.read().split()):
        print("-" if item.id is None else item.id, item.status,
              item.url or item.reason, *["unsure"] * item.unsure, sep="\t")


if __name__ == "__main__":
    main()
