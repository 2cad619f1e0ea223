"use strict";

// Client of a URL store: is this URL new or seen, and what is its id?
//
//     const { Store } = require("urlstore");
//
//     const store = new Store("http://127.0.0.1:8080");
//     const batch = await store.addAll(links, page);
//
// index.d.ts describes the calls.  The rules of retrying are those of all
// clients:
//
// - A request is sent again when no whole answer came, on the codes in
//   RETRIED and on any refusal that brings Retry-After.
// - It is sent again with the same bytes and the same Idempotency-Key.
// - The wait is what Retry-After says, plus a random part of a backoff that
//   doubles from BACKOFF to BACKOFF_MAX seconds.
// - A wait that would end later than `patience` seconds after the first try
//   is not begun: the call throws what the last try met.

const crypto = require("node:crypto");
const http = require("node:http");
const https = require("node:https");
const { setTimeout: sleep } = require("node:timers/promises");
const zlib = require("node:zlib");

const RETRIED = new Set([408, 425, 429, 500, 502, 503, 504]);

// without "processed", these can come after a change; 503 and 429 cannot
const UNKNOWN = new Set([408, 500, 502, 504]);
const BACKOFF = 0.1;
const BACKOFF_MAX = 5;
const GZIP_FROM = 1024;

const JSON_TYPE = "application/json";
const NDJSON_TYPE = "application/x-ndjson";


class UrlStoreError extends Error {
    constructor(text) {
        super(text);
        this.name = new.target.name;
        this.tries = 0;
        this.done = [];
        this.unsure = false;
    }
}


class NoAnswer extends UrlStoreError {
}


class Problem extends UrlStoreError {
    constructor(status, document, retryAfter, where) {
        const other = Object.keys(document).length === 0
            && (status === 404 || status === 405);

        super([where, `${status} ${document.title ?? ""}`.trim(), other
            ? "no urlstore answers at this address" : document.detail]
            .filter(Boolean).join(": "));
        this.status = status;
        this.document = document;
        this.retryAfter = retryAfter;
    }
}


class Item {
    constructor(index, answer) {
        this.index = index;
        this.id = answer.id ?? null;
        this.status = answer.status;
        this.url = answer.url ?? null;
        this.reason = answer.reason ?? null;
        this.newSite = answer.new_site ?? null;
        this.time = answer.time ?? null;
        this.stored = answer.stored ?? null;
        this.unsure = false;
    }

    get mine() {
        return this.status === "new" || this.status === "due";
    }
}


class Batch {
    constructor() {
        this.items = [];
        this.new = 0;
        this.due = 0;
        this.seen = 0;
        this.unseen = 0;
        this.errors = 0;
        this.nextId = null;
        this.epoch = null;
        this.tries = 0;
    }

    toFetch() {
        return this.items.filter((item) => item.mine || item.unsure);
    }

    [Symbol.iterator]() {
        return this.items[Symbol.iterator]();
    }

    join(part) {
        this.items.push(...part.items);
        this.new += part.new;
        this.due += part.due ?? 0;
        this.seen += part.seen;
        this.unseen += part.unseen;
        this.errors += part.errors;
        this.nextId ??= part.nextId;
        this.epoch = part.epoch ?? this.epoch;
        this.tries += part.tries;
    }
}


// A bounded memory of URLs that the store is known to have; the least
// recently used one leaves.  The key of a link is what decides how the
// service resolves it: an absolute http(s) link does not depend on its base;
// one that begins with one slash depends on the base's scheme and host; any
// other on all of it.

class Cache {
    constructor(size) {
        this.size = size;
        this.known = new Map();
    }

    static key(url, base) {
        if (base === null || /^https?:\/\//i.test(url)) {
            return url;
        }

        if (/^\/(?![/\\\t\n\r])/.test(url)) {
            const origin = /^https?:\/\/[^/\\?#\s]+(?=[/\\?#]|$)/i.exec(base);

            if (origin !== null) {
                return origin[0] + url;
            }
        }

        return `${base.length} ${base}${url}`;
    }

    get(url, base) {
        if (this.size === 0) {
            return undefined;
        }

        const key = Cache.key(url, base);
        const known = this.known.get(key);

        if (known !== undefined) {
            this.known.delete(key);
            this.known.set(key, known);
        }

        return known;
    }

    put(url, base, known) {
        if (this.size === 0) {
            return;
        }

        const key = Cache.key(url, base);

        this.known.delete(key);
        this.known.set(key, known);

        if (this.known.size > this.size) {
            this.known.delete(this.known.keys().next().value);
        }
    }
}


class Store {
    #address;
    #options;
    #headers;
    #agent;
    #cache;
    #silent = false;        // and a warning has said so
    #shards = new Map();    // of each { epoch, nextId }; see shardsOf()

