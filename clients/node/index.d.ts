/// <reference types="node" />

/** A duration: "90s", "15m", "12h", "30d", "1y", or seconds. */
export type Duration = string | number;

/** An id, or a URL. */
export type Ref = number | string;

/** A list, a generator or a stream. */
export type Source<T> = Iterable<T> | AsyncIterable<T>;

export interface Options {
    /** Seconds that a connection may be silent (30). */
    timeout?: number;
    /**
     * A request is tried again for this many seconds (50).  The service
     * remembers an Idempotency-Key for 5 minutes: stay below that.
     */
    patience?: number;
    /** Items in a request, at most 10,000 (1,000). */
    batch?: number;
    /** Bytes in a request, before compression (1 MiB). */
    body?: number;
    /** Compresses bodies of 1 KiB and more (false). */
    gzip?: boolean;
    /**
     * URLs whose id and canonical form are kept here (0): a link found among
     * them is answered as "seen" without a request.  Entries leave when an
     * id is deleted through this object or the epoch changes; a delete by
     * another client is not noticed.
     */
    cache?: number;
    /** Sent with each request. */
    headers?: Record<string, string>;
    /** For https: options of tls.connect(). */
    tls?: Record<string, unknown>;
}

export interface LookUp {
    /** A URL last claimed longer ago is claimed now, and `due`. */
    older?: Duration;
    /**
     * The name of a set: a URL that is not in it is `new`, whether the store
     * has it or not; add() puts it in.
     */
    set?: string;
    /** Gives the time of the last claim. */
    times?: boolean;
}

export interface Adding extends LookUp {
    /** Leaves out all answers but `new` and `due`. */
    onlyNew?: boolean;
    /** Says for each whether it is the first URL of its site. */
    sites?: boolean;
}

export interface Progress {
    done: number;
    /** Length of the input, or null where it has none. */
    total: number | null;
    new: number;
    seen: number;
    errors: number;
    seconds: number;
}

export interface Feed {
    /** Entries in a request (1,000). */
    limit?: number;
    site?: string;
    prefix?: string;
    /** Only URLs with this mark, or without it ("!visited"). */
    mark?: string;
    /** The same of a set. */
    set?: string;
    older?: Duration;
    times?: boolean;
    deleted?: boolean;
    newSites?: boolean;
    /** At the end, asks again every so many seconds, for ever. */
    follow?: number;
}

export type Status = "new" | "due" | "seen" | "unseen" | "invalid"
    | "rejected" | "refused" | "full" | "unavailable";

export class Item {
    /** Its position in the input, from 0. */
    readonly index: number;
    readonly id: number | null;
    readonly status: Status;
    /** The canonical URL, or null where it was refused. */
    readonly url: string | null;
    readonly reason: string | null;
    readonly newSite: boolean | null;
    readonly time: number | null;
    /** With `set`: the status without it. */
    readonly stored: "new" | "seen" | "unseen" | null;
    /**
     * True if the status is "seen" or "unavailable", and an earlier try got
     * no answer or a shard did not answer: this call may have added the URL
     * itself, claimed it with `older`, or put it into the set.
     */
    readonly unsure: boolean;
    /** Whether this call added or claimed the URL: fetch it. */
    get mine(): boolean;
}

/** The items of a call, in the order of its input, and their counts. */
export class Batch implements Iterable<Item> {
    readonly items: Item[];
    readonly new: number;
    readonly due: number;
    readonly seen: number;
    readonly unseen: number;
    readonly errors: number;
    /** Number of ids given when the call began; null at a router. */
    readonly nextId: number | null;
    /**
     * Of the last answer; ids of another epoch are void.  Null at a router.
     */
    readonly epoch: number | null;
    /** Requests sent, retries included. */
    readonly tries: number;
    /** Items that are this caller's to fetch, and those that may be. */
    toFetch(): Item[];
    [Symbol.iterator](): Iterator<Item>;
}

export interface Found {
    id: number;
    status: "ok" | "unknown" | "deleted";
    url: string | null;
    time: number | null;
}

