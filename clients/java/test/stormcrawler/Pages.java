import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.stormcrawler.parse.Outlink;
import org.apache.stormcrawler.parse.ParseResult;

/**
 * Filters the outlinks of pages, and prints what is left of them, a line for
 * each page.
 *
 *     java Pages ADDRESS PAGE,LINK,... ...
 */
public final class Pages {

    private static final class Text extends JsonNode {
        private final String text;

        Text(String text) { this.text = text; }

        @Override
        public JsonNode get(String name) { return this; }

        @Override
        public String asText() { return text; }
    }

    private Pages() { }

    public static void main(String[] args)
    {
        UrlStoreParseFilter filter = new UrlStoreParseFilter();

        filter.configure(Map.of(), new Text(args[0]));

        for (String page : List.of(args).subList(1, args.length)) {
            String[] urls = page.split(",");
            List<Outlink> links = new ArrayList<>();
            List<String> left = new ArrayList<>();
            ParseResult parse = new ParseResult();

            for (String url : List.of(urls).subList(1, urls.length)) {
                links.add(new Outlink(url));
            }

            parse.setOutlinks(links);
            filter.filter(urls[0], null, null, parse);
            parse.getOutlinks().forEach(link -> left.add(link.getTargetURL()));
            System.out.println(String.join(" ", left));
        }
    }
}