    constructor(address, options = {}) {
        const o = { timeout: 30, patience: 50, batch: 1000, body: 1 << 20,
            gzip: false, cache: 0, headers: {}, ...options };
        const url = new URL(address);

        if (url.protocol !== "http:" && url.protocol !== "https:") {
            throw new RangeError(`address ${address}: an http or https URL `
                + "is needed");
        }

        if (!(o.batch >= 1 && o.batch <= 10000)) {
            throw new RangeError(`batch ${o.batch}: 1 to 10000 items are `
                + "allowed");
        }

        this.#headers = { "User-Agent": "urlstore-node/1.0" };

        if (url.username !== "") {
            const user = `${decodeURIComponent(url.username)}:`
                + decodeURIComponent(url.password);
            this.#headers.Authorization = "Basic "
                + Buffer.from(user).toString("base64");
        }

        Object.assign(this.#headers, o.headers);
        url.username = url.password = "";
        this.#address = url.origin + url.pathname.replace(/\/+$/, "");
        this.#options = o;
        this.#cache = new Cache(o.cache);
        this.#agent = new (url.protocol === "https:" ? https : http)
            .Agent({ keepAlive: true, ...o.tls });
    }

    close() {
        this.#agent.destroy();
    }

    // adding and looking up

    async add(url, base = null, options = {}) {
        return (await this.addAll([url], base, options)).items[0];
    }

    async addAll(urls, base = null, options = {}) {
        return gather(this.#lookUp("/add", urls, base, options));
    }

    async *addStream(urls, base = null, options = {}) {
        const { progress, ...rest } = options;
        const start = Date.now();
        const sum = new Batch();

        for await (const part of this.#lookUp("/add", urls, base, rest)) {
            sum.join({ ...part, items: [] });
            progress?.({
                done: sum.new + sum.due + sum.seen + sum.unseen + sum.errors,
                total: urls.length ?? urls.size ?? null,
                new: sum.new + sum.due, seen: sum.seen, errors: sum.errors,
                seconds: (Date.now() - start) / 1000
            });
            yield* part.items;
        }
    }

    async seen(url, base = null, options = {}) {
        return (await this.seenAll([url], base, options)).items[0];
    }

    async seenAll(urls, base = null, { older, set, times } = {}) {
        return gather(this.#lookUp("/seen", urls, base,
            { older, set, times }));
    }

    // by id

    async url(id) {
        const { answer } = await this.#exchange("GET", `/url/${id}`, {}, null,
            (reply) => parsed(reply).url);
        return answer;
    }

    async urls(ids, { times } = {}) {
        const found = [];

        for await (const part of this.#chunks(ids)) {
            const payload = `{"ids":[${part.map(encoded).join()}]}`;
            found.push(...await this.#results("/url", { times: flag(times) },
                payload, part.length, (r) => ({ id: r.id, status: r.status,
                    url: r.url ?? null, time: r.time ?? null })));
        }

        return found;
    }

    async delete(id) {
        this.#cache.known.clear();

        try {
            await this.#exchange("DELETE", `/url/${id}`, {}, null, () => null);

        } catch (e) {
            if (!(e instanceof Problem && e.status === 410)) {
                throw e;
            }
        }
    }

    // sets, marks and claims; an item is an id (number) or a URL (string)

