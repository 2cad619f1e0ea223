
/*
 * See us_lookup.h.
 */


#include "us_lookup.h"
#include "../us_text.h"


int
us_lookup_site(const us_norm_t *norm, us_norm_ws_t *ws, us_str_t name,
    uint8_t buf[US_LOOKUP_BUF], us_canon_t *canon)
{
    uint8_t   *p;
    us_str_t   url;

    if (name.len == 0 || name.len > US_LOOKUP_NAME
        || memchr(name.data, '/', name.len)
        || memchr(name.data, '@', name.len))
    {
        return -1;
    }

    p = us_put(buf, "http://");
    p = us_put_str(p, name);
    *p++ = '/';

    url.data = buf;
    url.len = p - buf;

    return us_normalize(norm, ws, url, NULL, canon) == US_URL_OK ? 0 : -1;
}


uint8_t *
us_lookup_site_reply(uint8_t *p, us_str_t key, const us_store_site_t *site,
    int counts)
{
    int       www;
    uint8_t  *quoted;

    www = (site->spelling & US_SPELLING_WWW) != 0;

    /* a host may hold a quotation mark */

    p = us_put(p, "{\"site\":");
    p = us_json_quote(p, key);
    p = us_put(p, ",\"first\":");
    p = us_put_u64(p, site->first);
    p = us_put(p, ",\"spelling\":");

    /* "www." goes between the opening mark and the key */

    quoted = p;
    p = us_json_quote(www ? p + 4 : p, key);

    if (www) {
        memcpy(quoted, "\"www.", 5);
    }

    p = us_put(p, ",\"www\":");
    p = us_put(p, www ? "true" : "false");

    if (counts) {
        p = us_put(p, ",\"urls\":");
        p = us_put_u64(p, site->urls);
        p = us_put(p, ",\"last\":");
        p = us_put_u64(p, site->last);
    }

    return us_put(p, "}\n");
}


uint8_t *
us_lookup_prefix_reply(uint8_t *p, us_format_t format, uint64_t id,
    const us_str_t *url)
{
    if (format == US_FORMAT_TEXT) {

        if (url == NULL) {
            return us_put(p, "-\tunseen\t-\n");
        }

        p = us_put_u64(p, id);
        p = us_put(p, "\tseen\t");
        p = us_put_str(p, *url);

        return us_put(p, "\n");
    }

    if (url == NULL) {
        return us_put(p, "{\"id\":null,\"status\":\"unseen\",\"url\":null}\n");
    }

    p = us_put(p, "{\"id\":");
    p = us_put_u64(p, id);
    p = us_put(p, ",\"status\":\"seen\",\"url\":");
    p = us_json_quote(p, *url);

    return us_put(p, "}\n");
}
