// The main calls:
//
//     node tour.mjs http://127.0.0.1:8080

import { Problem, Store } from "urlstore";


function show(item) {
    console.log([item.id ?? "-", item.status, item.url ?? item.reason]
        .join("\t"));
}


async function tour(store) {
    const page = "http://example.com/shop/list.html";
    const links = ["item?id=7", "/about.html",
        "HTTP://WWW.Example.com/about.html#team", "ftp://example.com/"];

    // Is this URL new?  It is added if so.
    show(await store.add(page));

    // All links of a page, as they stand in it; one answer for each.
    const batch = await store.addAll(links, page);
    for (const item of batch) {
        show(item);
    }

    // What this caller is to fetch.
    const queue = batch.toFetch().map((item) => item.url);
    console.log(queue.length);

    // Is it known?  Adds nothing.
    show(await store.seen("http://example.com/shop/./item?id=7"));
    show(await store.seen("http://example.com/never"));

    // id -> URL, and the same for many.
    console.log(await store.url(1));
    for (const found of await store.urls([0, 2, 99])) {
        console.log([found.id, found.status, found.url ?? "-"].join("\t"));
    }

    // A mark says what is done; the feed, what is left.
    await store.mark("visited", [0, 2]);
    for await (const entry of store.feed(0, { mark: "!visited" })) {
        console.log([entry.id, entry.url].join("\t"));
    }

    // A refusal carries the problem document.
    try {
        await store.url(99);
    } catch (e) {
        if (e instanceof Problem) {
            console.log(`${e.status} ${e.document.title}`);
        }
    }

    // A crawl of its own: what is new to its set, whether stored or not.
    await store.makeSet("crawl-7");
    for (const item of await store.addAll(links.slice(0, 2), page,
        { set: "crawl-7" }))
    {
        show(item);
    }
}


const store = new Store(process.argv[2], { cache: 100_000 });

await tour(store);
store.close();
