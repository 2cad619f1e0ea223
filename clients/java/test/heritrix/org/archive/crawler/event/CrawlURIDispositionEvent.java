package org.archive.crawler.event;

import org.archive.modules.CrawlURI;
import org.springframework.context.ApplicationEvent;

public class CrawlURIDispositionEvent extends ApplicationEvent {
    private static final long serialVersionUID = 1;

    private final transient CrawlURI uri;
    private final Disposition disposition;

    public enum Disposition {
        SUCCEEDED, FAILED, DISREGARDED, DEFERRED_FOR_RETRY
    }

    public CrawlURIDispositionEvent(Object source, CrawlURI uri,
        Disposition disposition)
    {
        super(source);
        this.uri = uri;
        this.disposition = disposition;
    }

    public CrawlURI getCrawlURI() { return uri; }

    public Disposition getDisposition() { return disposition; }
}
