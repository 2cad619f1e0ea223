import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.archive.checkpointing.Checkpoint;
import org.archive.checkpointing.Checkpointable;
import org.archive.crawler.datamodel.UriUniqFilter;
import org.archive.crawler.event.CrawlURIDispositionEvent;
import org.archive.crawler.framework.Frontier;
import org.archive.modules.CrawlURI;
import org.springframework.context.ApplicationListener;

/**
 * Heritrix: the frontier gets what is new to a store, and a page is marked
 * there when it is done.
 *
 * <p>One thread asks the store for all that was added since it asked last, as
 * soon as there are 1,000 or the first has waited for 100 ms:
 *
 * <pre>
 * add() -> waiting -> asked -> receive()       what is new
 * page finished    -> done  -> marked          after what was added before
 * </pre>
 *
 * <p>A page is marked after its links are in the store.  So a crawl that is
 * killed loses nothing: the next one, with {@code resume}, begins with the
 * pages that have no mark.
 *
 * <p>While the store does not answer, Heritrix waits, at the latest when
 * 10,000 URIs do.
 */
public class UrlStoreUriUniqFilter implements UriUniqFilter, Checkpointable,
    ApplicationListener<CrawlURIDispositionEvent>, Closeable {

    private static final Logger logger =
        Logger.getLogger(UrlStoreUriUniqFilter.class.getName());

    private static final int AT_ONCE = 1000;
    private static final int AT_MOST = 10 * AT_ONCE;
    private static final long DELAY = 100_000_000;          // ns
    private static final int PAUSE = 1000;                  // ms


    /** What was added; value is null where it was only noted. */
    private static final class Candidate {
        final String key;
        final CrawlURI value;
        final boolean forced;           // the frontier has it

        Candidate(String key, CrawlURI value, boolean forced)
        {
            this.key = key;
            this.value = value;
            this.forced = forced;
        }

        /** Whether a redirect has led here. */
        boolean redirected()
        {
            return value != null && value.isLocation()
                && value.getVia() != null;
        }

        String via()
        {
            return value.getVia().toCustomString();
        }
    }


    /** A page that is done. */
    private static final class Page {
        final String key;
        final String uri;

        Page(String key, String uri)
        {
            this.key = key;
            this.uri = uri;
        }
    }


    private String address;
    private String set;
    private String mark;
    private boolean resume;

    private UrlStore store;
    private CrawlUriReceiver receiver;
    private Thread worker;
    private PrintWriter profile;

    /* the lock of all below is this object */

    private List<Candidate> waiting = new ArrayList<>();
    private List<Page> done = new ArrayList<>();
    private long first;                 // when the first of both came
    private boolean hurry;
    private volatile boolean closed;
    private long added;                 // calls of add() and addNow()
    private long accepted;              // candidates, so far
    private long settled;               // of these, no longer pending
    private long known;                 // keys that were new

    private final ThreadLocal<Long> looked = ThreadLocal.withInitial(() -> 0L);

    /* keys that the store cannot hold */

    private final Set<String> apart = ConcurrentHashMap.newKeySet();

    /* of the worker alone */

    private boolean ready;
    private final Set<String> moved = new HashSet<>();


    // --- the properties of the bean ---------------------------------------


    /** The address of the store. */
    public void setAddress(String url) { address = url; }

    /** The set of this crawl; it is made.  By default all crawls share. */
    public void setSet(String name) { set = name; }

    /**
     * The mark of pages that are done: "visited", with a set another set, its
     * name and ".done"; empty: none is set.
     */
    public void setMark(String name) { mark = name; }

    /** Begins with the pages that have no mark. */
    public void setResume(boolean on) { resume = on; }


    // --- calls of the frontier --------------------------------------------


    /** The frontier calls it when it starts. */
    @Override
    public synchronized void setDestination(CrawlUriReceiver receiver)
    {
        this.receiver = receiver;

        if (worker != null) {
            return;
        }

        if (mark == null) {
            mark = set == null ? "visited" : set + ".done";
        }

        store = new UrlStore(address,
            new UrlStore.Options().cache(set == null ? 100_000 : 0));
        worker = new Thread(this::work, "urlstore");
        worker.setDaemon(true);
        worker.start();
    }

    @Override
    public void add(String key, CrawlURI value)
    {
        synchronized (this) {
            added++;
        }

        accept(new Candidate(key, value, false));
    }

    @Override
    public void addNow(String key, CrawlURI value)
    {
        add(key, value);
        flush();
    }

    @Override
    public void addForce(String key, CrawlURI value)
    {
        receiver.receive(value);

        // what left() schedules is in the store

        if (Thread.currentThread() != worker) {
            accept(new Candidate(key, value, true));
        }
    }

    @Override
    public void note(String key)
    {
        accept(new Candidate(key, null, true));
    }

    /** Without a set, the store forgets the URL for all crawls. */
    @Override
    public void forget(String key, CrawlURI value)
    {
        flush();
        apart.remove(key);

        if (set != null) {
            insist(() -> store.takeOut(set, List.of(key)));
            return;
        }

        UrlStore.Item item = insist(() -> store.seen(key));

        if (item.id != null) {
            insist(() -> {
                store.delete(item.id);
                return null;
            });
        }
    }

    /** A toe thread calls it, with a lock: it does not wait. */
    @Override
    public synchronized long requestFlush()
    {
        hurry = accepted > settled;
        notifyAll();
        return 0;
    }

    /** Of this run. */
    @Override
    public synchronized long count()
    {
        return known;
    }

    @Override
    public synchronized long addedCount()
    {
        return added;
    }

    /**
     * The frontier is empty, and the crawl ends, if no URI is queued and then
     * none is pending.  One that has come to the queue between these two looks
     * has to be found pending; so a thread that has not looked since gets 1.
     */
    @Override
    public synchronized long pending()
    {
        boolean news = looked.get() != settled;

        looked.set(settled);
        return accepted > settled ? accepted - settled : news ? 1 : 0;
    }

    @Override
    public synchronized void setProfileLog(File file)
    {
        try {
            profile = new PrintWriter(file, "UTF-8");

        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * The frontier is closed already: what is pending goes to the store only,
     * where resume finds it.
     */
    @Override
    public void close()
    {
        synchronized (this) {
            closed = true;
            notifyAll();

            if (profile != null) {
                profile.close();
                profile = null;
            }
        }

        try {
            if (worker != null) {
                worker.join();
            }

        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }


    // --- other calls ------------------------------------------------------


    /** A page that failed, or is tried again, stays without the mark. */
    @Override
    public void onApplicationEvent(CrawlURIDispositionEvent event)
    {
        CrawlURI page = event.getCrawlURI();

        switch (event.getDisposition()) {
        case SUCCEEDED:
        case DISREGARDED:
            break;
        default:
            return;
        }

        synchronized (this) {
            if (mark.isEmpty() || closed) {
                return;
            }

            begins();
            done.add(new Page(page.getCanonicalString(), page.getURI()));
        }
    }

    /*
     * What is pending has to be in the frontier when that one writes its
     * state.  All beans start before any of them writes, in the same order.
     * Once the frontier has started, no thread adds more: so nothing is
     * pending after the second of these calls, if this bean comes before the
     * frontier, or else after the first.
     */

    @Override
    public void startCheckpoint(Checkpoint checkpoint)
    {
        flush();
    }

    @Override
    public void doCheckpoint(Checkpoint checkpoint)
    {
        flush();
    }

    @Override
    public void finishCheckpoint(Checkpoint checkpoint) { }

    @Override
    public void setRecoveryCheckpoint(Checkpoint checkpoint) { }


    // --- what waits -------------------------------------------------------


    private synchronized void accept(Candidate candidate)
    {
        boolean interrupted = false;

        if (profile != null) {
            profile.println(candidate.key);
        }

        while (waiting.size() >= AT_MOST && !closed && !interrupted) {
            interrupted = !pause(0);
        }

        if (interrupted) {
            Thread.currentThread().interrupt();
        }

        begins();
        accepted++;
        waiting.add(candidate);
    }

    private void begins()
    {
        if (waiting.isEmpty() && done.isEmpty()) {
            first = System.nanoTime();
            notifyAll();

        } else if (waiting.size() + 1 == AT_ONCE) {
            notifyAll();
        }
    }

    /** Returns when what was added before is no longer pending. */
    private synchronized void flush()
    {
        long upTo = accepted;

        while (settled < upTo && worker.isAlive()) {
            hurry = true;
            notifyAll();

            if (!pause(PAUSE)) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    /** Waits with the lock; false: interrupted. */
    private boolean pause(long ms)
    {
        try {
            wait(ms);
            return true;

        } catch (InterruptedException e) {
            return false;
        }
    }


    // --- the worker -------------------------------------------------------


    private void work()
    {
        try {
            while (due()) {
                round();
            }

            round();

        } catch (UrlStore.Failure e) {      // and Heritrix ends
            logger.log(Level.WARNING, "some pages are not marked", e);
        }
    }

    private synchronized boolean due()
    {
        while (!closed) {
            boolean none = waiting.isEmpty() && done.isEmpty();
            long left = first + DELAY - System.nanoTime();

            if (hurry || waiting.size() >= AT_ONCE || !none && left <= 0) {
                return true;
            }

            pause(none ? 0 : left / 1_000_000 + 1);
        }

        return false;
    }

    private void round()
    {
        List<Candidate> candidates;
        List<Page> pages;

        // the links of a page were added before it was done

        synchronized (this) {
            candidates = waiting;
            pages = done;
            waiting = new ArrayList<>();
            done = new ArrayList<>();
            hurry = false;
            notifyAll();
        }

        begin();

        for (int at = 0; at < candidates.size(); at += AT_ONCE) {
            List<Candidate> part = candidates.subList(at,
                Math.min(at + AT_ONCE, candidates.size()));

            judge(part);

            synchronized (this) {
                settled += part.size();
                notifyAll();
            }
        }

        List<String> keys = new ArrayList<>();

        for (Page page : pages) {
            if (!moved.remove(page.uri)) {
                keys.add(page.key);
            }
        }

        insist(() -> store.mark(mark, keys));
    }

    /** The first candidate shows that the frontier has its queues. */
    private void begin()
    {
        if (ready) {
            return;
        }

        if (set != null) {
            boolean made = insist(() -> store.makeSet(set));

            // pages that are new to a new set are not done

            if (mark.equals(set + ".done")) {
                insist(() -> {
                    if (made) {
                        store.dropSet(mark);
                    }

                    return store.makeSet(mark);
                });
            }
        }

        if (resume && !mark.isEmpty()) {
            left();
        }

        ready = true;
    }

    private void left()
    {
        UrlStore.Feed what = set == null
            ? new UrlStore.Feed().mark("!" + mark)
            : new UrlStore.Feed().set(set);
        Iterator<UrlStore.Entry> feed = store.feed(what);
        List<String> urls = new ArrayList<>();

        while (!closed && insist(feed::hasNext)) {
            UrlStore.Entry entry = feed.next();

            if (entry.url != null) {
                urls.add(entry.url);
            }

            if (urls.size() == AT_ONCE) {
                schedule(urls);
            }
        }

        schedule(urls);
    }

    private void schedule(List<String> urls)
    {
        List<String> some = List.copyOf(urls);

        urls.clear();

        if (set == null) {
            some.forEach(this::schedule);
            return;
        }

        for (UrlStore.Item item : insist(() -> store.seenAll(some,
            new UrlStore.Adding().set(mark))).items)
        {
            if (!item.status.equals("seen")) {
                schedule(some.get(item.index));
            }
        }
    }

    private void schedule(String url)
    {
        try {
            // a WARC of a page that is no seed needs what led to it

            CrawlURI page = CrawlURI.fromHopsViaString(url + " L " + url);

            page.setForceFetch(true);
            ((Frontier) receiver).schedule(page);

        } catch (Exception e) {     // URIException, of different packages
            logger.log(Level.SEVERE, "not scheduled: " + url, e);
        }
    }

    /** Asks for at most AT_ONCE candidates, and passes on what is new. */
    private void judge(List<Candidate> part)
    {
        List<String> keys = new ArrayList<>();
        List<Candidate> redirected = new ArrayList<>();
        List<Long> ids = new ArrayList<>();
        Set<String> once = new HashSet<>();

        for (Candidate candidate : part) {
            keys.add(candidate.key);
        }

        Set<Integer> mine = new HashSet<>();
        List<UrlStore.Item> items = ask(keys, mine);

        for (UrlStore.Item item : items) {
            Candidate candidate = part.get(item.index);
            boolean fresh = mine.contains(item.index);

            switch (item.status) {
            case "invalid":         // such as dns: and ftp:
            case "full":
            case "unavailable":
                fresh = apart.add(candidate.key) || fresh;
                break;

            case "refused":         // erased, perhaps since a try was lost
                fresh = false;
                break;

            case "seen":
                if (!fresh && candidate.redirected()) {
                    redirected.add(candidate);
                    ids.add(item.id);
                }
            }

            // without an answer to a try, all of a batch may be fresh

            if (fresh && once.add(item.url == null ? candidate.key
                : item.url))
            {
                synchronized (this) {
                    known++;
                }

                receive(candidate);
            }
        }

        redirect(redirected, ids);
    }

    /**
     * The answers; mine are those whose candidate may be new: items of tries
     * that were lost, or failed in the middle, as well.
     */
    private List<UrlStore.Item> ask(List<String> keys, Set<Integer> mine)
    {
        UrlStore.Adding adding = new UrlStore.Adding().set(set);
        boolean[] lost = { false };

        List<UrlStore.Item> items = insist(() -> {
            try {
                return store.addAll(keys, adding).items;

            } catch (UrlStore.Failure e) {
                lost[0] = lost[0] || e.unsure;
                mine(e.done, false, mine);
                throw e;
            }
        });

        mine(items, lost[0], mine);
        return items;
    }

    private static void mine(List<UrlStore.Item> items, boolean lost,
        Set<Integer> mine)
    {
        for (UrlStore.Item item : items) {
            if (item.mine() || item.unsure
                || lost && item.status.equals("seen"))
            {
                mine.add(item.index);
            }
        }
    }

    /**
     * From http://a.example/ to http://www.a.example/, which the store takes
     * for one page: the target is fetched, and the page is done when the
     * target is.
     */
    private void redirect(List<Candidate> candidates, List<Long> ids)
    {
        List<String> vias = new ArrayList<>();

        for (Candidate candidate : candidates) {
            vias.add(candidate.via());
        }

        for (UrlStore.Item via : insist(() -> store.seenAll(vias,
            new UrlStore.Adding())).items)
        {
            Candidate candidate = candidates.get(via.index);

            if (via.id != null && via.id.equals(ids.get(via.index))
                && !candidate.via().equals(candidate.value.getURI()))
            {
                moved.add(candidate.via());
                receive(candidate);
            }
        }
    }

    private void receive(Candidate candidate)
    {
        if (candidate.forced || closed) {
            return;
        }

        try {
            receiver.receive(candidate.value);

        } catch (RuntimeException e) {
            logger.log(Level.SEVERE, "not queued: " + candidate.key, e);
        }
    }

    /** Asks until the store answers, or Heritrix ends. */
    private <T> T insist(Supplier<T> request)
    {
        for (;;) {
            try {
                return request.get();

            } catch (UrlStore.Failure e) {
                if (closed) {
                    throw e;
                }

                logger.log(Level.SEVERE, "the crawl waits for the store", e);

                try {
                    Thread.sleep(PAUSE);

                } catch (InterruptedException i) {
                    Thread.currentThread().interrupt();
                    throw e;
                }
            }
        }
    }
}
