import type { Store } from "./index";

export interface Left {
    /** The stored pages without the mark, for `crawler.addRequests()`. */
    left(): AsyncGenerator<{ url: string; uniqueKey: string }, void,
        undefined>;
}

export interface ShareOptions {
    /** The mark of pages that are done ("visited"); "": none is set. */
    mark?: string;
}

/**
 * Crawlee's storage client, whose queues take only what is new in the store:
 *
 *     Configuration.useStorageClient(
 *         share(Configuration.getStorageClient(), store));
 */
export function share<Client extends object>(client: Client, store: Store,
    options?: ShareOptions): Client & Left;
