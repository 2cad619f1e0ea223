// The main calls, with what Java 11 has (text in, text out: no JSON library):
//
//     java examples/Example.java http://127.0.0.1:8080

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

public class Example {

    static final HttpClient client = HttpClient.newHttpClient();
    static String store = "http://127.0.0.1:8080";

    static List<String> call(String path, List<String> lines)
        throws IOException, InterruptedException
    {
        HttpRequest.Builder request = HttpRequest.newBuilder()
            .uri(URI.create(store + path))
            .header("Accept", "text/plain");

        if (lines != null) {
            request.header("Content-Type", "text/plain")
                .POST(BodyPublishers.ofString(String.join("\n", lines)));
        }

        var answer = client.send(request.build(), BodyHandlers.ofString());

        if (answer.statusCode() >= 400) {
            throw new IOException(path + ": " + answer.statusCode());
        }

        return answer.body().lines().collect(Collectors.toList());
    }

    static String escape(String s)
    {
        return URLEncoder.encode(s, StandardCharsets.UTF_8);
    }

    // Is this URL new?  It is added if so.
    static String addOne(String url) throws Exception
    {
        return call("/add", List.of(url)).get(0);
    }

    // All links of a page, as they stand in it; one answer line for each.
    static List<String> addPage(String base, List<String> links)
        throws Exception
    {
        return call("/add?base=" + escape(base), links);
    }

    // Is it known?  Adds nothing.
    static String seen(String url) throws Exception
    {
        return call("/seen?url=" + escape(url), null).get(0);
    }

    // id -> URL, and the same for many.
    static String url(long id) throws Exception
    {
        return call("/url/" + id, null).get(0);
    }

    static List<String> urls(List<String> ids) throws Exception
    {
        return call("/url", ids);
    }

    // Everything from an id on: an export, and a feed of new URLs.
    static void since(long from) throws Exception
    {
        for ( ;; ) {
            List<String> lines = call("/urls?limit=1000&from=" + from, null);

            if (lines.isEmpty()) {
                return;
            }

            for (String line : lines) {
                System.out.println(line);
                from = Long.parseLong(line.split("\t")[0]) + 1;
            }
        }
    }

    public static void main(String[] args) throws Exception
    {
        String page = "http://example.com/shop/list.html";

        if (args.length > 0) {
            store = args[0];
        }

        System.out.println(addOne(page));
        addPage(page, List.of("item?id=7", "/about.html",
                              "HTTP://WWW.Example.com/about.html#team",
                              "ftp://example.com/"))
            .forEach(System.out::println);
        System.out.println(seen("http://example.com/shop/./item?id=7"));
        System.out.println(seen("http://example.com/never"));
        System.out.println(url(1));
        urls(List.of("0", "2", "99")).forEach(System.out::println);
        since(0);
    }
}
