#!/usr/bin/perl

# The Node package: its types hold for the examples, and the one for Crawlee
# runs on a site of stored pages; crawl.t kills it.  What the adapter does when
# store or queue refuse is tested without a crawler.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Site;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $modules = "$top/t/clients/node_modules";
my $site = UrlStore::Site->new(100);
my $dir = $site->dir;

$site->node_project;

my $tsc = `cd $dir && node $modules/typescript/bin/tsc --noEmit --strict \\
    --checkJs --allowJs --skipLibCheck --module nodenext --target es2022 \\
    node_modules/urlstore/index.d.ts crawlee.mjs 2>&1`;

is($tsc, '', 'the types, and the recipe for Crawlee by them');


sub crawlee
{
    my ($port, @set) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDOUT, '>>', "$dir/crawlee.out";
    open STDERR, '>>', "$dir/crawlee.out";
    $ENV{CRAWLEE_STORAGE_DIR} = "$dir/storage";
    $ENV{CRAWLEE_MEMORY_MBYTES} = 1024;
    chdir $dir;
    exec 'node', 'crawlee.mjs', "http://127.0.0.1:$port", $site->urls->[0],
        $site->proxy, @set or POSIX::_exit(127);
}


sub ends { waitpid $_[0], 0; return $? == 0 }


my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone one 16m marks=visited;
urlstore_zone two 16m marks=visited;
urlstore_zone three 16m marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location /one/ { urlstore_api one; }
    location /two/ { urlstore_api two; }
    location /three/ { urlstore_api three; }
}
CONF
my $port = $t->port;
my $left = '/urls?mark=!visited';

ok(ends(crawlee("$port/one")), 'Crawlee') or diag(slurp("$dir/crawlee.out"));
my $got = $site->fetched->{all};
is(join(' ', $site->missing($got)), '', '... fetches each page');
is((grep { $_ > 1 } values %$got), 0, '... once');
is($t->get("/one$left")->{body}, '', '... and all are marked');
ok(ends(crawlee("$port/one")), 'a second time');
is(scalar %{ $site->fetched->{all} }, 0, '... fetches nothing');
ok(ends(crawlee("$port/one", 'tuesday-%(queue)s')), 'with a set')
    or diag(slurp("$dir/crawlee.out"));
$got = $site->fetched->{all};
is(join(' ', $site->missing($got)), '', '... it fetches each page again');
is((grep { $_ > 1 } values %$got), 0, '... once');
is(scalar(() = $t->get("/one/urls?set=$_&limit=1000")->{body} =~ /^\d/mg), 100,
    "... and all are in $_") for 'tuesday-default', 'tuesday-default.done';
ok(ends(crawlee("$port/one", 'tuesday-default')), '... a second time');
is(scalar %{ $site->fetched->{all} }, 0, '... nothing');


# the adapter, over queues that refuse, and stores whose answers get lost

spew("$dir/adapter.mjs", <<'END');
import { Request } from "@crawlee/cheerio";
import { Store } from "urlstore";
import { share } from "urlstore/crawlee";

const store = new Store(process.argv[2]);
const gone = "http://q.test/gone";
const lost = { addAll: async ([url]) => { throw Object.assign(new Error("lost"),
    { unsure: process.argv[3] === "1", done: (await store.addAll(
        url === gone ? [url] : [])).items }) } };
const erase = (body) => fetch(`${process.argv[2]}/erase`,
    { method: "POST", body });
const queued = [];
let refuse = 2;
const queue = { async batchAddRequests(requests) {
    if (refuse === 2) {
        refuse--;
        throw new Error("no queue");
    }
    const taken = requests.slice(refuse);
    const refused = requests.slice(0, refuse);
    refuse = 0;
    queued.push(...taken.map((r) => r.uniqueKey));
    return { unprocessedRequests: refused.map(({ url, uniqueKey }) =>
        ({ url, uniqueKey })), processedRequests: taken.map((r) =>
        ({ uniqueKey: r.uniqueKey, requestId: "x", wasAlreadyPresent: false,
            wasAlreadyHandled: false })) };
} };
const client = { requestQueue: () => queue };
const shared = share(client, store).requestQueue();
const urls = ["http://q.test/a/", "http://WWW.q.test/a/#x", "ftp://q.test/"];
const requests = urls.map((url) => new Request({ url }));

