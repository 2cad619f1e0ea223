package org.archive.modules;

import java.net.URISyntaxException;
import org.archive.net.UURI;

public class CrawlURI {
    private final UURI uri;
    private final UURI via;
    private final String path;
    private boolean force;

    public CrawlURI(UURI uri, String path, UURI via)
    {
        this.uri = uri;
        this.path = path;
        this.via = via;
    }

    public static CrawlURI fromHopsViaString(String text)
        throws URISyntaxException
    {
        String[] part = text.split(" ");

        return new CrawlURI(new UURI(part[0]), part[1], new UURI(part[2]));
    }

    public UURI getUURI() { return uri; }

    public String getURI() { return uri.toCustomString(); }

    /** By a policy without rules. */
    public String getCanonicalString() { return getURI(); }

    public UURI getVia() { return via; }

    public String getPathFromSeed() { return path; }

    public boolean isLocation() { return path.endsWith("R"); }

    public boolean forceFetch() { return force; }

    public void setForceFetch(boolean on) { force = on; }
}
