#!/usr/bin/perl

# The adapters for Python crawlers that neither Debian nor npm have: what the
# crawlers call, in their order.  Read in crawl4ai 7e801521 (0.9.2) and
# crawlee-python 8ea5bde7 (1.9.3).

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone a 16m marks=visited;
urlstore_zone b 16m marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location /a/ { urlstore_api a; }
    location /b/ { urlstore_api b; }
}
CONF
my $store = 'http://127.0.0.1:' . $t->port;


sub python
{
    my ($script, @args) = @_;

    spew("$t->{dir}/script.py", <<'END' . $script);
import sys, urllib.request

def erase(url):
    urllib.request.urlopen(sys.argv[1] + "/erase", url.encode()).close()

END
    return `PYTHONPATH=$UrlStore::Test::TOP/clients/python /usr/bin/python3 \\
        -B $t->{dir}/script.py @args 2>&1`;
}


is(python(<<'END', "$store/a"), <<'OUT', 'crawl4ai: the last of a chain');
import asyncio, logging, sys
from urlstore.aio import AsyncStore
from urlstore.crawl4ai import Filter
logging.disable()

async def main():
    async with AsyncStore(sys.argv[1], cache=100) as store:
        filter_ = Filter(store)
        links = ["http://c.test/", "http://www.C.test/#x", "http://c.test/2"]
        for link in links:                  # link_discovery() awaits each
            print(await asyncio.gather(filter_.apply(link)))
        filter_ = Filter(store, set="second")
        print([await filter_.apply(link) for link in links])
        erase("http://c.test/never")
        print([await Filter(store, set=name).apply("http://c.test/never")
               for name in (None, "third")])
    async with AsyncStore("http://127.0.0.1:1", patience=0) as none:
        print(await Filter(none).apply("http://c.test/"))
        print(await Filter(none, set="second").apply("http://c.test/"))

asyncio.run(main())
END
[True]
[False]
[True]
[True, False, True]
[False, False]
True
True
OUT

my $crawlee = <<'END';
import asyncio, sys, types
from copy import copy
from types import SimpleNamespace as Object

# as much of crawlee as the adapter meets

class Request:
    def __init__(self, url, unique_key=None, method="GET"):
        self.url, self.method, self.payload = url, method, None
        self.unique_key = unique_key or url.lower().partition("#")[0]
        self.state = 4

    @classmethod
    def from_url(cls, url, unique_key=None):
        return cls(url, unique_key)

    def model_copy(self, update):
        new = copy(self)
        new.__dict__.update(update)
        return new

for name in "crawlee", "crawlee.storage_clients", \
        "crawlee.storage_clients.models":
    sys.modules[name] = types.ModuleType(name)
sys.modules["crawlee"].Request = Request
sys.modules["crawlee.storage_clients.models"].ProcessedRequest = Object

class Memory:
    refuse = True

    def __init__(self):
        self.queued, self.handled = {}, set()

    def get_storage_client_cache_key(self, configuration):
        return "memory"

    async def create_rq_client(self, *, name=None, configuration=None):
        return self

    async def add_batch_of_requests(self, requests, *, forefront=False):
        if Memory.refuse:
            Memory.refuse = False
            return Object(processed_requests=[], unprocessed_requests=[
                Object(unique_key=r.unique_key) for r in requests])
        old = set(self.queued)
        self.queued.update({r.unique_key: r for r in requests})
        return Object(unprocessed_requests=[], processed_requests=[
            Object(unique_key=r.unique_key,
                   was_already_present=r.unique_key in old,
                   was_already_handled=r.unique_key in self.handled)
            for r in requests])

    async def mark_request_as_handled(self, request):
        self.handled.add(request.unique_key)

    async def is_finished(self):
        return len(self.handled) == len(self.queued)

from urlstore import NoAnswer
from urlstore.aio import AsyncStore
from urlstore.crawlee import Shared

