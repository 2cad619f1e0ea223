package org.archive.crawler.datamodel;

import java.io.File;
import org.archive.modules.CrawlURI;

public interface UriUniqFilter {
    long count();

    long addedCount();

    long pending();

    void setDestination(CrawlUriReceiver r);

    void add(String key, CrawlURI uri);

    void addNow(String key, CrawlURI uri);

    void addForce(String key, CrawlURI uri);

    void note(String key);

    void forget(String key, CrawlURI uri);

    long requestFlush();

    void close();

    void setProfileLog(File f);

    interface CrawlUriReceiver {
        void receive(CrawlURI uri);
    }
}
