import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;

/**
 * Client of a URL store: is this URL new or seen, and what is its id?
 *
 * <pre>
 * UrlStore store = new UrlStore("http://127.0.0.1:8080");
 * UrlStore.Batch batch = store.addAll(links,
 *     new UrlStore.Adding().base(page));
 * </pre>
 *
 * An object is safe for use by many threads.  The rules of retrying are those
 * of all clients:
 * <ul>
 * <li>A request is sent again when no whole answer came, on the codes in
 *     RETRIED and on any refusal that brings Retry-After.
 * <li>It is sent again with the same bytes and the same Idempotency-Key.
 * <li>The wait is what Retry-After says, plus a random part of a backoff that
 *     doubles from BACKOFF to BACKOFF_MAX seconds.
 * <li>A wait that would end later than {@code patience} after the first try
 *     is not begun: the call throws what the last try met.
 * </ul>
 */
public final class UrlStore {

    private static final Set<Integer> RETRIED =
        Set.of(408, 425, 429, 500, 502, 503, 504);
    /** Without "processed", these can come after a change; 503 cannot. */
    private static final Set<Integer> UNKNOWN = Set.of(408, 500, 502, 504);
    private static final double BACKOFF = 0.1;
    private static final double BACKOFF_MAX = 5;
    private static final int GZIP_FROM = 1024;

    private static final String JSON = "application/json";
    private static final String NDJSON = "application/x-ndjson";

    private final String address;
    private final Options options;
    private final Map<String, String> headers = new TreeMap<>();
    private final HttpClient client;
    private final Cache cache;

    private final Map<Long, Shard> shards = new HashMap<>();
    private volatile boolean answered;      // there may be idle connections
    private volatile boolean silent;        // and a warning has said so


    // --- what goes in and comes out --------------------------------------


    /** How to talk to a store. */
    public static final class Options {
        Duration timeout = Duration.ofSeconds(30);
        Duration patience = Duration.ofSeconds(50);
        int batch = 1000;
        int body = 1 << 20;
        boolean gzip;
        int cache;
        HttpClient client;
        final Map<String, String> headers = new TreeMap<>();

        /** How long one try may take (30 s). */
        public Options timeout(Duration d) { timeout = d; return this; }

        /**
         * How long a request is tried again (50 s).  The service remembers an
         * Idempotency-Key for 5 minutes: stay below that.
         */
        public Options patience(Duration d) { patience = d; return this; }

        /** Items in a request, at most 10,000 (1,000). */
        public Options batch(int n) { batch = n; return this; }

        /** Bytes in a request, before compression (1 MiB). */
        public Options body(int n) { body = n; return this; }

        /** Compresses bodies of 1 KiB and more. */
        public Options gzip(boolean on) { gzip = on; return this; }

        /**
         * URLs whose id and canonical form are kept here (0): a link found
         * among them is answered as "seen" without a request.  Entries leave
         * when an id is deleted through this object or the epoch changes; a
         * delete by another client is not noticed.
         */
        public Options cache(int n) { cache = n; return this; }

        /** Sent with each request. */
        public Options header(String name, String value)
        {
            headers.put(name, value);
            return this;
        }

        /** For proxies and TLS; by default, one of the store's own. */
        public Options client(HttpClient c) { client = c; return this; }
    }


    /** How URLs are added or looked up. */
    public static final class Adding {
        String base;
        boolean onlyNew;
        String older;
        String set;
        boolean sites;
        boolean times;

        /** The URL of the page: links are given as they stand in it. */
        public Adding base(String url) { base = url; return this; }

        /** Leaves out all answers but new and due. */
        public Adding onlyNew() { onlyNew = true; return this; }

        /** What was claimed longer ago, such as "30d", is due. */
        public Adding older(String d) { older = d; return this; }

        /** The same. */
        public Adding older(Duration d)
        {
            older = d.getSeconds() + "s";
            return this;
        }

        /** What is not in this set is new, whether the store has it or not. */
        public Adding set(String name) { set = name; return this; }

        /** Says for each whether it is the first URL of its site. */
        public Adding sites() { sites = true; return this; }

        /** Gives the time of the last claim. */
        public Adding times() { times = true; return this; }

        private Map<String, String> args()
        {
            Map<String, String> args = new TreeMap<>();

            put(args, "only", onlyNew ? "new" : null);
            put(args, "older", older);
            put(args, "set", set);
            put(args, "sites", sites ? "1" : null);
            put(args, "times", times ? "1" : null);

            return args;
        }
    }


    /** The answer for one URL. */
    public static final class Item {
        /** Its position in the input, from 0. */
        public final int index;
        /** Null where there is none. */
        public final Long id;
        /**
         * new, due, seen, unseen, invalid, rejected, refused (erased), full,
         * unavailable
         */
        public final String status;
        /** The canonical URL, or null where it was refused. */
        public final String url;
        /** Why it was refused. */
        public final String reason;
        /** With sites(): whether it is the first URL of its site. */
        public final Boolean newSite;
        /** With times(): when it was last claimed, in seconds. */
        public final Long time;
        /** With set(): the status without it. */
        public final String stored;
        /**
         * True if the status is "seen" or "unavailable", and an earlier try
         * got no answer or a shard did not answer: this call may have added
         * the URL itself, claimed it with older(), or put it into the set.
         */
        public final boolean unsure;

        private Item(int index, Map<String, Object> answer, boolean unsure)
        {
            this.index = index;
            this.id = (Long) answer.get("id");
            this.status = (String) answer.get("status");
            this.url = (String) answer.get("url");
            this.reason = (String) answer.get("reason");
            this.newSite = (Boolean) answer.get("new_site");
            this.time = (Long) answer.get("time");
            this.stored = (String) answer.get("stored");
            this.unsure = unsure;
        }