async def main():
    async with AsyncStore(sys.argv[1]) as store:
        memory = Memory()
        shared = Shared(memory, store)
        print(shared.get_storage_client_cache_key(None))
        queue = await shared.create_rq_client(name="q")
        batch = [Request("http://p.test/a"), Request("http://WWW.p.test/a#x"),
                 Request("http://p.test/b"), Request("http://p.test/a", "own"),
                 Request("http://p.test/c", None, "POST")]
        refused = await queue.add_batch_of_requests(batch)
        wanted = {r.unique_key for r in refused.unprocessed_requests}
        again = [r for r in batch if r.unique_key in wanted]
        print(sorted(wanted))
        answer = await queue.add_batch_of_requests(again)
        print(*sorted(memory.queued))
        print(len(again), len(answer.processed_requests))
        answer = await queue.add_batch_of_requests(batch[:3])
        print([r.was_already_present for r in answer.processed_requests])
        for request in list(memory.queued.values()):
            request.state = 6 if request.url.endswith("b") else 4
            await queue.mark_request_as_handled(request)
        print(await queue.is_finished())
        print([r.unique_key async for r in shared.left()])

        # with a set, and what is done in a set of the name that was dropped
        await store.add("http://p.test/other")
        await store.make_set("q.done")
        await store.put_in("q.done", ["http://p.test/b"])
        memory = Memory()
        shared = Shared(memory, store, set="q")
        queue = await shared.create_rq_client(name="q")
        await queue.add_batch_of_requests(batch[:3])
        print(*sorted(memory.queued))
        answer = await queue.add_batch_of_requests(batch[:3])
        print([r.was_already_present for r in answer.processed_requests])
        await queue.mark_request_as_handled(
            memory.queued["urlstore:http://p.test/a"])
        await shared.flush()
        print([r.unique_key async for r in shared.left()])
        again = Shared(memory, store, set="%(queue)s")
        await again.create_rq_client(name="q")
        print([r.unique_key async for r in again.left("q")])
        queue = await again.create_rq_client()
        memory.queued = {}
        await queue.add_batch_of_requests(batch[:2])
        await queue.mark_request_as_handled(
            memory.queued["urlstore:http://p.test/a"])
        await again.flush()
        print([r.unique_key async for r in again.left()])
        print(sorted(s["name"] for s in (await store.get("/set"))["sets"]))

        # what is erased while it is owed, and one answer of two that is lost
        memory, Memory.refuse = Memory(), True
        queue = await Shared(memory, store).create_rq_client(name="q")
        batch = [Request(f"http://e.test/{n}") for n in range(3)]
        await queue.add_batch_of_requests(batch[:2])
        erase(batch[1].url)
        await queue.add_batch_of_requests(batch[:2])
        print(*memory.queued)

        class Lost(AsyncStore):
            async def add_all(self, *args, **options):
                error = NoAnswer("lost")
                error.done = list(await super().add_all(args[0][:2]))
                error.unsure = True
                raise error

        memory = Memory()
        async with Lost(sys.argv[1]) as store:
            queue = await Shared(memory, store).create_rq_client(name="q")
            await queue.add_batch_of_requests(batch)
        print(*memory.queued)

asyncio.run(main())
END

is(python($crawlee, "$store/b"), <<'OUT', 'Crawlee for Python: its queue');
('urlstore.crawlee', 'memory')
['http://p.test/a', 'http://p.test/b', 'http://p.test/c', 'own']
http://p.test/c own urlstore:http://p.test/a urlstore:http://p.test/b
4 4
[True, True, True]
True
['urlstore:http://p.test/b']
urlstore:http://p.test/a urlstore:http://p.test/b
[True, True, True]
['urlstore:http://p.test/b']
['urlstore:http://p.test/b']
[]
['default', 'default.done', 'q', 'q.done', 'visited']
urlstore:http://e.test/0
http://e.test/2
OUT
is($t->get("/b/urls?mark=$_")->{body}, "0\thttp://p.test/a\n",
    "... marks what it handled, and not what failed: $_")
    for qw(visited q.done default.done);
