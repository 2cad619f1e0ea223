package org.apache.stormcrawler.parse;

import java.util.List;

public class ParseResult {
    private List<Outlink> links;

    public List<Outlink> getOutlinks() { return links; }

    public void setOutlinks(List<Outlink> links) { this.links = links; }
}
