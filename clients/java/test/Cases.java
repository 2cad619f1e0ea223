import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Does what clients/cases.json says: a job a line in, its results out.
 *
 *     javac -d DIR UrlStore.java test/Cases.java; java -cp DIR Cases < jobs
 */
final class Cases {

    private Cases() { }


    private static Duration seconds(Object n)
    {
        return Duration.ofNanos((long) (((Number) n).doubleValue() * 1e9));
    }


    private static UrlStore store(Map<String, Object> job)
    {
        UrlStore.Options o = new UrlStore.Options();

        map(job.get("options")).forEach((name, value) -> {
            switch (name) {
            case "timeout":
                o.timeout(seconds(value));
                break;
            case "patience":
                o.patience(seconds(value));
                break;
            case "batch":
                o.batch(((Long) value).intValue());
                break;
            case "body":
                o.body(((Long) value).intValue());
                break;
            case "cache":
                o.cache(((Long) value).intValue());
                break;
            case "gzip":
                o.gzip((Boolean) value);
                break;
            default:
                throw new IllegalArgumentException(name);
            }
        });

        return new UrlStore((String) job.get("address"), o);
    }


    private static UrlStore.Adding adding(Map<String, Object> call)
    {
        UrlStore.Adding how = new UrlStore.Adding();

        how.base((String) call.get("base"));

        if (call.get("older") instanceof String) {
            how.older((String) call.get("older"));

        } else if (call.containsKey("older")) {
            how.older(seconds(call.get("older")));
        }

        how.set((String) call.get("set"));

        if (call.containsKey("only_new")) {
            how.onlyNew();
        }

        if (call.containsKey("sites")) {
            how.sites();
        }

        return call.containsKey("times") ? how.times() : how;
    }


    private static Object make(UrlStore store, Map<String, Object> call)
        throws InterruptedException
    {
        String url = (String) call.get("url");
        String name = (String) call.get("name");
        List<Object> items = list(call.get("items"));

        switch ((String) call.get("do")) {
        case "pause":
            Thread.sleep(seconds(call.get("seconds")).toMillis());
            return null;
        case "add":
            return plain(store.add(url, adding(call)));
        case "seen":
            return plain(store.seen(url, adding(call)));
        case "add_all":
            return plain(store.addAll(strings(call.get("urls")),
                adding(call)));
        case "seen_all":
            return plain(store.seenAll(strings(call.get("urls")),
                adding(call)));
        case "add_stream":
            return stream(store, call);
        case "url":
            return store.url((Long) call.get("id"));
        case "urls":
            return found(store, list(call.get("ids")));
        case "delete":
            store.delete((Long) call.get("id"));
            return null;
        case "make_set":
            return store.makeSet(name);
        case "drop_set":
            store.dropSet(name);
            return null;
        case "put_in":
            return marked(store.putIn(name, items));
        case "take_out":
            return marked(store.takeOut(name, items));
        case "mark":
            return marked(store.mark(name, items));
        case "unmark":
            return marked(store.unmark(name, items));
        case "claim":
            return marked(call.containsKey("clear") ? store.unclaim(items)
                : call.containsKey("at") ? store.claimAt(Instant.ofEpochSecond(
                    (Long) call.get("at")), items) : store.claim(items));
        case "feed":
            return feed(store, call);
        case "get":
            Map<String, String> args = new LinkedHashMap<>();
            map(call.get("args")).forEach((k, v) -> args.put(k, (String) v));
            return store.get((String) call.get("path"), args);
        case "health":
            return store.health(call.containsKey("write"));
        default:
            throw new IllegalArgumentException(call.toString());
        }
    }


    private static Object stream(UrlStore store, Map<String, Object> call)
    {
        List<Object> items = new ArrayList<>();
        List<Object> steps = new ArrayList<>();

        store.addStream(strings(call.get("urls")), adding(call),
            item -> items.add(plain(item)),
            p -> steps.add(members("done", p.done, "new", p.added, "seen",
                p.seen, "errors", p.errors)));

        return members("items", items, "progress", steps);
    }


    private static Object found(UrlStore store, List<Object> values)
    {
        List<Long> ids = new ArrayList<>();
        List<Object> found = new ArrayList<>();

        values.forEach(id -> ids.add((Long) id));
        store.urls(ids).forEach(f -> found.add(members("id", f.id, "status",
            f.status, "url", f.url)));

        return found;
    }


    private static Object marked(List<UrlStore.Marked> all)
    {
        List<Object> marked = new ArrayList<>();

        all.forEach(m -> marked.add(members("index", m.index, "id", m.id,
            "status", m.status, "url", m.url, "reason", m.reason, "unsure",
            m.unsure)));

        return marked;
    }


