"use strict";

// Crawlee 3: crawlers that share what they have seen, and lose no page.
//
//     Configuration.useStorageClient(
//         share(Configuration.getStorageClient(), store));
//
// The storage client in use keeps queues, data sets and all else.  What is
// added to a queue goes to the store first, in one request; the queue gets
// what is new.  A page is marked in the store when it has been handled.  A
// crawler that is killed leaves pages without the mark, which left() lists.
// With a set, "new" is what is new to it, and the mark is another set.
//
//     page fetched -> links in the store -> links in the queue -> page marked
//
// Requests that the store has answered have KEY and the canonical URL as their
// uniqueKey, so the queue knows two spellings of a URL as one, too.  Requests
// with a body, another method, or a uniqueKey of the caller's own pass.

const KEY = "urlstore:";
const FLUSH_AFTER = 1000;       // ms that a page waits for its mark, at most
const FLUSH_AT = 500;           // ... unless so many wait
const FAILED = 5;               // RequestState.ERROR_HANDLER
const LEFT = 500;               // pages that are looked for at a time


class Shared {
    #store;
    #set;
    #mark;
    #made;                      // a promise: the sets are made
    #handled = [];              // URLs that wait for their mark
    #owed = new Set();          // URLs that are new, and no queue took
    #timer = null;

    constructor(store, { set, mark = done(set) }) {
        this.#store = store;
        this.#set = set;
        this.#mark = mark;
    }

    // Makes the sets of the crawl.  That of what is done does not outlive the
    // other one: pages that are new to a new set are not done.

    begin() {
        this.#made ??= this.#make().catch((e) => {
            this.#made = undefined;
            throw e;
        });

        return this.#made;
    }

    async #make() {
        if (this.#set === undefined) {
            return;
        }

        const made = await this.#store.makeSet(this.#set);

        if (this.#mark === done(this.#set)) {
            if (made) {
                await this.#store.dropSet(this.#mark);
            }

            await this.#store.makeSet(this.#mark);
        }
    }

    // The stored pages without the mark, as requests.

    async *left() {
        let part = [];

        await this.begin();

        for await (const { url } of this.#store.feed(0, this.#set === undefined
            ? { mark: `!${this.#mark}` } : { set: this.#set }))
        {
            if (url !== null) {
                part.push({ url, uniqueKey: KEY + url });
            }

            if (part.length === LEFT) {
                yield* await this.#undone(part);
                part = [];
            }
        }

        yield* await this.#undone(part);
    }

    // Of pages of a set, those that are not done.

    async #undone(pages) {
        if (this.#set === undefined) {
            return pages;
        }

        const { items } = await this.#store.seenAll(
            pages.map(({ url }) => url), null, { set: this.#mark });

        return pages.filter((_, at) => items[at].status !== "seen");
    }

    async add(queue, requests, options) {
        const answer = { processedRequests: [], unprocessedRequests: [] };
        const taken = new Map();        // uniqueKey in the queue -> its request
        const copies = [];

        for (const [request, key] of await this.#judged(requests)) {
            if (key === null) {
                answer.processedRequests.push({ uniqueKey: request.uniqueKey,
                    requestId: request.uniqueKey, wasAlreadyPresent: true,
                    wasAlreadyHandled: true });

            } else if (!taken.has(key)) {
                taken.set(key, request);
                copies.push({ ...request, uniqueKey: key });
            }
        }

        if (copies.length === 0) {
            return answer;
        }

        try {
            const { processedRequests, unprocessedRequests } =
                await queue.batchAddRequests(copies, options);

            for (const done of processedRequests) {
                if (done.wasAlreadyHandled) {
                    this.#done(done.uniqueKey);
                }

                answer.processedRequests.push({ ...done,
                    uniqueKey: taken.get(done.uniqueKey).uniqueKey });
            }

            for (const refused of unprocessedRequests) {
                this.#owed.add(refused.uniqueKey);
                answer.unprocessedRequests.push({ ...refused,
                    uniqueKey: taken.get(refused.uniqueKey).uniqueKey });
            }

            return answer;

        } catch (e) {
            for (const key of taken.keys()) {
                this.#owed.add(key);
            }

            throw e;
        }
    }

    // Each request with its key in the queue, or null.  After a lost answer,
    // what may be new passes: some pages are fetched twice, none is lost.

    async #judged(requests) {
        const asked = requests.filter(plain);
        const keys = new Map(requests.map((r) => [r, r.uniqueKey]));

        await this.begin();

        for (const item of await this.#answers(asked)) {
            const key = KEY + item.url;

            if (item.mine || item.unsure || this.#owed.delete(key)) {
                keys.set(asked[item.index], key);

            } else if (item.status !== "full"
                && item.status !== "unavailable")
            {
                keys.set(asked[item.index], null);
            }
        }

        return keys;
    }

    // All answers, or those before one that was lost.

    async #answers(requests) {
        try {
            const { items } = await this.#store.addAll(
                requests.map(({ url }) => url), null, { set: this.#set });
            return items;

        } catch (e) {
            if (!e.unsure) {
                throw e;
            }

            return e.done;
        }
    }

    async update(queue, request, options) {
        const answer = await queue.updateRequest(request, options);

        if (request.handledAt
            && request.userData?.__crawlee?.state !== FAILED)
        {
            this.#done(request.uniqueKey);
        }

        return answer;
    }

    #done(key) {
        if (this.#mark === "" || !key.startsWith(KEY)) {
            return;
        }

        this.#handled.push(key.slice(KEY.length));

        if (this.#handled.length >= FLUSH_AT) {
            this.flush();

        } else {
            this.#timer ??= setTimeout(() => this.flush(), FLUSH_AFTER)
                .unref();
        }
    }

    // Marks the pages that are done.

    async flush() {
        const urls = this.#handled;

        clearTimeout(this.#timer);
        this.#timer = null;
        this.#handled = [];

        try {
            await this.#store.mark(this.#mark, urls);

        } catch (e) {
            this.#handled.push(...urls);
            process.emitWarning(`pages are not marked: ${e.message}`,
                "UrlStoreWarning");
        }
    }
}


