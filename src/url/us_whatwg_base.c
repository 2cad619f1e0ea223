
/*
 * What a relative URL inherits from its base.  See us_whatwg_private.h.
 */


#include "us_whatwg_private.h"


void
us_copy_base(us_parsing_t *s, size_t to)
{
    size_t           from, guard;
    us_url_t        *u;
    const us_url_t  *b;

    u = s->url;
    b = s->base;
    from = s->out - s->start;
    guard = us_url_has_authority(b) ? 0 : b->pathname_start - b->protocol_end;

    if (to > b->href.len) {
        to = b->href.len;
    }

    if (to >= b->pathname_start) {
        from += guard;
    }

    memcpy(s->out, b->href.data + from, to - from);
    s->out += to - from;

    u->protocol_end = b->protocol_end;

    if (to < b->pathname_start) {
        return;
    }

    u->username_end = b->username_end;
    u->host_start = b->host_start;
    u->host_end = b->host_end;
    u->port = b->port;
    u->pathname_start = b->pathname_start - guard;

    if (b->search_start < to) {
        u->search_start = b->search_start - guard;
    }
}
