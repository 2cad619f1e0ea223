package org.apache.stormcrawler.parse;

public class Outlink {
    private final String url;

    public Outlink(String url) { this.url = url; }

    public String getTargetURL() { return url; }
}