requests.push(new Request({ url: urls[0], uniqueKey: "mine" }),
    new Request({ url: urls[0], method: "POST", payload: "x",
        useExtendedUniqueKey: true }));
await shared.batchAddRequests(requests).catch((e) => console.log(e.message));

// Crawlee adds again what is not among the processed ones

const { processedRequests, unprocessedRequests: [refused] } =
    await shared.batchAddRequests(requests);
const processed = (r) => processedRequests.some((p) =>
    p.uniqueKey === r.uniqueKey);

console.log(refused.uniqueKey === requests[0].uniqueKey);
processedRequests.push(...(await shared.batchAddRequests(requests.filter(
    (r) => !processed(r)))).processedRequests);
console.log(queued.length, queued[2], queued.includes("mine"));
console.log(requests.every(processed));
await shared.batchAddRequests(requests.slice(0, 3));
console.log(queued.length);
await share(client, lost).requestQueue().addRequest(requests[0])
    .then(() => console.log("queued"), (e) => console.log(e.message));

// what is erased while it is owed; then one answer of two is lost

const owed = [gone, "http://q.test/kept"].map((url) => new Request({ url }));

refuse = 2;
queued.length = 0;
await shared.batchAddRequests(owed).catch(() => refuse = 0);
await erase(gone);
await shared.batchAddRequests(owed);
console.log(queued.join(" "));
await share(client, lost).requestQueue().batchAddRequests(owed)
    .catch((e) => console.log(e.message));
console.log(queued.slice(1).join(" "));
store.close();
END

my $said = "no queue\ntrue\n3 urlstore:http://q.test/a/ true\ntrue\n3\n";
my $kept = "urlstore:http://q.test/kept\n";

is(`cd $dir && node adapter.mjs http://127.0.0.1:$port/two 1 2>&1`,
    "${said}queued\n${kept}http://q.test/kept\n", 'what a queue refused is '
    . 'owed to it; a request of the caller\'s own passes; after a lost answer '
    . 'all pass, but for what was erased');
is(`cd $dir && node adapter.mjs http://127.0.0.1:$port/three 0 2>&1`,
    "${said}lost\n${kept}lost\n\n", '... after a refusal none');


# the adapter with a set, one of whose name was dropped without its .done

spew("$dir/set.mjs", <<'END');
import { Request } from "@crawlee/cheerio";
import { Store } from "urlstore";
import { share } from "urlstore/crawlee";

const store = new Store(process.argv[2]);
const queued = [];
const queue = {
    async batchAddRequests(requests) {
        queued.push(...requests.map((r) => r.uniqueKey));
        return { unprocessedRequests: [], processedRequests: requests.map((r) =>
            ({ uniqueKey: r.uniqueKey, requestId: "x", wasAlreadyPresent: false,
                wasAlreadyHandled: false })) };
    },
    async updateRequest() { }
};
const urls = ["http://q.test/a/", "http://q.test/b", "http://q.test/c"];
const left = async (client, queue) => {
    const keys = [];
    for await (const { uniqueKey } of client.left(queue)) {
        keys.push(uniqueKey);
    }
    return keys.join(" ");
};

await store.addAll([...urls, "http://q.test/other"]);
await store.makeSet("q.done");
await store.putIn("q.done", [urls[1]]);

// the names of queues are those that Crawlee opens them by, the ids others

const client = share({
    requestQueue: () => queue,
    requestQueues: () => ({
        getOrCreate: async (name) => ({ id: `${name}-id`, name })
    })
}, store, { set: "%(queue)s" });

await client.requestQueues().getOrCreate("q");

const shared = client.requestQueue("q-id");

await shared.batchAddRequests(urls.map((url) => new Request({ url })));
await shared.batchAddRequests(urls.map((url) => new Request({ url })));
console.log(queued.join(" "));
await shared.updateRequest({ uniqueKey: queued[0], handledAt: "now" });
await client.teardown();
console.log(await left(client, "q"));
console.log(await left(share({}, store, { set: "q" })));
store.close();
END

my @keys = map { "urlstore:http://q.test/$_" } qw(a/ b c);

is(`cd $dir && node set.mjs http://127.0.0.1:$port/two 2>&1`,
    "@keys\n@keys[1, 2]\n@keys[1, 2]\n",
    'with a set: what is new to it, and what of it is not done');
