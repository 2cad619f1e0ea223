
/*
 * The parts of a serialized URL.  See us_url.h.
 */


#include "us_url.h"


static us_str_t
us_url_part(const us_url_t *u, size_t from, size_t to)
{
    us_str_t  s;

    s.data = u->href.data + from;
    s.len = to - from;

    return s;
}


us_str_t
us_url_hostname(const us_url_t *u)
{
    size_t  from;

    from = u->host_start;

    if (from < u->host_end && u->href.data[from] == '@') {
        from++;
    }

    return us_url_part(u, from, u->host_end);
}


us_str_t
us_url_host(const us_url_t *u)
{
    us_str_t  s;

    s = us_url_hostname(u);

    if (u->port != US_URL_OMITTED) {
        s.len = u->href.data + u->pathname_start - s.data;
    }

    return s;
}


us_str_t
us_url_pathname(const us_url_t *u)
{
    size_t  to;

    to = u->search_start != US_URL_OMITTED ? u->search_start
         : u->hash_start != US_URL_OMITTED ? u->hash_start : u->href.len;

    return us_url_part(u, u->pathname_start, to);
}


us_str_t
us_url_search(const us_url_t *u)
{
    size_t  from, to;

    to = u->hash_start != US_URL_OMITTED ? u->hash_start : u->href.len;
    from = u->search_start != US_URL_OMITTED ? u->search_start : to;

    return us_url_part(u, from, to);
}
