import type { Store } from "./index";

export interface Left {
    /**
     * The stored pages without the mark, for `crawler.addRequests()`; of the
     * queue's set, where sets have names of queues ("default").
     */
    left(queue?: string): AsyncGenerator<{ url: string; uniqueKey: string },
        void, undefined>;
}

export interface ShareOptions {
    /**
     * The name of a set: what this crawl has seen, instead of all crawls;
     * %(queue)s in it is the name of the queue.  It is made if it is not
     * there.
     */
    set?: string;
    /**
     * The mark of pages that are done ("visited", with a set another set: its
     * name and ".done"); "": none is set.
     */
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