export interface Marked {
    index: number;
    id: number | null;
    status: string;
    url: string | null;
    reason: string | null;
    /**
     * True if the status is "was" or "unavailable", and this call may have
     * put the item into the set itself.
     */
    unsure: boolean;
}

export interface Entry {
    id: number;
    /** Null where the id is deleted. */
    url: string | null;
    time: number | null;
}

/** A request failed for good. */
export class UrlStoreError extends Error {
    /** How often it was sent. */
    tries: number;
    /**
     * True if the service may have applied a part of it: what is "seen" when
     * it is asked again may be new.
     */
    unsure: boolean;
    /** The items that earlier requests of this call answered. */
    done: Item[];
}

/**
 * No whole answer came: refused, cut off, timed out, or not readable.  The
 * service may have applied the request.
 */
export class NoAnswer extends UrlStoreError {
}

/** The service refused the request. */
export class Problem extends UrlStoreError {
    readonly status: number;
    /** The problem document (RFC 9457); empty if there was none. */
    readonly document: {
        type?: string; title?: string; status?: number; detail?: string;
        processed?: number; [member: string]: unknown;
    };
    /** Seconds that the service asked to wait, or null. */
    readonly retryAfter: number | null;
}

/** A store at an address such as http://127.0.0.1:8080/urls. */
export class Store {
    constructor(address: string, options?: Options);

    /** Closes the connections. */
    close(): void;

    /** Is this URL new?  It is added if so. */
    add(url: string, base?: string | null,
        options?: Omit<Adding, "onlyNew">): Promise<Item>;

    /**
     * Adds what is new; one answer for each URL, in their order.  With the
     * URL of a page as base, links are given as they stand in it.
     */
    addAll(urls: Source<string>, base?: string | null,
        options?: Adding): Promise<Batch>;

    /** The same for inputs of any length. */
    addStream(urls: Source<string>, base?: string | null,
        options?: Adding & { progress?: (progress: Progress) => void }):
        AsyncGenerator<Item, void, undefined>;

    /** Is it known?  Adds nothing, claims nothing. */
    seen(url: string, base?: string | null, options?: LookUp): Promise<Item>;

    /** The same for many. */
    seenAll(urls: Source<string>, base?: string | null,
        options?: LookUp): Promise<Batch>;

    /** The URL of an id.  Problem 404: not given yet; 410: deleted. */
    url(id: number): Promise<string>;

    /** The URLs of many ids, in their order. */
    urls(ids: Source<number>, options?: { times?: boolean }):
        Promise<Found[]>;

    /** Forgets the URL of an id.  Empties the cache of this object. */
    delete(id: number): Promise<void>;

    /**
     * Makes a set, unless it is there.  Whether this call made it, or may
     * have (a lost try).
     */
    makeSet(name: string): Promise<boolean>;

    /** Drops a set, if it is there.  Its URLs stay in the store. */
    dropSet(name: string): Promise<void>;

    /**
     * Puts into a set what the store has: `in` is answered to one caller of
     * all, the others get `was`.
     */
    putIn(name: string, items: Source<Ref>): Promise<Marked[]>;

    /** Takes out of a set: `out`, or `unseen`. */
    takeOut(name: string, items: Source<Ref>): Promise<Marked[]>;

    mark(name: string, items: Source<Ref>): Promise<Marked[]>;

    unmark(name: string, items: Source<Ref>): Promise<Marked[]>;

    /** Claims now, or at a time; `clear` makes them due at once. */
    claim(items: Source<Ref>, options?: {
        at?: number | string | Date; clear?: boolean }): Promise<Marked[]>;

    /** All URLs from an id on, in the order of ids. */
    feed(from?: number, options?: Feed):
        AsyncGenerator<Entry, void, undefined>;

    /** Any other GET that answers JSON: get("/normalize", { url }). */
    get(path: string, args?: Record<string, string>):
        Promise<Record<string, unknown>>;

    /** The state of the service; asked once. */
    health(options?: { write?: boolean }): Promise<Record<string, unknown>>;
}
