"use strict";

// Does what clients/cases.json says: a job a line in, its results out.
//
//     node test/cases.js < jobs

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const { Batch, NoAnswer, Problem, Store, UrlStoreError } = require("..");


const camel = (name) => name.replace(/_(.)/g, (_, c) => c.toUpperCase());
const snake = (name) => name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());


function plain(value) {
    if (value instanceof Batch) {
        return { ...plain({ ...value }),
            to_fetch: value.toFetch().map((item) => item.id) };
    }

    if (Array.isArray(value)) {
        return value.map(plain);
    }

    if (value !== null && typeof value === "object") {
        return Object.fromEntries(Object.entries(value)
            .map(([k, v]) => [snake(k), plain(v)]));
    }

    return value ?? null;
}


async function list(generator) {
    const all = [];

    for await (const value of generator) {
        all.push(value);
    }

    return all;
}


async function make(store, call) {
    const { do: name, args, ...rest } = call;
    const first = ["path", "name", "url", "urls", "id", "ids", "items", "from"]
        .filter((k) => k in rest).map((k) => rest[k]);
    const options = Object.fromEntries(Object.entries(rest)
        .map(([k, v]) => [camel(k), v]));

    if (["add", "add_all", "add_stream", "seen", "seen_all"].includes(name)) {
        first.push(rest.base ?? null);
    }

    switch (name) {
    case "pause":
        return sleep(rest.seconds * 1000);

    case "add_stream": {
        const progress = [];
        const items = await list(store.addStream(...first, { ...options,
            progress: (p) => progress.push(p) }));
        return { items, progress };
    }

    case "feed":
        return list(store.feed(...first, options));

    case "get":
        return store.get(...first, args);

    default:
        return store[camel(name)](...first, options);
    }
}


function fault(e) {
    if (!(e instanceof UrlStoreError)) {
        throw e;
    }

    return { error: {
        tries: e.tries, done: plain(e.done), unsure: e.unsure,
        text: e.message,
        ...(e instanceof Problem && { kind: "problem", status: e.status,
            document: e.document, retry_after: e.retryAfter }),
        ...(e instanceof NoAnswer && { kind: "no-answer" })
    } };
}


async function main() {
    for await (const line of readline.createInterface(process.stdin)) {
        const job = JSON.parse(line);
        const store = new Store(job.address, job.options);
        const start = performance.now();
        const results = [];

        for (const call of job.calls) {
            try {
                results.push(plain(await make(store, call)));

            } catch (e) {
                results.push(fault(e));
            }
        }

        store.close();
        console.log(JSON.stringify({ name: job.name, results,
            seconds: (performance.now() - start) / 1000 }));
    }
}


main();
