import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.archive.checkpointing.Checkpoint;
import org.archive.crawler.datamodel.UriUniqFilter.CrawlUriReceiver;
import org.archive.crawler.event.CrawlURIDispositionEvent;
import org.archive.crawler.event.CrawlURIDispositionEvent.Disposition;
import org.archive.crawler.framework.Frontier;
import org.archive.modules.CrawlURI;
import org.archive.net.UURI;

/**
 * Calls of the filter for Heritrix, one case after the other, each with a
 * store at ADDRESS/CASE; prints what the frontier received.
 *
 *     java Calls ADDRESS DIRECTORY
 */
public final class Calls implements CrawlUriReceiver, Frontier {

    private final UrlStoreUriUniqFilter filter = new UrlStoreUriUniqFilter();
    private final List<String> received = new ArrayList<>();


    private Calls(String address)
    {
        filter.setAddress(address);
    }

    private Calls start()
    {
        filter.setDestination(this);
        return this;
    }

    @Override
    public synchronized void receive(CrawlURI uri)
    {
        received.add(uri.getURI());
    }

    @Override
    public void schedule(CrawlURI uri)
    {
        if (uri.forceFetch()) {
            filter.addForce(uri.getURI(), uri);

        } else {
            filter.add(uri.getURI(), uri);
        }
    }

    private static CrawlURI uri(String url, String path, String via)
    {
        try {
            return new CrawlURI(new UURI(url), path,
                via == null ? null : new UURI(via));

        } catch (java.net.URISyntaxException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private Calls add(String... urls)
    {
        for (String url : urls) {
            filter.add(url, uri(url, "L", "http://via.test/"));
        }

        return this;
    }

    private void finished(String url, Disposition disposition)
    {
        filter.onApplicationEvent(new CrawlURIDispositionEvent(this,
            uri(url, "", null), disposition));
    }

    /** What was received since, when nothing is pending. */
    private String got()
    {
        await(() -> filter.pending() == 0);
        return now();
    }

    private synchronized String now()
    {
        String all = String.join(" ", received);

        received.clear();
        return all.isEmpty() ? "none" : all;
    }

    private synchronized int count()
    {
        return received.size();
    }

    private static void await(BooleanSupplier condition)
    {
        long end = System.nanoTime() + 60_000_000_000L;

        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("60 s are over");
            }

            sleep(5);
        }
    }

