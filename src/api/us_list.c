
/*
 * See us_list.h.
 */


#include "us_list.h"
#include "us_args.h"
#include "../us_text.h"


int
us_list_is_id(us_str_t id)
{
    uint64_t  n;

    return id.len <= US_LIST_DIGITS && us_id_parse(id, &n) != US_ID_BAD;
}


us_list_fault_t
us_list_check(us_str_t list, uint64_t max, us_str_t *bad)
{
    int       more;
    uint64_t  n;

    n = 0;

    do {
        more = us_list_cut(&list, bad);

        if (n++ == max) {
            return US_LIST_MANY;
        }

        if (!us_list_is_id(*bad)) {
            return US_LIST_BAD;
        }

    } while (more);

    return US_LIST_OK;
}


int
us_list_cut(us_str_t *list, us_str_t *id)
{
    const uint8_t  *comma;

    comma = list->len ? memchr(list->data, ',', list->len) : NULL;

    id->data = list->data;
    id->len = comma ? (size_t) (comma - list->data) : list->len;

    list->data += id->len + (comma != NULL);
    list->len -= id->len + (comma != NULL);

    return comma != NULL;
}


uint8_t *
us_list_begin(uint8_t *p, const us_list_t *list)
{
    return list->format == US_FORMAT_JSON ? us_put(p, "{\"results\":[") : p;
}


/* as far as its id */

static uint8_t *
us_list_object(uint8_t *p, us_list_t *list)
{
    if (list->shown++ && list->format == US_FORMAT_JSON) {
        *p++ = ',';
    }

    return us_put(p, "{\"id\":");
}


uint8_t *
us_list_id(uint8_t *p, us_list_t *list, us_str_t id, us_str_t url,
    us_answer_t answer)
{
    int       found;
    us_str_t  word;

    found = (answer == US_ANSWER_SEEN);
    word = found ? us_string("ok") : us_answer_words[answer];

    if (list->format == US_FORMAT_TEXT) {
        p = us_put_str(p, id);
        *p++ = '\t';

        if (found) {
            p = us_put_str(p, url);
            p = us_list_claimed(p, list);

        } else {
            p = us_put(p, "-\t");
            p = us_put_str(p, word);
        }

        *p++ = '\n';

        return p;
    }

    p = us_list_object(p, list);
    p = us_put_str(p, id);
    p = us_put(p, ",\"url\":");
    p = found ? us_json_quote(p, url) : us_put(p, "null");
    p = found ? us_list_claimed(p, list) : p;
    p = us_put(p, ",\"status\":\"");
    p = us_put_str(p, word);

    return us_put(p, list->format == US_FORMAT_JSON ? "\"}" : "\"}\n");
}


uint8_t *
us_list_url(uint8_t *p, us_list_t *list, uint64_t id, const us_str_t *url)
{
    if (url == NULL) {
        list->claimed = 0;
    }

    if (list->format == US_FORMAT_TEXT) {
        list->shown++;

        p = us_put_u64(p, id);
        *p++ = '\t';
        p = url ? us_put_str(p, *url) : us_put(p, "-");
        p = us_list_claimed(p, list);
        *p++ = '\n';

        return p;
    }

    p = us_list_object(p, list);
    p = us_put_u64(p, id);
    p = us_put(p, ",\"url\":");
    p = url ? us_json_quote(p, *url) : us_put(p, "null,\"status\":\"deleted\"");
    p = us_list_claimed(p, list);

    return us_put(p, list->format == US_FORMAT_JSON ? "}" : "}\n");
}


uint8_t *
us_list_claimed(uint8_t *p, const us_list_t *list)
{
    if (!list->times) {
        return p;
    }

    if (list->format == US_FORMAT_TEXT) {
        *p++ = '\t';
        return list->claimed ? us_put_u64(p, list->claimed) : us_put(p, "-");
    }

    p = us_put(p, ",\"time\":");

    return list->claimed ? us_put_u64(p, list->claimed) : us_put(p, "null");
}


uint8_t *
us_list_end(uint8_t *p, const us_list_t *list)
{
    return list->format == US_FORMAT_JSON ? us_put(p, "]}\n") : p;
}


uint8_t *
us_list_next(uint8_t *p, const us_list_t *list, uint64_t next, int wanted)
{
    switch (list->format) {

    case US_FORMAT_JSON:
        p = us_put(p, "],\"next\":");
        break;

    case US_FORMAT_NDJSON:
        p = us_put(p, "{\"next\":");
        break;

    default:

        if (!wanted) {
            return p;
        }

        p = us_put(p, "# next=");
        break;
    }

    p = us_put_u64(p, next);

    return us_put(p, list->format == US_FORMAT_TEXT ? "\n" : "}\n");
}


uint64_t
us_select_next(us_store_t *s, const us_select_t *select, uint64_t from,
    uint64_t to)
{
    if (select->older && from < to) {
        from = us_store_next_due(s, from, to, select->older);
    }

    return select->set.number && !select->outside && from < to
           ? us_store_set_next(s, select->set, from, to) : from;
}


static int
us_select_site(const us_select_t *select, us_str_t url)
{
    us_store_item_t  item;

    item.url = url;
    item.merge = select->merge;

    us_store_item_split(&item);

    return item.rest.len > select->site.len
           && memcmp(item.rest.data, select->site.data, select->site.len) == 0
           && item.rest.data[select->site.len] == '/';
}


us_store_status_t
us_select(us_store_t *s, const us_select_t *select, uint64_t id, uint8_t *buf,
    us_str_t *url)
{
    us_store_status_t  status;

    if (select->set.number
        && us_store_set_has(s, select->set, id) == (int) select->outside)
    {
        return US_UNKNOWN;
    }

    if (select->new_sites && !us_store_first_of_site(s, id)) {
        return US_UNKNOWN;
    }

    status = us_store_get(s, id, buf, &url->len);
    url->data = buf;

    if (status == US_DELETED && select->deleted && !select->site.len
        && !select->prefix.len)
    {
        return US_DELETED;
    }

    if (status != US_OK) {
        return US_UNKNOWN;
    }

    if (select->prefix.len
        && (url->len < select->prefix.len
            || memcmp(buf, select->prefix.data, select->prefix.len) != 0))
    {
        return US_UNKNOWN;
    }

    if (select->site.len && !us_select_site(select, *url)) {
        return US_UNKNOWN;
    }

    return US_OK;
}
