import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * The main calls:
 *
 *     java -cp DIR Tour http://127.0.0.1:8080
 */
final class Tour {

    private Tour() { }


    private static void show(UrlStore.Item item)
    {
        System.out.println((item.id == null ? "-" : item.id) + "\t"
            + item.status + "\t" + (item.url == null ? item.reason : item.url));
    }


    private static void tour(UrlStore store)
    {
        String page = "http://example.com/shop/list.html";
        List<String> links = List.of("item?id=7", "/about.html",
            "HTTP://WWW.Example.com/about.html#team", "ftp://example.com/");

        // Is this URL new?  It is added if so.
        show(store.add(page));

        // All links of a page, as they stand in it; one answer for each.
        UrlStore.Batch batch = store.addAll(links,
            new UrlStore.Adding().base(page));
        for (UrlStore.Item item : batch.items) {
            show(item);
        }

        // What this caller is to fetch.
        List<String> queue = new ArrayList<>();
        for (UrlStore.Item item : batch.toFetch()) {
            queue.add(item.url);
        }
        System.out.println(queue.size());

        // Is it known?  Adds nothing.
        show(store.seen("http://example.com/shop/./item?id=7"));
        show(store.seen("http://example.com/never"));

        // id -> URL, and the same for many.
        System.out.println(store.url(1));
        for (UrlStore.Found found : store.urls(List.of(0L, 2L, 99L))) {
            System.out.println(found.id + "\t" + found.status + "\t"
                + (found.url == null ? "-" : found.url));
        }

        // A mark says what is done; the feed, what is left.
        store.mark("visited", List.of(0, 2));
        Iterator<UrlStore.Entry> left = store.feed(
            new UrlStore.Feed().mark("!visited"));
        left.forEachRemaining(entry ->
            System.out.println(entry.id + "\t" + entry.url));

        // A refusal carries the problem document.
        try {
            store.url(99);
        } catch (UrlStore.Problem e) {
            System.out.println(e.status + " " + e.document.get("title"));
        }

        // A crawl of its own: what is new to its set, whether stored or not.
        store.makeSet("crawl-7");
        batch = store.addAll(links.subList(0, 2),
            new UrlStore.Adding().base(page).set("crawl-7"));
        for (UrlStore.Item item : batch.items) {
            show(item);
        }
    }


    public static void main(String[] args)
    {
        tour(new UrlStore(args[0], new UrlStore.Options().cache(100000)));
    }
}