// the mark of pages that are done

function done(set) {
    return set === undefined ? "visited" : `${set}.done`;
}


// whether the URL says all of a request

function plain({ url, uniqueKey, method, payload, constructor }) {
    return (method ?? "GET") === "GET" && !payload
        && uniqueKey === constructor.computeUniqueKey?.({ url });
}


// an object of which some methods are others

function overlaid(object, methods) {
    return new Proxy(object, {
        get(target, name) {
            const value = methods[name] ?? target[name];

            return typeof value === "function" && methods[name] === undefined
                ? value.bind(target) : value;
        }
    });
}


function share(client, store, { set, ...options } = {}) {
    const names = new Map();        // of queues, by their ids
    const all = new Map();          // set -> Shared

    const named = (info) => {
        if (info?.name) {
            names.set(info.id, info.name);
        }

        return info;
    };

    const sharedBy = (queue) => {
        const own = set?.replaceAll("%(queue)s",
            () => names.get(queue) ?? queue);

        if (!all.has(own)) {
            all.set(own, new Shared(store, { set: own, ...options }));
        }

        return all.get(own);
    };

    return overlaid(client, {
        left: (queue = "default") => sharedBy(queue).left(),

        async teardown() {
            for (const shared of all.values()) {
                await shared.flush();
            }

            await client.teardown?.();
        },

        requestQueues(...args) {
            const queues = client.requestQueues(...args);

            return overlaid(queues, {
                getOrCreate: async (name) =>
                    named(await queues.getOrCreate(name))
            });
        },

        requestQueue(id, ...args) {
            const queue = client.requestQueue(id, ...args);
            const shared = sharedBy(id);

            return overlaid(queue, {
                get: async () => named(await queue.get()),

                batchAddRequests: (requests, options) =>
                    shared.add(queue, requests, options),

                async addRequest(request, options) {
                    const { processedRequests: [done] } = await shared.add(
                        queue, [request], options);

                    if (done === undefined) {
                        throw new Error(`${request.url} is not queued`);
                    }

                    return done;
                },

                updateRequest: (request, options) =>
                    shared.update(queue, request, options)
            });
        }
    });
}


exports.share = share;
