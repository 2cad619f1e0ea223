package org.apache.stormcrawler.parse;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.w3c.dom.DocumentFragment;

public abstract class ParseFilter {
    public void configure(Map<String, Object> conf, JsonNode params) { }

    public abstract void filter(String url, byte[] content,
        DocumentFragment doc, ParseResult parse);
}
