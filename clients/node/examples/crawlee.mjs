// @ts-check

// A crawler on Crawlee that follows every link and shares what it has seen:
//
//     node crawlee.mjs STORE START [PROXY [SET]]
//
// Run it as often as you like, at the same time or one after the other: a
// page is fetched by one of them.  It begins with what has no mark, which is
// what a killed one has left.  With the name of a set, it shares what that
// crawl has seen, and a crawl with another name begins fresh.

import { CheerioCrawler, Configuration, ProxyConfiguration }
    from "@crawlee/cheerio";
import { Store } from "urlstore";
import { share } from "urlstore/crawlee";

const [address, start, proxy, set] = process.argv.slice(2);
const store = new Store(address, { cache: 100_000 });
const storage = share(Configuration.getStorageClient(), store, { set });

Configuration.useStorageClient(storage);

const crawler = new CheerioCrawler({
    ...(proxy && { proxyConfiguration:
        new ProxyConfiguration({ proxyUrls: [proxy] }) }),

    async requestHandler({ enqueueLinks }) {
        await enqueueLinks({ strategy: "all" });
    }
});

await crawler.addRequests(storage.left());
await crawler.run([start]);
store.close();