    private static Object feed(UrlStore store, Map<String, Object> call)
    {
        UrlStore.Feed what = new UrlStore.Feed().from((Long) call.get("from"));
        List<Object> entries = new ArrayList<>();

        if (call.containsKey("limit")) {
            what.limit(((Long) call.get("limit")).intValue());
        }

        if (call.containsKey("set")) {
            what.set((String) call.get("set"));
        }

        if (call.containsKey("mark")) {
            what.mark((String) call.get("mark"));
        }

        if (call.containsKey("site")) {
            what.site((String) call.get("site"));
        }

        store.feed(what).forEachRemaining(e -> entries.add(members("id", e.id,
            "url", e.url, "time", e.time)));

        return entries;
    }


    private static Object plain(UrlStore.Item item)
    {
        return members("index", item.index, "id", item.id, "status",
            item.status, "url", item.url, "reason", item.reason, "new_site",
            item.newSite, "time", item.time, "stored", item.stored, "unsure",
            item.unsure);
    }


    private static List<Object> plain(List<UrlStore.Item> all)
    {
        List<Object> items = new ArrayList<>();

        all.forEach(item -> items.add(plain(item)));
        return items;
    }


    private static Object plain(UrlStore.Batch batch)
    {
        List<Object> ids = new ArrayList<>();

        batch.toFetch().forEach(item -> ids.add(item.id));

        return members("items", plain(batch.items), "new", batch.added, "due",
            batch.due, "seen", batch.seen, "unseen", batch.unseen, "errors",
            batch.errors, "next_id", batch.nextId, "epoch", batch.epoch,
            "tries", batch.tries, "to_fetch", ids);
    }


    private static Object fault(UrlStore.Failure e)
    {
        Map<String, Object> error = members("tries", e.tries, "done",
            plain(e.done), "unsure", e.unsure, "text", e.getMessage(),
            "kind", "no-answer");

        if (e instanceof UrlStore.Problem) {
            UrlStore.Problem p = (UrlStore.Problem) e;

            error.putAll(members("kind", "problem", "status", p.status,
                "document", p.document, "retry_after", p.retryAfter));
        }

        return members("error", error);
    }


    // --- JSON: the client reads it, this writes it -------------------------


    private static Map<String, Object> members(Object... all)
    {
        Map<String, Object> map = new LinkedHashMap<>();

        for (int i = 0; i < all.length; i += 2) {
            map.put((String) all[i], all[i + 1]);
        }

        return map;
    }


    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value)
    {
        return (Map<String, Object>) value;
    }


    @SuppressWarnings("unchecked")
    private static List<Object> list(Object value)
    {
        return (List<Object>) value;
    }


    private static List<String> strings(Object value)
    {
        List<String> strings = new ArrayList<>();

        list(value).forEach(s -> strings.add((String) s));
        return strings;
    }


    private static void write(StringBuilder out, Object value)
    {
        String between = "";

        if (value instanceof Map) {
            out.append('{');

            for (Map.Entry<String, Object> e : map(value).entrySet()) {
                out.append(between);
                write(out, e.getKey());
                out.append(':');
                write(out, e.getValue());
                between = ",";
            }

            out.append('}');

        } else if (value instanceof List) {
            out.append('[');

            for (Object v : list(value)) {
                out.append(between);
                write(out, v);
                between = ",";
            }

            out.append(']');

        } else if (value instanceof String) {
            out.append('"');
            ((String) value).chars().forEach(c -> out.append(
                c < 32 || c > 126 || c == '"' || c == '\\'
                    ? String.format("\\u%04x", c)
                    : Character.toString((char) c)));
            out.append('"');

        } else if (value instanceof Double
            && ((Double) value) == Math.rint((Double) value))
        {
            out.append(((Double) value).longValue());

        } else {
            out.append(value);
        }
    }


    public static void main(String[] args) throws Exception
    {
        BufferedReader in = new BufferedReader(new InputStreamReader(
            System.in, StandardCharsets.UTF_8));
        String line;

        while ((line = in.readLine()) != null) {
            Map<String, Object> job = UrlStore.object(line);
            UrlStore store = store(job);
            List<Object> results = new ArrayList<>();
            long start = System.nanoTime();

            for (Object call : list(job.get("calls"))) {
                try {
                    results.add(make(store, map(call)));

                } catch (UrlStore.Failure e) {
                    results.add(fault(e));
                }
            }

            StringBuilder out = new StringBuilder();

            write(out, members("name", job.get("name"), "results", results,
                "seconds", (System.nanoTime() - start) / 1e9));
            System.out.println(out);
        }
    }
}
