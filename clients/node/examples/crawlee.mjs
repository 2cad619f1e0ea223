// @ts-check

// A crawler on Crawlee that follows every link and shares what it has seen:
//
//     node crawlee.mjs STORE START [PROXY]
//
// The links of a page go to the store in one request; a page is marked when
// they are stored.  A crawler begins with what has no mark, which is what a
// killed one has left.

import { CheerioCrawler, ProxyConfiguration } from "@crawlee/cheerio";
import { Store } from "urlstore";

const [address, start, proxy] = process.argv.slice(2);
const store = new Store(address, { cache: 100_000 });

const crawler = new CheerioCrawler({
    ...(proxy && { proxyConfiguration:
        new ProxyConfiguration({ proxyUrls: [proxy] }) }),

    async requestHandler({ $, request }) {
        const page = request.loadedUrl;
        const links = $("a[href]").toArray()
            .map((a) => $(a).attr("href") ?? "");
        const batch = await store.addAll(links, page);

        await crawler.addRequests(batch.toFetch().map((item) => ({
            url: new URL(links[item.index], page).href,
            userData: { id: item.id }
        })));
        await store.mark("visited", [request.userData.id ?? page]);
    }
});

await store.add(start);

const left = [];
for await (const entry of store.feed(0, { mark: "!visited" })) {
    left.push({ url: String(entry.url), userData: { id: entry.id } });
}

await crawler.run(left);
store.close();
