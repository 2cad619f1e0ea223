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


class Shared {
    #store;
    #mark;
    #handled = [];              // URLs that wait for their mark
    #owed = new Set();          // URLs that are new, and no queue took
    #timer = null;

    constructor(store, mark) {
        this.#store = store;
        this.#mark = mark;
    }

    // The stored pages without the mark, as requests.

    async *left() {
        for await (const { url } of this.#store.feed(0,
            { mark: `!${this.#mark}` }))
        {
            if (url !== null) {
                yield { url, uniqueKey: KEY + url };
            }
        }
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

            answer.unprocessedRequests = unprocessedRequests;
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

        try {
            for (const item of await this.#store.addAll(
                asked.map(({ url }) => url)))
            {
                const key = KEY + item.url;

                if (item.mine || item.unsure || this.#owed.delete(key)) {
                    keys.set(asked[item.index], key);

                } else if (item.status !== "full"
                    && item.status !== "unavailable")
                {
                    keys.set(asked[item.index], null);
                }
            }

        } catch (e) {
            if (!e.unsure) {
                throw e;
            }
        }

        return keys;
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


function share(client, store, { mark = "visited" } = {}) {
    const shared = new Shared(store, mark);

    return overlaid(client, {
        left: () => shared.left(),

        async teardown() {
            await shared.flush();
            await client.teardown?.();
        },

        requestQueue(...args) {
            const queue = client.requestQueue(...args);

            return overlaid(queue, {
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
