import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.archive.crawler.datamodel.UriUniqFilter.CrawlUriReceiver;
import org.archive.crawler.event.CrawlURIDispositionEvent;
import org.archive.crawler.event.CrawlURIDispositionEvent.Disposition;
import org.archive.crawler.framework.Frontier;
import org.archive.modules.CrawlURI;
import org.archive.net.UURI;

/**
 * Crawls a site with the filter for Heritrix, by the calls that Heritrix makes
 * of it, in their order: those of its WorkQueueFrontier, CandidatesProcessor,
 * ToeThread, FrontierJournal and CheckpointService, as read in 5ada2a78.
 *
 *     java Crawl STORE START PROXY RESUME
 *
 * A queue for each host, from which one page at a time is fetched; a page is
 * preceded by its host's dns: and robots.txt, which are forced.
 */
public final class Crawl implements CrawlUriReceiver, Frontier {

    private static final int TOE_THREADS = 8;
    private static final Pattern HREF = Pattern.compile("href=\"([^\"]*)\"");

    private final UrlStoreUriUniqFilter filter = new UrlStoreUriUniqFilter();
    private final HttpClient http;

    private final Map<String, Queue<CrawlURI>> queues = new TreeMap<>();
    private final Set<String> inProcess = new HashSet<>();
    private final Set<String> prepared = ConcurrentHashMap.newKeySet();
    private final AtomicLong queued = new AtomicLong();
    private boolean started;
    private volatile boolean finished;


    private Crawl(String proxy)
    {
        URI at = URI.create(proxy);

        http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .proxy(ProxySelector.of(new InetSocketAddress(at.getHost(),
                at.getPort()))).build();
    }


    public static void main(String[] args) throws Exception
    {
        new Crawl(args[2]).crawl(args[0], args[1], args[3].equals("1"));
    }

    private void crawl(String store, String start, boolean resume)
        throws Exception
    {
        filter.setAddress(store);
        filter.setResume(resume);
        filter.setDestination(this);
        started = true;                 // the queues come after it

        CrawlURI seed = new CrawlURI(new UURI(start), "", null);

        schedule(seed);

        Thread[] toes = new Thread[TOE_THREADS];

        for (int i = 0; i < toes.length; i++) {
            toes[i] = new Thread(this::toe);
            toes[i].start();
        }

        do {
            Thread.sleep(250);
        } while (queued.get() != 0 || filter.pending() != 0);

        finished = true;

        for (Thread toe : toes) {
            toe.join();
        }

        synchronized (this) {
            if (!queues.values().stream().allMatch(Queue::isEmpty)) {
                throw new IllegalStateException("not all was crawled");
            }

            started = false;            // the queues are closed first
        }

        filter.close();
    }


    // --- the frontier -----------------------------------------------------


    @Override
    public void schedule(CrawlURI uri)
    {
        if (uri.forceFetch()) {
            filter.addForce(uri.getCanonicalString(), uri);

        } else {
            filter.add(uri.getCanonicalString(), uri);
        }
    }

    @Override
    public synchronized void receive(CrawlURI uri)
    {
        if (!started) {
            throw new IllegalStateException("no queues");
        }

        queues.computeIfAbsent(host(uri), h -> new ArrayDeque<>()).add(uri);
        queued.incrementAndGet();
    }

    private static String host(CrawlURI uri)
    {
        String host = uri.getUURI().uri().getHost();

        return host == null ? uri.getURI().replaceFirst("^\\w+:", "") : host;
    }

    /** What a toe thread gets; it stays in its queue until it is finished. */
    private synchronized CrawlURI next()
    {
        for (Map.Entry<String, Queue<CrawlURI>> queue : queues.entrySet()) {
            if (!queue.getValue().isEmpty() && inProcess.add(queue.getKey())) {
                return queue.getValue().peek();
            }
        }

        if (inProcess.isEmpty()) {
            filter.requestFlush();
        }

        return null;
    }

    private synchronized void finished(CrawlURI uri, Disposition disposition)
    {
        Queue<CrawlURI> queue = queues.get(host(uri));

        queue.remove();

        if (disposition == Disposition.DEFERRED_FOR_RETRY) {
            queue.add(uri);

        } else {
            queued.decrementAndGet();
        }

        filter.onApplicationEvent(new CrawlURIDispositionEvent(this, uri,
            disposition));
        inProcess.remove(host(uri));
    }


    // --- toe threads ------------------------------------------------------


    private void toe()
    {
        while (!finished) {
            CrawlURI uri = next();

            try {
                if (uri == null) {
                    Thread.sleep(25);

                } else {
                    finished(uri, process(uri));
                }

            } catch (InterruptedException e) {
                return;

            } catch (IOException | URISyntaxException e) {
                finished(uri, Disposition.FAILED);
            }
        }
    }

    private Disposition process(CrawlURI uri)
        throws InterruptedException, IOException, URISyntaxException
    {
        String scheme = uri.getUURI().uri().getScheme();

        if (scheme.equals("dns")) {
            return Disposition.SUCCEEDED;
        }

        if (!scheme.equals("http")) {
            return Disposition.FAILED;
        }

        if (!uri.getPathFromSeed().endsWith("P") && prepared.add(host(uri))) {
            require("dns:" + host(uri), uri);
            require("http://" + host(uri) + "/robots.txt", uri);
            return Disposition.DEFERRED_FOR_RETRY;
        }

        HttpResponse<String> answer = http.send(HttpRequest.newBuilder()
            .uri(uri.getUURI().uri()).header("User-Agent", "heritrix").build(),
            BodyHandlers.ofString());

        if (answer.statusCode() == 301) {
            candidate(answer.headers().firstValue("Location").orElseThrow(),
                uri, "R");
        }

        if (answer.statusCode() == 200) {
            Matcher link = HREF.matcher(answer.body());

            while (link.find()) {
                candidate(link.group(1).replace("&amp;", "&"), uri, "L");
            }
        }

        return Disposition.SUCCEEDED;
    }

    private void require(String url, CrawlURI source) throws URISyntaxException
    {
        CrawlURI uri = new CrawlURI(new UURI(url), source.getPathFromSeed()
            + "P", source.getUURI());

        uri.setForceFetch(true);
        schedule(uri);
    }

    private void candidate(String link, CrawlURI source, String hop)
    {
        UURI url;

        try {
            url = new UURI(source.getUURI().uri().resolve(link).toString());

        } catch (IllegalArgumentException | URISyntaxException e) {
            return;             // what cannot be an URI is no candidate
        }

        String scheme = url.uri().getScheme();

        if (scheme.equals("http") || scheme.equals("ftp")) {
            schedule(new CrawlURI(url, source.getPathFromSeed() + hop,
                source.getUURI()));
        }
    }
}
