
/*
 * See us_explain.h.
 */


#include "us_explain.h"
#include "../us_text.h"


static uint8_t *
us_explain_part(uint8_t *p, const char *name, us_str_t part, int given)
{
    p = us_put(p, ",\"");
    p = us_put(p, name);
    p = us_put(p, "\":");

    return given ? us_json_quote(p, part) : us_put(p, "null");
}


uint8_t *
us_explain_parts(uint8_t *p, const us_canon_t *canon)
{
    us_str_t         part, path;
    const us_url_t  *u;

    u = &canon->url;

    p = us_put(p, "{\"url\":");
    p = us_json_quote(p, u->href);

    part.data = u->href.data;
    part.len = u->protocol_end ? u->protocol_end - 1 : 0;
    p = us_explain_part(p, "scheme", part, 1);
    p = us_explain_part(p, "host", us_url_hostname(u), 1);

    p = us_put(p, ",\"port\":");
    p = u->port == US_URL_OMITTED ? us_put(p, "null")
                                  : us_put_u64(p, u->port);

    path = us_url_pathname(u);
    p = us_explain_part(p, "path", path, 1);

    /* what follows the last slash */

    part.data = path.data + path.len;

    while (part.data > path.data && part.data[-1] != '/') {
        part.data--;
    }

    part.len = path.data + path.len - part.data;
    p = us_explain_part(p, "file", part, part.len != 0);

    part = us_url_search(u);

    if (part.len) {
        part.data++;
        part.len--;
    }

    return us_explain_part(p, "query", part,
                           u->search_start != US_URL_OMITTED);
}


uint8_t *
us_explain_begin(uint8_t *p)
{
    return us_put(p, ",\"steps\":[]");
}


uint8_t *
us_explain_step(uint8_t *p, us_str_t step, us_str_t before, us_str_t after)
{
    p--;

    if (p[-1] == '}') {
        *p++ = ',';
    }

    p = us_put(p, "{\"step\":");
    p = us_json_quote_bytes(p, step);
    p = us_put(p, ",\"before\":");
    p = us_json_quote_bytes(p, before);
    p = us_put(p, ",\"after\":");
    p = us_json_quote_bytes(p, after);

    return us_put(p, "}]");
}


uint8_t *
us_explain_first(uint8_t *p, uint64_t id)
{
    p = us_put(p - 2, ",\"first\":");
    p = us_put_u64(p, id);

    return us_put(p, "}]");
}


int
us_explain_spelling(us_store_t *s, const us_canon_t *canon, uint8_t *buf,
    us_str_t *text, uint64_t *first)
{
    us_str_t         before;
    us_store_item_t  item;
    us_store_site_t  site;

    before = canon->url.href;

    memset(&item, 0, sizeof(us_store_item_t));
    item.url = before;
    item.merge = canon->merge;

    us_store_seen(s, &item, 1);

    if (item.status == US_SEEN) {
        *first = item.id;

    } else if (canon->merge
               && us_store_site(s, us_canon_site(canon), &site) == US_OK)
    {
        *first = site.first;
        us_store_spell(s, &item);

    } else {
        return 0;
    }

    text->data = buf;
    text->len = us_store_item_url(&item, buf);

    return text->len != before.len
           || memcmp(text->data, before.data, text->len) != 0;
}


void
us_explain_respell(us_url_t *u, us_str_t text)
{
    int32_t  scheme, all;

    all = (int32_t) text.len - (int32_t) u->href.len;
    scheme = (text.data[4] == 's') - (u->href.data[4] == 's');

    u->href = text;
    u->protocol_end += scheme;
    u->username_end += scheme;
    u->host_start += scheme;
    u->host_end += all;
    u->pathname_start += all;

    if (u->search_start != US_URL_OMITTED) {
        u->search_start += all;
    }

    if (u->hash_start != US_URL_OMITTED) {
        u->hash_start += all;
    }
}
