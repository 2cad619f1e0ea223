import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.stormcrawler.parse.Outlink;
import org.apache.stormcrawler.parse.ParseFilter;
import org.apache.stormcrawler.parse.ParseResult;
import org.w3c.dom.DocumentFragment;

/**
 * Drops the outlinks of a page that some crawler has fetched, and those that
 * were erased, before they go to the status stream.  The store has all URLs,
 * and a mark on the pages that were fetched; the status index of the topology
 * holds what is to be.
 *
 * <p>A tuple that fails is replayed, and finds the same answers: what counts
 * is the mark, which a page gets when it is parsed.
 *
 * <pre>
 * { "class": "UrlStoreParseFilter", "name": "urlstore",
 *   "params": { "address": "http://127.0.0.1:8080" } }
 * </pre>
 */
public class UrlStoreParseFilter extends ParseFilter {

    private UrlStore store;


    @Override
    public void configure(Map<String, Object> stormConf, JsonNode params)
    {
        store = new UrlStore(params.get("address").asText(),
            new UrlStore.Options().cache(100000)
                .patience(Duration.ofSeconds(10)));
    }


    @Override
    public void filter(String url, byte[] content, DocumentFragment doc,
        ParseResult parse)
    {
        List<String> links = new ArrayList<>();
        List<Outlink> unseen = new ArrayList<>();

        for (Outlink link : parse.getOutlinks()) {
            links.add(link.getTargetURL());
        }

        store.add(url);
        store.mark("visited", List.of(url));

        List<UrlStore.Item> visited = store.seenAll(links,
            new UrlStore.Adding().base(url).set("visited")).items;

        // an erased URL is refused here, and "unseen" there

        for (UrlStore.Item item : store.addAll(links,
            new UrlStore.Adding().base(url)).items)
        {
            if (!item.status.equals("refused")
                && !item.status.equals("rejected")
                && !visited.get(item.index).status.equals("seen"))
            {
                unseen.add(parse.getOutlinks().get(item.index));
            }
        }

        parse.setOutlinks(unseen);
    }
}