        /** Whether this call added or claimed the URL: fetch it. */
        public boolean mine()
        {
            return status.equals("new") || status.equals("due");
        }
    }


    /** The items of a call, in the order of its input, and their counts. */
    public static final class Batch {
        public final List<Item> items = new ArrayList<>();
        public long added;          // new
        public long due;
        public long seen;
        public long unseen;
        public long errors;
        /** Number of ids given when the call began; null at a router. */
        public Long nextId;
        /**
         * Of the last answer; ids of another epoch are void.  Null at a
         * router.
         */
        public Long epoch;
        /** Requests sent, retries included. */
        public int tries;

        /** Items that are the caller's to fetch, and those that may be. */
        public List<Item> toFetch()
        {
            List<Item> fetch = new ArrayList<>();

            for (Item item : items) {
                if (item.mine() || item.unsure) {
                    fetch.add(item);
                }
            }

            return fetch;
        }

        private void join(Batch part)
        {
            items.addAll(part.items);
            added += part.added;
            due += part.due;
            seen += part.seen;
            unseen += part.unseen;
            errors += part.errors;
            tries += part.tries;

            if (nextId == null) {
                nextId = part.nextId;
            }

            if (part.epoch != null) {
                epoch = part.epoch;
            }
        }
    }


    /** Where a stream is, after each of its requests. */
    public static final class Progress {
        public long done;
        public long added;
        public long seen;
        public long errors;
        public double seconds;
    }


    /** The answer for one id: status is ok, unknown or deleted. */
    public static final class Found {
        public final long id;
        public final String status;
        public final String url;

        private Found(Map<String, Object> answer)
        {
            id = (Long) answer.get("id");
            status = (String) answer.get("status");
            url = (String) answer.get("url");
        }
    }


    /**
     * The answer for one item of mark(), unmark(), claim(), putIn() and
     * takeOut().
     */
    public static final class Marked {
        public final int index;
        public final Long id;
        /**
         * set, clear, claimed, in, was, out, unseen, unknown, deleted, or why
         * it was refused
         */
        public final String status;
        public final String url;
        public final String reason;
        /**
         * True if the status is "was" or "unavailable", and this call may have
         * put the item into the set itself.
         */
        public final boolean unsure;

        private Marked(int index, Map<String, Object> answer, boolean lost)
        {
            this.index = index;
            id = (Long) answer.get("id");
            status = (String) answer.get("status");
            url = (String) answer.get("url");
            reason = (String) answer.get("reason");
            unsure = lost && status.equals("was")
                || status.equals("unavailable") && (lost
                    || String.valueOf(reason).startsWith("unknown:"));
        }
    }


    /** Which URLs a feed has. */
    public static final class Feed {
        long from;
        Duration follow;
        final Map<String, String> args = new TreeMap<>(Map.of("limit",
            "1000"));

        /** The first id. */
        public Feed from(long id) { from = id; return this; }

        /** Entries in a request (1,000). */
        public Feed limit(int n) { return with("limit", "" + n); }

        public Feed site(String host) { return with("site", host); }

        public Feed prefix(String start) { return with("prefix", start); }

        /** Only URLs with this mark, or without it ("!visited"). */
        public Feed mark(String name) { return with("mark", name); }

        /** The same of a set. */
        public Feed set(String name) { return with("set", name); }

        /** Only URLs last claimed longer ago, such as "30d". */
        public Feed older(String d) { return with("older", d); }

        /** Gives the time of the last claim. */
        public Feed times() { return with("times", "1"); }

        /** Deleted ids as well. */
        public Feed deleted() { return with("deleted", "1"); }

        /** Only the first URL of each site. */
        public Feed newSites() { return with("new_sites", "1"); }

        /** At the end, asks again so often, for ever. */
        public Feed follow(Duration d) { follow = d; return this; }

        private Feed with(String name, String value)
        {
            args.put(name, value);
            return this;
        }
    }


    /** One of the feed; url is null where the id is deleted. */
    public static final class Entry {
        public final long id;
        public final String url;
        public final Long time;

        private Entry(Map<String, Object> answer)
        {
            id = (Long) answer.get("id");
            url = (String) answer.get("url");
            time = (Long) answer.get("time");
        }
    }


    /** A request failed for good. */
    public static class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        /** How often it was sent. */
        public int tries;
        /**
         * Whether the service may have applied a part of it: what is seen
         * when it is asked again may be new.
         */
        public boolean unsure;
        /** The items that earlier requests of this call answered. */
        public transient List<Item> done = List.of();

