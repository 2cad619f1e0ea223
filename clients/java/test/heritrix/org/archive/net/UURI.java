package org.archive.net;

import java.net.URI;
import java.net.URISyntaxException;

public class UURI {
    private final URI uri;

    public UURI(String text) throws URISyntaxException
    {
        uri = new URI(text);
    }

    public URI uri() { return uri; }

    public String toCustomString() { return uri.toString(); }
}
