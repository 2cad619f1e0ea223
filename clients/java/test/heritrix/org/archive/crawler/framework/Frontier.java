package org.archive.crawler.framework;

import org.archive.modules.CrawlURI;

public interface Frontier {
    void schedule(CrawlURI uri);
}