    async makeSet(name) {
        const { answer, lost } = await this.#exchange("PUT",
            below("/set", name), {}, null, (reply) => reply.status === 201);
        return answer || lost;
    }

    async dropSet(name) {
        try {
            await this.#exchange("DELETE", below("/set", name), {}, null,
                () => null);

        } catch (e) {
            if (!(e instanceof Problem && e.status === 404
                && e.document.reason === "set"))
            {
                throw e;
            }
        }
    }

    async putIn(name, items) {
        return this.#mark(below("/set", name), items, {});
    }

    async takeOut(name, items) {
        return this.#mark(below("/set", name), items, { remove: "1" });
    }

    async mark(name, items) {
        return this.#mark(below("/mark", name), items, {});
    }

    async unmark(name, items) {
        return this.#mark(below("/mark", name), items, { clear: "1" });
    }

    async claim(items, { at, clear } = {}) {
        return this.#mark("/claim", items, {
            at: at instanceof Date ? String(Math.trunc(at.getTime() / 1000))
                : at === undefined ? undefined : String(at),
            clear: flag(clear)
        });
    }

    async #mark(path, items, args) {
        const marked = [];

        for await (const part of this.#chunks(items)) {
            const from = marked.length;
            marked.push(...await this.#results(path, args,
                `[${part.map(encoded).join()}]`, part.length,
                (r, at, lost) => ({
                    index: from + at, id: r.id, status: r.status,
                    url: r.url ?? null, reason: r.reason ?? null,
                    unsure: r.status === "was" && lost
                        || r.status === "unavailable" && (lost
                            || String(r.reason).startsWith("unknown:")) })));
        }

        return marked;
    }

    async #results(path, args, payload, count, each) {
        const { answer, lost } = await this.#exchange("POST", path, args,
            payload, (reply) => {
                const { results } = parsed(reply);
                expect(results, count);
                return results;
            });
        return answer.map((result, at) => each(result, at, lost));
    }

    // the feed

    async *feed(from = 0, options = {}) {
        const o = { limit: 1000, ...options };
        const args = {
            limit: String(o.limit), site: o.site, prefix: o.prefix,
            mark: o.mark, set: o.set, older: duration(o.older),
            times: flag(o.times), deleted: flag(o.deleted),
            new_sites: flag(o.newSites)
        };

        let place = { from: String(from) };

        for ( ;; ) {
            const { answer } = await this.#exchange("GET", "/urls",
                { ...place, ...args }, null, feedPart, NDJSON_TYPE);

            yield* answer.entries;

            if (!(answer.more ?? answer.place.from !== place.from)) {
                if (o.follow === undefined) {
                    return;
                }

                await sleep(o.follow * 1000);
            }

            place = answer.place;
        }
    }

    // all else

    async get(path, args = {}) {
        const { answer } = await this.#exchange("GET", path, args, null,
            parsed);
        return answer;
    }

    async health({ write } = {}) {
        try {
            const { answer } = await this.#exchange("GET", "/health",
                { write: flag(write) }, null, parsed, JSON_TYPE, 0);
            return answer;

        } catch (e) {
            if (e instanceof Problem && e.status === 503
                && Object.keys(e.document).length > 0)
            {
                return e.document;
            }

            throw e;
        }
    }

    // one Batch for each request that the URLs take

    async *#lookUp(path, urls, base, { onlyNew, older, set, sites, times }) {
        const args = { only: onlyNew ? "new" : undefined,
            older: duration(older), set, sites: flag(sites),
            times: flag(times) };
        let index = 0;

        for await (const part of this.#chunks(urls,
            base === null ? 0 : size(base)))
        {
            yield await this.#part(path, part, index, base, args);
            index += part.length;
        }
    }

    async #part(path, urls, index, base, args) {
        const batch = new Batch();
        // what is in the store may be due, or new to the set
        const cached = args.older === undefined && args.set === undefined
            && args.times === undefined;
        const asked = [];

        const answered = (item) => {
            if (args.only === undefined) {
                batch.items.push(item);
            }
        };

        for (const [at, url] of urls.entries()) {
            const known = cached ? this.#cache.get(url, base) : undefined;

            if (known !== undefined) {
                batch.seen++;
                answered(new Item(index + at, { ...known, status: "seen",
                    new_site: args.sites === undefined ? null : false }));

            } else if (size(url) > this.#options.body) {
                batch.errors++;
                answered(new Item(index + at, { status: "invalid",
                    reason: "length" }));

            } else {
                asked.push(at);
            }
        }

        try {
            if (asked.length > 0) {
                await this.#ask(path, urls, asked, index, base, args, batch);
            }

        } catch (e) {
            if (e instanceof UrlStoreError) {
                e.done = inOrder(batch.items);
            }

            throw e;
        }

        inOrder(batch.items);
        return batch;
    }

    // Adds to the batch what the service answers for urls[asked].  Asks again
    // for the items whose outcome is unknown: what is `seen` then may be of
    // the first request.  `lostAt`: it may be of a whole, of which this is a
    // half, whose try then was lost.

    async #ask(path, urls, asked, index, base, args, batch, lostAt) {
        // with `older` or `set`, no id shows what a lost try changed
        const before = args.older === undefined && args.set === undefined
            ? lostAt ?? new Map(this.#shards) : new Map();
        const adds = path === "/add";
        const onlyNew = args.only !== undefined;
        const first = performance.now();

        for (let rounds = 0; ; rounds++) {
            const left = this.#options.patience
                - (performance.now() - first) / 1000;
            let reply;

            try {
                reply = await this.#asked(path, urls, asked, base, args, left);

            } catch (e) {
                if (!(e instanceof UrlStoreError)) {
                    throw e;
                }

                if (rounds > 0) {
                    return;     // the items are in the batch, and unsure
                }

                if (e.status !== 413 || e.document.processed
                    || asked.length === 1)
                {
                    throw e;
                }

                const half = asked.length >> 1;

                for (const part of [asked.slice(0, half), asked.slice(half)]) {
                    await this.#ask(path, urls, part, index, base, args,
                        batch, e.unsure ? before : lostAt);
                }

                return;
            }

            const { answer, tries } = reply;
            const lost = adds
                && (reply.lost || rounds > 0 || lostAt !== undefined);
            const found = shardsOf(answer);
            const unknown = [];

            this.#learn(found);

            if (rounds > 0) {
                const again = new Set(asked.map((at) => index + at));

                batch.items = batch.items.filter((i) => !again.has(i.index));
                batch.errors -= again.size;
            }

            const items = answer.results.map((result, n) => {
                const at = asked[result.index ?? n];
                const item = new Item(index + at, result);

                if (item.status === "seen") {
                    item.unsure = lost && !known(item.id, before, found);

                } else if (item.status === "unavailable" && adds) {
                    item.unsure = lost
                        || String(item.reason).startsWith("unknown:");

                    if (item.unsure) {
                        item.url = resolved(urls[at], base);
                        unknown.push(at);
                    }
                }

                if (item.id !== null && item.url !== null
                    && (item.status === "new" || item.status === "seen"))
                {
                    this.#cache.put(urls[at], base,
                        { id: item.id, url: item.url });
                }

                return item;
            });

            batch.join({ ...answer, tries, nextId: answer.next_id,
                items: rounds === 0 || !onlyNew ? items
                    : items.filter((item) => item.mine || item.unsure) });

            const wait = backoff(rounds);

            if (unknown.length === 0 || (performance.now() - first) / 1000
                + wait > this.#options.patience)
            {
                return;
            }

            await sleep(wait * 1000);
            asked = unknown;
            args = { ...args, only: undefined };    // it omits what is unsure
        }
    }

    #asked(path, urls, asked, base, args, patience) {
        const payload = JSON.stringify({
            urls: asked.map((at) => wellFormed(urls[at])),
            ...(base !== null && { base: wellFormed(base) })
        });

        return this.#exchange("POST", path, args, payload, (r) => {
            const answer = parsed(r);

            if (args.only === undefined) {
                expect(answer.results, asked.length);
            }

            return answer;
        }, JSON_TYPE, patience);
    }

    // Remembers how many ids were given, at least.  The cache does not outlive
    // an epoch of any shard.

    #learn(found) {
        for (const [number, { epoch, nextId }] of found) {
            const before = this.#shards.get(number);
            const same = before?.epoch === epoch;

            if (before !== undefined && !same) {
                this.#cache.known.clear();
            }

            this.#shards.set(number, { epoch,
                nextId: same ? Math.max(nextId, before.nextId) : nextId });
        }
    }

    // parts of what may be a list, a generator or a stream

    async *#chunks(values, used = 0) {
        let part = [];
        let bytes = used + 64;

        for await (const value of values) {
            const need = size(value) + 1;

            if (part.length > 0 && (part.length === this.#options.batch
                || bytes + need > this.#options.body))
            {
                yield part;
                part = [];
                bytes = used + 64;
            }

            part.push(value);
            bytes += need;
        }

        if (part.length > 0) {
            yield part;
        }
    }

    // One request, as often as it takes.  `read` throws what makes an answer
    // not whole.  lost: a lost try may have changed the store before, and the
    // service does not repeat what it answered then.

    async #exchange(method, path, args, payload, read, accept = JSON_TYPE,
        patience = this.#options.patience)
    {
        const send = this.#request(method, path, args, payload, accept);
        const where = `${method} ${this.#address}${path}`;
        const first = performance.now();
        let tries = 0, pauses = 0, lost = 0;

        for ( ;; ) {
            let fault, after = null;
            const got = await this.#send(send);

            tries++;
            this.#silent &&= got.fault !== undefined;

            if (got.fault !== undefined) {
                fault = new NoAnswer(`${where}: ${got.fault}`);
                lost += got.sent;

                if (got.stale && tries === pauses + 1) {
                    continue;
                }

            } else if (got.status >= 200 && got.status < 300) {
                try {
                    return { answer: read(got), tries,
                        lost: lost > 0 && !repeated(got) };

                } catch (e) {
                    fault = new NoAnswer(`${where}: the answer is `
                        + `not whole: ${e.message}`);
                    lost++;
                }

            } else {
                after = retryAfter(got.headers["retry-after"]);
                fault = new Problem(got.status, problem(got), after, where);
                lost += applied(fault);

                if (!RETRIED.has(got.status) && after === null) {
                    patience = 0;
                }
            }

            const wait = (after ?? 0) + backoff(pauses++);

            if ((performance.now() - first) / 1000 + wait > patience) {
                fault.tries = tries;
                fault.unsure = lost > 0;
                throw fault;
            }

            if (got.fault !== undefined && !this.#silent) {
                this.#silent = true;
                process.emitWarning(`${fault.message}; it is tried again for `
                    + `${Number(patience.toFixed(1))} s`, "UrlStoreWarning");
            }

            await sleep(wait * 1000);
        }
    }

    #request(method, path, args, payload, accept) {
        const query = new URLSearchParams(
            Object.entries(args).filter(([, v]) => v !== undefined));
        const headers = { ...this.#headers, Accept: accept };
        let body = null;

        if (payload !== null) {
            body = Buffer.from(payload);
            headers["Content-Type"] = JSON_TYPE;

            if (this.#options.gzip && body.length >= GZIP_FROM) {
                body = zlib.gzipSync(body, { level: 1 });
                headers["Content-Encoding"] = "gzip";
            }

            headers["Content-Length"] = body.length;
        }

        if (method === "POST" && /^\/(add|claim|(mark|set)\/.*)$/.test(path)) {
            headers["Idempotency-Key"] = `"${crypto.randomUUID()}"`;
        }

        return { method, headers, body, url: this.#address + path
            + (String(query) === "" ? "" : `?${query}`) };
    }

    // Sends a request once: { status, headers, body }, or { fault, sent,
    // stale } if no whole answer came.

    #send({ method, headers, body, url }) {
        return new Promise((resolve) => {
            const client = url.startsWith("https:") ? https : http;
            const request = client.request(url, { method, headers,
                agent: this.#agent });
            let connected = false, begun = false;

            const lost = (e) => resolve({ fault: e.message, sent: connected,
                stale: request.reusedSocket && !begun
                    && e.code === "ECONNRESET" });

            request.setTimeout(this.#options.timeout * 1000, () =>
                request.destroy(new Error("timeout")));

            request.on("socket", (socket) => {
                connected = !socket.connecting;

                if (!connected) {
                    socket.once("connect", () => connected = true);
                }
            });

            request.on("error", lost);

            request.on("response", (response) => {
                const parts = [];

                begun = true;
                response.on("data", (part) => parts.push(part));
                response.on("error", lost);
                response.on("end", () => resolve({
                    status: response.statusCode, headers: response.headers,
                    body: Buffer.concat(parts).toString() }));
            });

            request.end(body);
        });
    }
}


// --- parts of requests and answers ----------------------------------------


async function gather(parts) {
    const batch = new Batch();

    try {
        for await (const part of parts) {
            batch.join(part);
        }

    } catch (e) {
        if (e instanceof UrlStoreError) {
            e.done.unshift(...batch.items);
        }

        throw e;
    }

    return batch;
}


function inOrder(items) {
    return items.sort((a, b) => a.index - b.index);
}


// the shard of an id; a store alone is shard 0

function shardOf(id) {
    return Math.floor(id / 2 ** 40);
}


// what an answer says of its shards: epoch and number of ids, at least

function shardsOf(answer) {
    const found = new Map();
    const ids = answer.results.map((r) => r.id ?? null)
        .filter((id) => id !== null);

    if (answer.next_ids !== undefined) {        // of a router
        for (const [number, nextId] of Object.entries(answer.next_ids)) {
            found.set(Number(number), { nextId: nextId ?? 0,
                epoch: answer.epochs[number] });
        }

    } else {
        const nextId = answer.next_id ?? Math.max(0, ...ids);

        found.set(shardOf(nextId), { nextId, epoch: answer.epoch ?? null });
    }

    for (const id of ids) {
        const shard = found.get(shardOf(id));

        if (shard !== undefined) {
            shard.nextId = Math.max(shard.nextId, id + 1);
        }
    }

    return found;
}


// a URL to fetch, where the service has named none

function resolved(link, base) {
    try {
        return new URL(link, base ?? undefined).href;

    } catch {
        return link;
    }
}


// whether an id was given before; ids of another epoch say nothing, and a
// filter has none

function known(id, before, found) {
    const shard = id === null ? undefined : before.get(shardOf(id));

    return shard !== undefined && id < shard.nextId
        && found.get(shardOf(id))?.epoch === shard.epoch;
}


// whether what was new to an earlier try is so again (Idempotency-Key)

function repeated(reply) {
    return reply.headers["idempotency-status"] === "repeated";
}


// the path of a set or a mark

function below(path, name) {
    return `${path}/${encodeURIComponent(name)}`;
}


function flag(value) {
    return value ? "1" : undefined;
}


// as the service reads it: "30d", or a number of seconds

function duration(value) {
    return typeof value === "number" ? `${Math.trunc(value)}s` : value;
}


// A lone surrogate, which no URL has, becomes U+FFFD as in browsers; the
// service refuses a body with one.

function wellFormed(text) {
    return /\p{Surrogate}/u.test(text) ? Buffer.from(text).toString() : text;
}


function encoded(value) {
    return JSON.stringify(typeof value === "string" ? wellFormed(value)
        : value);
}


function size(value) {
    return Buffer.byteLength(encoded(value));
}


function parsed(reply) {
    const answer = JSON.parse(reply.body);

    if (answer === null || typeof answer !== "object") {
        throw new TypeError("no JSON object");
    }

    return answer;
}


function expect(results, count) {
    if (!Array.isArray(results) || results.length !== count) {
        throw new RangeError(`${results?.length} results for ${count} items`);
    }
}


function feedPart(reply) {
    const entries = [];

    for (const line of reply.body.split("\n").filter(Boolean)) {
        const entry = JSON.parse(line);

        if (entry.next !== undefined) {
            return { entries, place: { from: String(entry.next) } };
        }

        if (entry.cursor !== undefined) {       // of a router
            if (entry.unavailable && entries.length === 0) {
                throw new RangeError("shards that do not answer: "
                    + entry.unavailable);
            }

            return { entries, place: { cursor: entry.cursor },
                more: entry.more };
        }

        entries.push({ id: entry.id, url: entry.url ?? null,
            time: entry.time ?? null });
    }

    throw new RangeError("the last line is missing");
}


// the problem document of a refusal; {} if there is none

function problem(reply) {
    if (!/json/.test(reply.headers["content-type"] ?? "")) {
        return {};
    }

    try {
        return parsed(reply);

    } catch {
        return {};
    }
}


// whether a refused request may have changed the store: the service says that
// it did, or did not say, as a proxy that waits in vain

function applied({ status, document }) {
    return document.processed === undefined ? UNKNOWN.has(status)
        : document.processed > 0;
}


// seconds, of a number of seconds or an HTTP date

function retryAfter(value) {
    if (value === undefined) {
        return null;
    }

    if (/^\d+$/.test(value)) {
        return Number(value);
    }

    const date = Date.parse(value);

    return Number.isNaN(date) ? null : Math.max(0, (date - Date.now()) / 1000);
}


// seconds before the next try, after so many pauses

function backoff(pauses) {
    return (0.5 + Math.random() / 2)
        * Math.min(BACKOFF_MAX, BACKOFF * 2 ** Math.min(pauses, 20));
}


exports.Store = Store;
exports.Batch = Batch;
exports.Item = Item;
exports.UrlStoreError = UrlStoreError;
exports.NoAnswer = NoAnswer;
exports.Problem = Problem;