    private static void sleep(int ms)
    {
        try {
            Thread.sleep(ms);

        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void show(String name, Object what)
    {
        System.out.println(name + ": " + what);
    }


    public static void main(String[] args) throws Exception
    {
        plain(args[0] + "/plain", new File(args[1], "profile"));
        hurry(args[0] + "/hurry");
        batches(args[0] + "/batches", new File(args[1], "go"));
        lost(args[0] + "/lost", "http://lost.test/");
        lost(args[0] + "/unsure", "http://unsure.test/");
        refused(args[0] + "/refused");
        erased(args[0] + "/erased", new File(args[1]));
        redirect(args[0] + "/redirect");
        close(args[0] + "/close");
        set(args[0] + "/set");
    }

    private static void plain(String address, File profile) throws Exception
    {
        Calls c = new Calls(address);

        c.filter.setProfileLog(profile);
        c.start();
        show("none", c.filter.pending());
        c.add("http://p.test/a", "http://www.P.test/a#x", "http://p.test/b");
        show("waits", c.filter.pending() + " " + c.now());
        show("new", c.got());

        c.filter.addForce("http://p.test/a", uri("http://p.test/a", "P",
            null));
        show("forced", c.now());
        c.filter.addForce("http://p.test/f", uri("http://p.test/f", "P",
            null));
        show("forced", c.now());
        c.filter.note("http://p.test/n");
        c.add("http://p.test/f", "http://p.test/n");
        show("noted", c.got());

        c.filter.addNow("http://p.test/now", uri("http://p.test/now", "",
            null));
        show("at once", c.now());
        show("not empty", c.filter.pending() + ", " + c.filter.pending());

        c.filter.forget("http://p.test/a", null);
        c.add("http://p.test/a", "http://p.test/b");
        show("forgotten", c.got());

        c.add("dns:p.test", "dns:p.test", "ftp://p.test/");
        show("no http", c.got());
        c.filter.forget("dns:p.test", null);
        c.add("dns:p.test", "ftp://p.test/");
        show("no http", c.got());

        c.add("http://p.test/checkpoint");
        c.filter.startCheckpoint(new Checkpoint());
        show("checkpoint", c.now());
        c.add("http://p.test/later");
        c.filter.doCheckpoint(new Checkpoint());
        show("checkpoint", c.now());
        c.filter.finishCheckpoint(new Checkpoint());

        show("counts", c.filter.count() + " of " + c.filter.addedCount());
        c.filter.close();
        c.filter.close();
        show("profile", Files.readAllLines(profile.toPath()).size());
    }

    /** A URL that waits is not sent in its first 100 ms, on any machine. */
    private static void hurry(String address)
    {
        Calls c = new Calls(address).start();
        long least = Long.MAX_VALUE;

        for (int i = 1; i <= 50; i++) {
            int n = i;
            long begin = System.nanoTime();

            c.add("http://h.test/" + i);
            show("flush", c.filter.requestFlush());
            await(() -> c.count() == n);
            least = Math.min(least, System.nanoTime() - begin);
        }

        show("hurry", least < 100_000_000);
        c.filter.close();
    }

    /** The store refuses; then it has much to answer. */
    private static void batches(String address, File go) throws Exception
    {
        Calls c = new Calls(address).start();
        Thread adder = new Thread(() -> {
            for (int i = 0; i < 25000; i++) {
                c.add("http://b.test/" + i / 2);
            }
        });

        adder.start();
        await(() -> adder.getState() == Thread.State.WAITING);
        sleep(200);
        show("waits", adder.getState() + " " + (c.filter.pending() <= 20000)
            + " " + c.count());
        go.createNewFile();
        await(() -> !adder.isAlive() && c.filter.pending() == 0);
        show("all", c.count());
        c.filter.close();
    }

    /**
     * An answer is lost, and the service has forgotten the request; or
     * refuses it then.
     */
    private static void lost(String address, String site)
    {
        Calls c = new Calls(address).start();

        c.add(site + "1", site + "2", site + "1#x");
        show("lost", c.got());
        c.filter.close();
    }

    /** 403, for a time: the page is not marked before its links are stored. */
    private static void refused(String address)
    {
        Calls c = new Calls(address).start();

        c.add("http://r.test/1");
        c.finished("http://r.test/", Disposition.SUCCEEDED);
        sleep(500);
        show("refused", c.filter.pending() + " " + c.now());
        show("then", c.got());
        c.finished("http://r.test/1", Disposition.FAILED);
        c.finished("http://r.test/1", Disposition.DEFERRED_FOR_RETRY);
        c.filter.close();
    }

    /**
     * The first try stores the first part of many links, and gets an answer
     * for it; the last part is refused until one of the first is erased.  The
     * first round waits until all links do.
     */
    private static void erased(String address, File dir) throws Exception
    {
        Calls c = new Calls(address);
        String pad = "x".repeat(1900);

        c.filter.setSet("e");       // or the cache answers for the first part
        c.start();
        erase(address, "http://e.test/never");
        c.add("http://e.test/first");
        sleep(300);
        c.add("http://e.test/never", "http://e.test/since");

        for (int i = 0; i < 600; i++) {
            c.add("http://e.test/" + pad + i);
        }

        c.add("http://e.test/last");
        new File(dir, "full").createNewFile();
        await(new File(dir, "refused")::exists);
        erase(address, "http://e.test/since");
        new File(dir, "erased").createNewFile();
        show("erased", c.got().replaceAll(" \\S*" + pad + "\\d+", ""));
        c.filter.close();
    }

    private static void erase(String address, String url) throws Exception
    {
        HttpClient.newHttpClient().send(HttpRequest.newBuilder(
            URI.create(address + "/erase")).POST(BodyPublishers.ofString(url))
            .build(), BodyHandlers.discarding());
    }

    private static void redirect(String address)
    {
        Calls c = new Calls(address).start();

        c.add("http://m.test/", "http://m.test/other");
        c.got();
        c.filter.add("http://www.m.test/",
            uri("http://www.m.test/", "R", "http://m.test/"));
        c.finished("http://m.test/", Disposition.SUCCEEDED);
        c.filter.add("http://m.test/", uri("http://m.test/", "R",
            "http://m.test/"));
        c.filter.add("http://m.test/", uri("http://m.test/", "R",
            "http://m.test/other"));
        c.finished("http://m.test/other", Disposition.SUCCEEDED);
        show("target", c.got());
        show("done", marked(address));
        c.finished("http://www.m.test/", Disposition.DISREGARDED);
        c.filter.close();
        show("done", marked(address));
    }

    private static String marked(String address)
    {
        List<String> urls = new ArrayList<>();

        new UrlStore(address).feed(new UrlStore.Feed().mark("visited")
            .prefix("http://m.test/")).forEachRemaining(
                entry -> urls.add(entry.url));
        return String.join(" ", urls);
    }

    private static void close(String address)
    {
        Calls c = new Calls(address).start();

        c.add("http://c.test/1");
        c.finished("http://c.test/", Disposition.SUCCEEDED);
        c.filter.close();
        show("closed", c.now());
        show("stored", new UrlStore(address).seen("http://c.test/1").status);
    }

    /** A crawl with a set, which is killed; then the next one. */
    private static void set(String address)
    {
        UrlStore store = new UrlStore(address);

        store.add("http://s.test/3");
        store.makeSet("s.done");        // of a set that was dropped
        store.putIn("s.done", List.of("http://s.test/3"));

        Calls c = new Calls(address);

        c.filter.setSet("s");
        c.start().add("http://s.test/1", "http://s.test/2", "http://s.test/3");
        show("new to the set", c.got());
        c.finished("http://s.test/1", Disposition.SUCCEEDED);
        await(() -> store.seen("http://s.test/1",
            new UrlStore.Adding().set("s.done")).status.equals("seen"));
        c.filter.forget("http://s.test/2", null);
        c.add("http://s.test/2", "http://s.test/3");
        show("forgotten", c.got());

        Calls next = new Calls(address);

        next.filter.setSet("s");
        next.filter.setResume(true);
        next.start();
        sleep(300);
        show("no queues yet", next.now());
        next.add("http://s.test/1", "http://s.test/4");
        show("left", next.got());

        Calls other = new Calls(address);

        other.filter.setSet("other");
        other.start().add("http://s.test/1");
        show("another set", other.got());
        c.filter.close();
        next.filter.close();
        other.filter.close();
    }
}