        Failure(String text, Throwable cause)
        {
            super(text, cause);
        }
    }


    /**
     * No whole answer came: refused, cut off, timed out, or not readable.
     * The service may have applied the request.
     */
    public static final class NoAnswer extends Failure {
        private static final long serialVersionUID = 1;

        NoAnswer(String text, Throwable cause)
        {
            super(text, cause);
        }
    }


    /** The service refused the request. */
    public static final class Problem extends Failure {
        private static final long serialVersionUID = 1;

        public final int status;
        /** The problem document (RFC 9457); empty if there was none. */
        public final transient Map<String, Object> document;
        /** Seconds that the service asked to wait, or null. */
        public final Double retryAfter;

        Problem(int status, Map<String, Object> document, Double retryAfter,
            String where)
        {
            super(where + ": " + (status + " "
                + document.getOrDefault("title", "")).strip()
                + (document.isEmpty() && (status == 404 || status == 405)
                    ? ": no urlstore answers at this address"
                    : document.containsKey("detail")
                    ? ": " + document.get("detail") : ""), null);
            this.status = status;
            this.document = document;
            this.retryAfter = retryAfter;
        }

        /**
         * Whether the request may have changed the store: the service says
         * that it did, or did not say, as a proxy that waits in vain.
         */
        private boolean applied()
        {
            Object n = document.get("processed");

            return n instanceof Long ? (Long) n > 0
                : UNKNOWN.contains(status);
        }

        /** Whether nothing was done, and half of the batch may pass. */
        private boolean tooLarge()
        {
            return status == 413
                && document.getOrDefault("processed", 0L).equals(0L);
        }
    }


    // --- calls ------------------------------------------------------------


    /** A store at an address such as http://127.0.0.1:8080/urls. */
    public UrlStore(String address)
    {
        this(address, new Options());
    }

    public UrlStore(String address, Options options)
    {
        URI uri = URI.create(address);

        if (uri.getHost() == null || !Set.of("http", "https")
            .contains(String.valueOf(uri.getScheme())))
        {
            throw new IllegalArgumentException("address " + address
                + ": an http or https URL is needed");
        }

        if (options.batch < 1 || options.batch > 10000) {
            throw new IllegalArgumentException("batch " + options.batch
                + ": 1 to 10000 items are allowed");
        }

        this.options = options;
        this.address = uri.getScheme() + "://" + uri.getRawAuthority()
            .replaceFirst("^.*@", "")
            + uri.getRawPath().replaceFirst("/+$", "");
        headers.put("User-Agent", "urlstore-java/1.0");

        if (uri.getUserInfo() != null) {
            headers.put("Authorization", "Basic " + Base64.getEncoder()
                .encodeToString(utf8(uri.getUserInfo())));
        }

        headers.putAll(options.headers);
        client = options.client != null ? options.client
            : HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(options.timeout).build();
        cache = new Cache(options.cache);
    }

    /** Is this URL new?  It is added if so. */
    public Item add(String url)
    {
        return add(url, new Adding());
    }

    public Item add(String url, Adding how)
    {
        return addAll(List.of(url), how).items.get(0);
    }

    /** Adds what is new; one answer for each URL, in their order. */
    public Batch addAll(Iterable<String> urls, Adding how)
    {
        return gather("/add", urls, how.args(), how.base);
    }

    /**
     * The same for inputs of any length: hands on each item as requests are
     * answered, and reports after each request, unless report is null.
     */
    public void addStream(Iterable<String> urls, Adding how,
        Consumer<Item> each, Consumer<Progress> report)
    {
        long start = System.nanoTime();
        Batch sum = new Batch();

        lookUp("/add", urls, how.args(), how.base, part -> {
            List<Item> items = List.copyOf(part.items);

            part.items.clear();
            sum.join(part);

            if (report != null) {
                Progress p = new Progress();

                p.done = sum.added + sum.due + sum.seen + sum.unseen
                    + sum.errors;
                p.added = sum.added + sum.due;
                p.seen = sum.seen;
                p.errors = sum.errors;
                p.seconds = (System.nanoTime() - start) / 1e9;
                report.accept(p);
            }

            items.forEach(each);
        });
    }

    /** Is it known?  Adds nothing, claims nothing. */
    public Item seen(String url)
    {
        return seen(url, new Adding());
    }

    public Item seen(String url, Adding how)
    {
        return seenAll(List.of(url), how).items.get(0);
    }

    /** The same for many. */
    public Batch seenAll(Iterable<String> urls, Adding how)
    {
        Map<String, String> args = how.args();

        args.keySet().removeAll(Set.of("only", "sites"));
        return gather("/seen", urls, args, how.base);
    }

    /** The URL of an id.  Problem 404: not given yet; 410: deleted. */
    public String url(long id)
    {
        return exchange("GET", "/url/" + id, Map.of(), null,
            reply -> Objects.requireNonNull((String) object(reply)
                .get("url"))).value;
    }

    /** The URLs of many ids, in their order. */
    public List<Found> urls(List<Long> ids)
    {
        List<Found> found = new ArrayList<>();

        each(ids, 0, part -> {
            String payload = "{\"ids\":[" + join(part) + "]}";

            for (Map<String, Object> r : results("/url", Map.of(), payload,
                part.size()).value)
            {
                found.add(new Found(r));
            }
        });

        return found;
    }

    /** Forgets the URL of an id.  Empties the cache of this object. */
    public void delete(long id)
    {
        cache.clear();

        try {
            exchange("DELETE", "/url/" + id, Map.of(), null, reply -> "");

        } catch (Problem e) {
            if (e.status != 410) {
                throw e;
            }
        }
    }

    /**
     * Makes a set, unless it is there.  Whether this call made it, or may have
     * (a lost try).
     */
    public boolean makeSet(String name)
    {
        Exchange<Boolean> made = exchange("PUT", below("/set/", name),
            Map.of(), null, reply -> reply.status == 201);

        return made.value || made.lost;
    }

    /** Drops a set, if it is there.  Its URLs stay in the store. */
    public void dropSet(String name)
    {
        try {
            exchange("DELETE", below("/set/", name), Map.of(), null,
                reply -> "");

        } catch (Problem e) {
            if (e.status != 404 || !"set".equals(e.document.get("reason"))) {
                throw e;
            }
        }
    }

    /**
     * Puts into a set what the store has: "in" is answered to one caller of
     * all, the others get "was".  An item is an id (a number) or a URL (a
     * string).
     */
    public List<Marked> putIn(String name, List<?> items)
    {
        return mark(below("/set/", name), Map.of(), items);
    }

    /** Takes out of a set: "out", or "unseen". */
    public List<Marked> takeOut(String name, List<?> items)
    {
        return mark(below("/set/", name), Map.of("remove", "1"), items);
    }

    /** Sets a mark.  An item is an id (a number) or a URL (a string). */
    public List<Marked> mark(String name, List<?> items)
    {
        return mark(below("/mark/", name), Map.of(), items);
    }

    /** Clears a mark. */
    public List<Marked> unmark(String name, List<?> items)
    {
        return mark(below("/mark/", name), Map.of("clear", "1"), items);
    }

    /** Claims items now. */
    public List<Marked> claim(List<?> items)
    {
        return mark("/claim", Map.of(), items);
    }

    /** Claims items at a time. */
    public List<Marked> claimAt(Instant at, List<?> items)
    {
        return mark("/claim", Map.of("at", "" + at.getEpochSecond()), items);
    }

    /** Makes items due at once. */
    public List<Marked> unclaim(List<?> items)
    {
        return mark("/claim", Map.of("clear", "1"), items);
    }

    private List<Marked> mark(String path, Map<String, String> args,
        List<?> items)
    {
        List<Marked> marked = new ArrayList<>();

        each(items, 0, part -> {
            Exchange<List<Map<String, Object>>> got = results(path, args,
                "[" + join(part) + "]", part.size());

            for (Map<String, Object> r : got.value) {
                marked.add(new Marked(marked.size(), r, got.lost));
            }
        });

        return marked;
    }

    /** The path of a set or a mark. */
    private static String below(String path, String name)
    {
        return path + URLEncoder.encode(name, StandardCharsets.UTF_8)
            .replace("+", "%20");
    }

    /** All URLs from an id on, in the order of ids. */
    public Iterator<Entry> feed(Feed what)
    {
        return new Iterator<>() {
            private Iterator<Entry> part = Collections.emptyIterator();
            private final Map<String, String> args = new TreeMap<>(what.args);
            private boolean ended;

            {
                args.put("from", "" + what.from);
            }

            @Override
            public boolean hasNext()
            {
                while (!part.hasNext() && !ended) {
                    read();
                }

                return part.hasNext();
            }

            @Override
            public Entry next()
            {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }

                return part.next();
            }

            private void read()
            {
                List<Entry> entries = new ArrayList<>();
                Map<String, Object> last = exchange("GET", "/urls", args, null,
                    reply -> {
                        entries.clear();
                        return part(reply, entries);
                    }).value;
                boolean more;

                part = entries.iterator();

                if (last.containsKey("next")) {
                    String next = last.get("next").toString();

                    more = !next.equals(args.put("from", next));

                } else {
                    more = (Boolean) last.get("more");
                    args.remove("from");
                    args.put("cursor", (String) last.get("cursor"));
                }

                if (!more && what.follow != null) {
                    pause(what.follow.toMillis() / 1e3);

                } else {
                    ended = !more;
                }
            }
        };
    }

    /** Reads the entries; returns the last line: next, or a router's cursor. */
    private static Map<String, Object> part(Reply reply, List<Entry> entries)
    {
        for (String line : reply.body.split("\n")) {
            Map<String, Object> entry = object(line);

            if (entry.containsKey("unavailable") && entries.isEmpty()) {
                throw new IllegalArgumentException("shards that do not answer: "
                    + entry.get("unavailable"));
            }

            if (entry.containsKey("next") || entry.containsKey("cursor")) {
                return entry;
            }

            entries.add(new Entry(entry));
        }

        throw new IllegalArgumentException("the last line is missing");
    }

    /** Any other GET that answers JSON, such as /normalize. */
    public Map<String, Object> get(String path, Map<String, String> args)
    {
        return exchange("GET", path, args, null, UrlStore::object).value;
    }

    /** The state of the service; asked once. */
    public Map<String, Object> health(boolean write)
    {
        Map<String, String> args = write ? Map.of("write", "1") : Map.of();

        try {
            return exchange("GET", "/health", args, null, UrlStore::object,
                Duration.ZERO, System.nanoTime()).value;

        } catch (Problem e) {
            if (e.status == 503 && !e.document.isEmpty()) {
                return e.document;
            }

            throw e;
        }
    }


    // --- batches -----------------------------------------------------------


    private Batch gather(String path, Iterable<String> urls,
        Map<String, String> args, String base)
    {
        Batch batch = new Batch();

        try {
            lookUp(path, urls, args, base, batch::join);

        } catch (Failure e) {
            List<Item> done = new ArrayList<>(batch.items);

            done.addAll(e.done);
            e.done = done;
            throw e;
        }

        return batch;
    }

    private void lookUp(String path, Iterable<String> urls,
        Map<String, String> args, String base, Consumer<Batch> each)
    {
        int[] index = { 0 };

        each(urls, base == null ? 0 : size(base), part -> {
            Batch batch = part(path, part, index[0], args, base);

            index[0] += part.size();
            each.accept(batch);
        });
    }

    /** Answers URLs that fit in one request: those in the cache at once. */
    private Batch part(String path, List<String> urls, int index,
        Map<String, String> args, String base)
    {
        Batch batch = new Batch();
        boolean all = !args.containsKey("only");
        // what is in the store may be due, or new to the set
        boolean cached = !args.containsKey("older")
            && !args.containsKey("set") && !args.containsKey("times");
        List<Integer> asked = new ArrayList<>();

        for (int at = 0; at < urls.size(); at++) {
            Map<String, Object> answer = cached ? cache.get(urls.get(at), base)
                : null;

            if (answer != null) {
                batch.seen++;

                if (args.containsKey("sites")) {
                    answer = new LinkedHashMap<>(answer);
                    answer.put("new_site", false);
                }

            } else if (size(urls.get(at)) > options.body) {
                batch.errors++;
                answer = Map.of("status", "invalid", "reason", "length");

            } else {
                asked.add(at);
            }

            if (answer != null && all) {
                batch.items.add(new Item(index + at, answer, false));
            }
        }

        try {
            if (!asked.isEmpty()) {
                ask(path, urls, asked, index, args, base, null, batch);
            }

        } catch (Failure e) {
            e.done = sorted(batch.items);
            throw e;
        }

        sorted(batch.items);
        return batch;
    }

    private static List<Item> sorted(List<Item> items)
    {
        items.sort(Comparator.comparingInt(item -> item.index));
        return items;
    }

    /**
     * Adds to the batch what the service answers for the URLs at `asked`.
     * Asks again for the items whose outcome is unknown: what is seen then
     * may be of the first request. lostAt: it may be of a whole, of
     * which this is a half, whose try then was lost.
     */
    private void ask(String path, List<String> urls, List<Integer> asked,
        int index, Map<String, String> args, String base,
        Map<Long, Shard> lostAt, Batch batch)
    {
        Map<Long, Shard> before = new HashMap<>();
        boolean adds = path.equals("/add");
        boolean onlyNew = args.containsKey("only");
        long start = System.nanoTime();

        if (!args.containsKey("older") && !args.containsKey("set")) {
            // else no id shows what a lost try changed

            synchronized (this) {
                before.putAll(lostAt == null ? shards : lostAt);
            }
        }

        for (int rounds = 0; ; rounds++) {
            Exchange<Map<String, Object>> got;

            try {
                got = asked(path, urls, asked, args, base, start);

            } catch (Failure e) {
                if (rounds > 0) {
                    return;     // the items are in the batch, and unsure
                }

                if (!(e instanceof Problem) || asked.size() == 1
                    || !((Problem) e).tooLarge())
                {
                    throw e;
                }

                int half = asked.size() / 2;
                Map<Long, Shard> at = e.unsure ? before : lostAt;

                ask(path, urls, asked.subList(0, half), index, args, base, at,
                    batch);
                ask(path, urls, asked.subList(half, asked.size()), index,
                    args, base, at, batch);
                return;
            }

            Map<String, Object> answer = got.value;
            Map<Long, Shard> found = Shard.of(answer);
            boolean lost = adds && (got.lost || rounds > 0 || lostAt != null);
            List<Integer> unknown = new ArrayList<>();
            Batch one = new Batch();

            learn(found);

            if (rounds > 0) {
                Set<Integer> again = new HashSet<>();

                asked.forEach(at -> again.add(index + at));
                batch.items.removeIf(item -> again.contains(item.index));
                batch.errors -= again.size();
            }

            one.added = count(answer, "new");
            one.due = count(answer, "due");
            one.seen = count(answer, "seen");
            one.unseen = count(answer, "unseen");
            one.errors = count(answer, "errors");
            one.nextId = (Long) answer.get("next_id");
            one.epoch = (Long) answer.get("epoch");
            one.tries = got.tries;

            int n = 0;

            for (Map<String, Object> r : list(answer)) {
                int at = asked.get(r.containsKey("index")
                    ? ((Long) r.get("index")).intValue() : n);
                Long id = (Long) r.get("id");
                boolean seen = "seen".equals(r.get("status"));
                boolean open = adds && "unavailable".equals(r.get("status"))
                    && (lost || String.valueOf(r.get("reason"))
                        .startsWith("unknown:"));

                if (open) {
                    r.put("url", resolved(urls.get(at), base));
                    unknown.add(at);
                }

                Item item = new Item(index + at, r, open
                    || seen && lost && !Shard.given(id, before, found));

                if (rounds == 0 || !onlyNew || item.mine() || item.unsure) {
                    one.items.add(item);
                }

                if (id != null && r.get("url") != null
                    && (seen || "new".equals(r.get("status"))))
                {
                    cache.put(urls.get(at), base, Map.of("id", id, "status",
                        "seen", "url", r.get("url")));
                }

                n++;
            }

            batch.join(one);

            double wait = backoff(rounds);

            if (unknown.isEmpty() || (System.nanoTime() - start) / 1e9 + wait
                > options.patience.toMillis() / 1e3)
            {
                return;
            }

            pause(wait);
            asked = unknown;
            args = new TreeMap<>(args);
            args.remove("only");        // which leaves out what is unsure
        }
    }

    /** A URL to fetch, where the service has named none. */
    private static String resolved(String link, String base)
    {
        try {
            return URI.create(base == null ? "" : base).resolve(link)
                .toString();

        } catch (IllegalArgumentException e) {
            return link;
        }
    }

    /** One request of ask(), as often as it takes since the start. */
    private Exchange<Map<String, Object>> asked(String path,
        List<String> urls, List<Integer> asked, Map<String, String> args,
        String base, long start)
    {
        List<String> part = new ArrayList<>();

        for (int at : asked) {
            part.add(urls.get(at));
        }

        String payload = "{\"urls\":[" + join(part) + "]"
            + (base == null ? "}" : ",\"base\":" + encoded(base) + "}");

        return exchange("POST", path, args, payload, reply -> {
            Map<String, Object> answer = object(reply);

            if (!args.containsKey("only")) {
                expect(answer, asked.size());
            }

            return answer;
        }, options.patience, start);
    }

    /**
     * Remembers how many ids were given, at least.  The cache does not outlive
     * an epoch of any shard.
     */
    private synchronized void learn(Map<Long, Shard> found)
    {
        found.forEach((number, now) -> {
            Shard before = shards.put(number, now);

            if (before != null && Objects.equals(before.epoch, now.epoch)) {
                now.nextId = Math.max(now.nextId, before.nextId);

            } else if (before != null) {
                cache.clear();
            }
        });
    }


    /** What is known of a shard; a store alone is shard 0. */
    private static final class Shard {
        final Long epoch;
        long nextId;            // at least so many ids were given

        Shard(Object epoch, Object nextId)
        {
            this.epoch = (Long) epoch;
            this.nextId = nextId == null ? 0 : (Long) nextId;
        }

        /** Of an answer; the top bits of an id name its shard. */
        @SuppressWarnings("unchecked")
        static Map<Long, Shard> of(Map<String, Object> answer)
        {
            Map<Long, Shard> found = new HashMap<>();

            if (answer.containsKey("next_ids")) {       // of a router
                Map<String, Object> epochs =
                    (Map<String, Object>) answer.get("epochs");

                ((Map<String, Object>) answer.get("next_ids")).forEach(
                    (number, nextId) -> found.put(Long.valueOf(number),
                        new Shard(epochs.get(number), nextId)));

            } else {
                Shard only = new Shard(answer.get("epoch"),
                    answer.get("next_id"));

                for (Map<String, Object> r : list(answer)) {
                    only.nextId = Math.max(only.nextId, count(r, "id"));
                }

                found.put(only.nextId >> 40, only);
            }

            for (Map<String, Object> r : list(answer)) {
                Shard shard = r.get("id") == null ? null
                    : found.get((Long) r.get("id") >> 40);

                if (shard != null) {
                    shard.nextId = Math.max(shard.nextId,
                        (Long) r.get("id") + 1);
                }
            }

            return found;
        }

        /**
         * Whether an id was given before.  Ids of another epoch say nothing,
         * and a filter has none.
         */
        static boolean given(Long id, Map<Long, Shard> before,
            Map<Long, Shard> found)
        {
            Shard b = id == null ? null : before.get(id >> 40);
            Shard f = id == null ? null : found.get(id >> 40);

            return b != null && f != null && id < b.nextId
                && Objects.equals(b.epoch, f.epoch);
        }
    }


    /** Posts items, and returns one result for each. */
    private Exchange<List<Map<String, Object>>> results(String path,
        Map<String, String> args, String payload, int count)
    {
        return exchange("POST", path, args, payload, reply -> {
            Map<String, Object> answer = object(reply);

            expect(answer, count);
            return list(answer);
        });
    }

    private static long count(Map<String, Object> answer, String name)
    {
        Object n = answer.get(name);

        return n == null ? 0 : (Long) n;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> list(Map<String, Object> answer)
    {
        return (List<Map<String, Object>>) Objects.requireNonNull(
            answer.get("results"), "no results");
    }

    private static void expect(Map<String, Object> answer, int count)
    {
        int n = list(answer).size();

        if (n != count) {
            throw new IllegalArgumentException(n + " results for " + count
                + " items");
        }
    }

    /** Hands on values in parts that fit in one request. */
    private <T> void each(Iterable<T> values, int used,
        Consumer<List<T>> consumer)
    {
        List<T> part = new ArrayList<>();
        int bytes = used + 64;

        for (T value : values) {
            int need = size(value) + 1;

            if (!part.isEmpty() && (part.size() == options.batch
                || bytes + need > options.body))
            {
                consumer.accept(part);
                part = new ArrayList<>();
                bytes = used + 64;
            }

            part.add(value);
            bytes += need;
        }

        if (!part.isEmpty()) {
            consumer.accept(part);
        }
    }


    // --- one request -------------------------------------------------------


    private static final class Reply {
        final int status;
        final HttpHeaders headers;
        final String body;

        Reply(HttpResponse<byte[]> response)
        {
            status = response.statusCode();
            headers = response.headers();
            body = new String(response.body(), StandardCharsets.UTF_8);
        }
    }


    private static final class Exchange<T> {
        T value;
        int tries;
        boolean lost;       // a lost try may have changed the store before
    }


    private <T> Exchange<T> exchange(String method, String path,
        Map<String, String> args, String payload, Function<Reply, T> read)
    {
        return exchange(method, path, args, payload, read, options.patience,
            System.nanoTime());
    }

    /** `read` throws for an answer that is not whole; patience has begun. */
    private <T> Exchange<T> exchange(String method, String path,
        Map<String, String> args, String payload, Function<Reply, T> read,
        Duration patience, long start)
    {
        HttpRequest request = request(method, path, args, payload);
        Exchange<T> exchange = new Exchange<>();
        int lost = 0;
        String where = method + " " + address + path;

        for (int pauses = 0; ; pauses++) {
            Failure fault;
            Double after = null;

            exchange.tries++;

            try {
                Reply reply = send(request);
                answered = true;
                silent = false;

                if (reply.status >= 200 && reply.status < 300) {
                    exchange.value = read.apply(reply);

                    // what was new to a lost try is so again, if it says so

                    exchange.lost = lost > 0 && !reply.headers
                        .firstValue("Idempotency-Status").orElse("")
                        .equals("repeated");
                    return exchange;
                }

                after = reply.headers.firstValue("Retry-After")
                    .map(UrlStore::retryAfter).orElse(null);
                Problem problem =
                    new Problem(reply.status, document(reply), after, where);
                lost += problem.applied() ? 1 : 0;
                fault = problem;

            } catch (IOException | RuntimeException e) {
                fault = new NoAnswer(where + ": " + e, e);

                if (!(e instanceof ConnectException
                    || e instanceof HttpConnectTimeoutException))
                {
                    lost++;

                    // HttpClient does not tell a connection that an earlier
                    // request had used, which the service may have closed

                    if (answered && e instanceof IOException
                        && !(e.getCause() instanceof TimeoutException)
                        && exchange.tries == pauses + 1)
                    {
                        pauses--;
                        continue;
                    }
                }
            }

            double wait = (after == null ? 0 : after) + backoff(pauses);

            if (fault instanceof Problem && after == null
                && !RETRIED.contains(((Problem) fault).status)
                || (System.nanoTime() - start) / 1e9 + wait
                    > patience.toMillis() / 1e3
                || Thread.currentThread().isInterrupted())
            {
                fault.tries = exchange.tries;
                fault.unsure = lost > 0;
                throw fault;
            }

            if (fault instanceof NoAnswer && !silent) {
                silent = true;
                System.getLogger("urlstore").log(System.Logger.Level.WARNING,
                    fault.getMessage() + "; it is tried again for "
                    + patience.toMillis() / 1e3 + " s");
            }

            pause(wait);
        }
    }

    private HttpRequest request(String method, String path,
        Map<String, String> args, String payload)
    {
        StringBuilder target = new StringBuilder(address + path);
        char mark = '?';

        for (Map.Entry<String, String> arg : args.entrySet()) {
            target.append(mark).append(arg.getKey()).append('=')
                .append(URLEncoder.encode(arg.getValue(),
                    StandardCharsets.UTF_8));
            mark = '&';
        }

        HttpRequest.Builder builder = HttpRequest.newBuilder()
            .uri(URI.create(target.toString()))
            .header("Accept", path.equals("/urls") ? NDJSON : JSON);

        headers.forEach(builder::header);

        if (method.equals("POST") && (path.equals("/add")
            || path.equals("/claim") || path.startsWith("/mark/")
            || path.startsWith("/set/")))
        {
            builder.header("Idempotency-Key",
                '"' + UUID.randomUUID().toString() + '"');
        }

        if (payload == null) {
            return builder.method(method, BodyPublishers.noBody()).build();
        }

        byte[] body = utf8(payload);

        builder.header("Content-Type", JSON);

        if (options.gzip && body.length >= GZIP_FROM) {
            body = packed(body);
            builder.header("Content-Encoding", "gzip");
        }

        return builder.method(method, BodyPublishers.ofByteArray(body))
            .build();
    }

    /** Sends a request, once. */
    private Reply send(HttpRequest request) throws IOException
    {
        CompletableFuture<HttpResponse<byte[]>> response =
            client.sendAsync(request, BodyHandlers.ofByteArray());

        try {
            return new Reply(response.get(options.timeout.toMillis(),
                TimeUnit.MILLISECONDS));

        } catch (TimeoutException e) {
            response.cancel(true);
            throw new IOException("no answer for " + options.timeout, e);

        } catch (InterruptedException e) {
            response.cancel(true);
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);

        } catch (ExecutionException e) {
            if (e.getCause() instanceof IOException) {
                throw (IOException) e.getCause();
            }

            throw new IOException(e.getCause());
        }
    }

    private static void pause(double seconds)
    {
        try {
            Thread.sleep((long) (seconds * 1000));

        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new NoAnswer("interrupted", e);
        }
    }

    /** Seconds before the next try, after so many pauses. */
    private static double backoff(int pauses)
    {
        return ThreadLocalRandom.current().nextDouble(0.5, 1)
            * Math.min(BACKOFF_MAX, BACKOFF * (1 << Math.min(pauses, 20)));
    }

    /** Seconds, of a number of seconds or an HTTP date; null: neither. */
    private static Double retryAfter(String value)
    {
        if (value.matches("[0-9]{1,9}")) {
            return Double.valueOf(value);
        }

        try {
            Duration left = Duration.between(Instant.now(),
                ZonedDateTime.parse(value,
                    DateTimeFormatter.RFC_1123_DATE_TIME));

            return Math.max(0, left.toMillis() / 1e3);

        } catch (DateTimeException e) {
            return null;
        }
    }

    /** The problem document of a refusal; empty if there is none. */
    private static Map<String, Object> document(Reply reply)
    {
        if (!reply.headers.firstValue("Content-Type").orElse("")
            .contains("json"))
        {
            return Map.of();
        }

        try {
            return object(reply);

        } catch (RuntimeException e) {
            return Map.of();
        }
    }

    private static byte[] packed(byte[] body)
    {
        ByteArrayOutputStream out = new ByteArrayOutputStream();

        try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
            gzip.write(body);

        } catch (IOException e) {
            throw new IllegalStateException(e);     // memory does not fail
        }

        return out.toByteArray();
    }

    private static void put(Map<String, String> args, String name,
        String value)
    {
        if (value != null) {
            args.put(name, value);
        }
    }


    // --- the cache ---------------------------------------------------------


    /**
     * A bounded memory of URLs that the store is known to have; the least
     * recently used one leaves.  The key of a link is what decides how the
     * service resolves it: an absolute http(s) link does not depend on its
     * base; one that begins with one slash depends on the base's scheme and
     * host; any other on all of it.
     */
    private static final class Cache {
        private static final Pattern ABSOLUTE =
            Pattern.compile("(?i)https?://");
        private static final Pattern ONE_SLASH =
            Pattern.compile("/(?![/\\\\\t\n\r])");
        private static final Pattern ORIGIN =
            Pattern.compile("(?i)https?://[^/\\\\?#\\s]+(?=[/\\\\?#]|\\z)");

        private final int size;
        private final Map<String, Map<String, Object>> known;

        Cache(int size)
        {
            this.size = size;
            known = new LinkedHashMap<>(16, .75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(
                    Map.Entry<String, Map<String, Object>> eldest)
                {
                    return size() > Cache.this.size;
                }
            };
        }

        private static String key(String url, String base)
        {
            if (base == null || ABSOLUTE.matcher(url).lookingAt()) {
                return url;
            }

            if (ONE_SLASH.matcher(url).lookingAt()) {
                Matcher origin = ORIGIN.matcher(base);

                if (origin.lookingAt()) {
                    return origin.group() + url;
                }
            }

            return base.length() + " " + base + url;
        }

        synchronized Map<String, Object> get(String url, String base)
        {
            return size == 0 ? null : known.get(key(url, base));
        }

        synchronized void put(String url, String base,
            Map<String, Object> answer)
        {
            if (size > 0) {
                known.put(key(url, base), answer);
            }
        }

        synchronized void clear()
        {
            known.clear();
        }
    }


    // --- JSON --------------------------------------------------------------


    private static byte[] utf8(String text)
    {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static int size(Object value)
    {
        return utf8(encoded(value)).length;
    }

    private static String join(List<?> values)
    {
        StringBuilder out = new StringBuilder();

        for (Object value : values) {
            out.append(out.length() == 0 ? "" : ",").append(encoded(value));
        }

        return out.toString();
    }

    /**
     * A number or a string.  A lone surrogate, which no URL has, becomes
     * U+FFFD as in browsers; the service refuses a body with one.
     */
    private static String encoded(Object value)
    {
        if (value instanceof Number) {
            return Long.toString(((Number) value).longValue());
        }

        StringBuilder out = new StringBuilder("\"");

        value.toString().codePoints().forEach(c -> {
            if (c == '"' || c == '\\') {
                out.append('\\').append((char) c);

            } else if (c < 32) {
                out.append(String.format("\\u%04x", c));

            } else {
                out.appendCodePoint(c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
            }
        });

        return out.append('"').toString();
    }

    private static Map<String, Object> object(Reply reply)
    {
        return object(reply.body);
    }

    /** Reads a JSON object; throws IllegalArgumentException for all else. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> object(String text)
    {
        Object value = new Reader(text).read();

        if (!(value instanceof Map)) {
            throw new IllegalArgumentException("no JSON object");
        }

        return (Map<String, Object>) value;
    }


    /** Objects are maps, arrays lists, numbers Long or Double. */
    private static final class Reader {
        private static final int MAX_DEPTH = 64;

        private final String text;
        private int at;
        private int depth;

        Reader(String text)
        {
            this.text = text;
        }

        Object read()
        {
            Object value = value();

            if (blank() != 0) {
                throw fault();
            }

            return value;
        }

        private Object value()
        {
            switch (blank()) {
            case '{':
                return map();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
            }
        }

        /** The next character that is no blank; 0 at the end. */
        private char blank()
        {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at))
                >= 0)
            {
                at++;
            }

            return at < text.length() ? text.charAt(at) : 0;
        }

        private boolean skip(char c)
        {
            if (blank() != c) {
                return false;
            }

            at++;
            return true;
        }

        private void need(char c)
        {
            if (!skip(c)) {
                throw fault();
            }
        }

        private void enter(char c)
        {
            need(c);

            if (++depth > MAX_DEPTH) {
                throw fault();
            }
        }

        private Map<String, Object> map()
        {
            Map<String, Object> map = new LinkedHashMap<>();

            enter('{');

            if (!skip('}')) {
                do {
                    blank();
                    String name = string();
                    need(':');
                    map.put(name, value());
                } while (skip(','));

                need('}');
            }

            depth--;
            return map;
        }

        private List<Object> array()
        {
            List<Object> list = new ArrayList<>();

            enter('[');

            if (!skip(']')) {
                do {
                    list.add(value());
                } while (skip(','));

                need(']');
            }

            depth--;
            return list;
        }

        private String string()
        {
            StringBuilder out = new StringBuilder();

            need('"');

            while (at < text.length()) {
                char c = text.charAt(at++);

                if (c == '"') {
                    return out.toString();
                }

                out.append(c == '\\' ? escape() : c);
            }

            throw fault();
        }

        private char escape()
        {
            char c = at < text.length() ? text.charAt(at++) : 0;
            int known = "\"\\/bfnrt".indexOf(c);

            if (c == 'u' && at + 4 <= text.length()) {
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at),
                    16);
            }

            if (known < 0) {
                throw fault();
            }

            return "\"\\/\b\f\n\r\t".charAt(known);
        }

        private Object word(String word, Object value)
        {
            if (!text.startsWith(word, at)) {
                throw fault();
            }

            at += word.length();
            return value;
        }

        private Object number()
        {
            int start = at;

            while (at < text.length() && "+-.0123456789eE".indexOf(
                text.charAt(at)) >= 0)
            {
                at++;
            }

            String number = text.substring(start, at);

            if (number.matches("-?[0-9]{1,18}")) {
                return Long.valueOf(number);
            }

            return Double.valueOf(number);
        }

        private IllegalArgumentException fault()
        {
            return new IllegalArgumentException("no JSON at character " + at);
        }
    }
}
