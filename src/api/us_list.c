
/*
 * See us_list.h.
 */


#include "us_list.h"
#include "us_request.h"
#include "../us_utf8.h"
#include "../us_text.h"


int
us_list_is_id(us_str_t id)
{
    uint64_t  n;

    return id.len <= US_LIST_DIGITS && us_id_parse(id, &n) != US_ID_BAD;
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


/* a column, or a member with a comma before it: a time, or none */

static uint8_t *
us_list_time(uint8_t *p, us_format_t format, const char *name, uint64_t s)
{
    p = us_json_printf(p, format == US_FORMAT_TEXT ? "\t" : ",\"%s\":", name);

    return us_put_known(p, format, s, 0);
}


uint8_t *
us_list_claimed(uint8_t *p, const us_list_t *list)
{
    return list->times ? us_list_time(p, list->format, "time", list->claimed)
                       : p;
}


uint8_t *
us_list_end(uint8_t *p, const us_list_t *list)
{
    return list->format == US_FORMAT_JSON ? us_put(p, "]}\n") : p;
}


uint8_t *
us_list_next(uint8_t *p, const us_list_t *list, uint64_t next, int wanted)
{
    if (list->format == US_FORMAT_TEXT) {
        return wanted ? us_json_printf(p, "# next=%u\n", next) : p;
    }

    return us_json_printf(p, list->format == US_FORMAT_JSON
                          ? "],\"next\":%u}\n" : "{\"next\":%u}\n", next);
}


uint8_t *
us_list_set(uint8_t *p, us_format_t format, const us_store_set_info_t *set)
{
    if (format == US_FORMAT_TEXT) {
        return us_json_printf(p, "%V\t%u\t%u\t%u\t%u\n", set->name,
                              set->members, set->bytes, set->created,
                              set->asked);
    }

    p = us_json_printf(p, "{\"name\":\"%V\",\"members\":%u,\"bytes\":%u,"
                       "\"created\":", set->name, set->members, set->bytes);
    p = us_put_known(p, format, set->created, 0);

    return us_json_printf(p, ",\"asked\":%u}%s", set->asked,
                          format == US_FORMAT_NDJSON ? "\n" : "");
}


int
us_list_is_reason(us_str_t reason)
{
    size_t  i;

    for (i = 0; i < reason.len; i++) {
        if (reason.data[i] < ' ' || reason.data[i] == 0x7f) {
            return 0;
        }
    }

    return reason.len <= US_ERASURE_REASON && us_utf8_valid(reason);
}


/* words of an erasure: its kinds, its states, and places of US_LEFT_* */

static const us_str_t  us_list_kinds[] = {
    [US_ERASURE_URLS] = us_string("urls"),
    [US_ERASURE_SITE] = us_string("site")
};

static const us_str_t  us_list_states[] = {
    [US_ERASURE_DELETING] = us_string("deleting"),
    [US_ERASURE_DONE] = us_string("done"),
    [US_ERASURE_LIFTED] = us_string("lifted"),
    [US_ERASURE_UNKNOWN] = us_string("unknown")
};

static const us_str_t  us_list_places[] = {
    us_string("memory"), us_string("workers"), us_string("files"),
    us_string("log"), us_string("replicas"), us_string("away")
};

#define us_list_words(words)  (sizeof(words) / sizeof(words[0]))


uint8_t *
us_list_erasure(uint8_t *p, us_format_t format, const us_erasure_info_t *e,
    unsigned left, us_str_t name)
{
    int       text;
    unsigned  i, n;

    text = (format == US_FORMAT_TEXT);
    p = us_put(p, text ? "" : "{\"erasure\":");
    p = name.len == 0 ? us_put_u64(p, e->number)
                      : us_json_printf(p, text ? "%V" : "\"%V\"", name);

    p = us_json_printf(p, text ? "\t%V\t%V\t%u\t%u"
                               : ",\"kind\":\"%V\",\"state\":\"%V\","
                                 "\"listed\":%u,\"deleted\":%u",
                       us_list_kinds[e->kind], us_list_states[e->state],
                       e->listed, e->deleted);

    p = us_list_time(p, format, "created", e->created);
    p = us_list_time(p, format, "done", e->done);
    p = us_list_time(p, format, "lifted", e->lifted);
    p = us_put(p, text ? "\t" : ",\"left\":[");

    for (i = 0, n = 0; i < us_list_words(us_list_places); i++) {
        if (left >> i & 1) {
            p = us_json_printf(p, text ? "%s%V" : "%s\"%V\"", n++ ? "," : "",
                               us_list_places[i]);
        }
    }

    if (text) {
        return us_json_printf(p, "%s\t%V\n", n ? "" : "-", e->reason);
    }

    p = us_json_printf(p, "],\"reason\":%q}", e->reason);

    return us_put(p, format == US_FORMAT_NDJSON ? "\n" : "");
}


/* the index of a word; n: it is none of them */

static unsigned
us_list_word(const us_str_t *words, unsigned n, us_str_t word)
{
    unsigned  i;

    for (i = 0; i < n && us_str_compare(words[i], word) != 0; i++) {
        /* void */
    }

    return i;
}


int
us_list_erasure_read(us_str_t *text, us_erasure_info_t *e, unsigned *left)
{
    int        more;
    size_t     i;
    unsigned   n;
    us_str_t   c[10], place;

    uint64_t *const  numbers[] = {
        &e->number, NULL, NULL, &e->listed, &e->deleted, &e->created, &e->done,
        &e->lifted
    };

    for (i = 0; i < 10; i++) {
        if (!us_str_cut(text, i < 9 ? '\t' : '\n', &c[i])) {
            return 0;
        }
    }

    memset(e, 0, sizeof(us_erasure_info_t));

    for (i = 0; i < 8; i++) {
        if (numbers[i] && us_id_parse(c[i], numbers[i]) != US_ID_OK
            && (i < 5 || us_str_compare(c[i], us_string("-")) != 0))
        {
            return 0;
        }
    }

    e->kind = us_list_word(us_list_kinds, us_list_words(us_list_kinds), c[1]);
    e->state = us_list_word(us_list_states, US_ERASURE_UNKNOWN, c[2]);

    if (e->kind == us_list_words(us_list_kinds)
        || e->state == US_ERASURE_UNKNOWN || !us_list_is_reason(c[9]))
    {
        return 0;
    }

    *left = 0;

    for (more = us_str_compare(c[8], us_string("-")) != 0; more; /* void */ ) {
        more = us_str_cut(&c[8], ',', &place);
        n = us_list_word(us_list_places, us_list_words(us_list_places), place);

        /* a place that only a later version knows: it is said of all */

        *left |= n < us_list_words(us_list_places) ? 1u << n : -1u;
    }

    memcpy(e->text, c[9].data, c[9].len);
    e->reason = (us_str_t) { c[9].len, e->text };

    return 1;
}


int
us_list_set_read(us_str_t *text, us_store_set_info_t *set)
{
    size_t    i;
    us_str_t  column;

    uint64_t *const  numbers[] = {
        &set->members, &set->bytes, &set->created, &set->asked
    };

    for (i = 0; i < 5; i++) {

        if (!us_str_cut(text, i < 4 ? '\t' : '\n', &column)) {
            return 0;
        }

        if (i == 0) {
            set->name = column;

            if (!us_conf_is_set(column)) {
                return 0;
            }

        } else if (us_id_parse(column, numbers[i - 1]) != US_ID_OK) {
            return 0;
        }
    }

    return 1;
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


us_store_status_t
us_select(us_store_t *s, const us_select_t *select, uint64_t id, uint8_t *buf,
    us_str_t *url)
{
    us_store_item_t    item;
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

    if (select->site.len == 0) {
        return US_OK;
    }

    item.url = *url;
    item.merge = select->merge;

    us_store_item_split(&item);

    return item.rest.len > select->site.len
           && memcmp(item.rest.data, select->site.data, select->site.len) == 0
           && item.rest.data[select->site.len] == '/' ? US_OK : US_UNKNOWN;
}


int
us_lookup_site(const us_norm_t *norm, us_norm_ws_t *ws, us_str_t name,
    uint8_t buf[US_LOOKUP_BUF], us_canon_t *canon)
{
    us_str_t  url;

    if (name.len == 0 || name.len > US_LOOKUP_NAME
        || memchr(name.data, '/', name.len)
        || memchr(name.data, '@', name.len))
    {
        return -1;
    }

    url.data = buf;
    url.len = us_json_printf(buf, "http://%V/", name) - buf;

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

    p = us_json_printf(p, "{\"site\":%q,\"first\":%u,\"spelling\":", key,
                       site->first);

    /* "www." goes between the opening mark and the key */

    quoted = p;
    p = us_json_quote(www ? p + 4 : p, key);

    if (www) {
        memcpy(quoted, "\"www.", 5);
    }

    p = us_json_printf(p, ",\"www\":%s", www ? "true" : "false");

    if (counts) {
        p = us_json_printf(p, ",\"urls\":%u,\"last\":%u", site->urls,
                           site->last);
    }

    return us_put(p, "}\n");
}


uint8_t *
us_lookup_prefix_reply(uint8_t *p, us_format_t format, uint64_t id,
    const us_str_t *url)
{
    if (format == US_FORMAT_TEXT) {
        return url ? us_json_printf(p, "%u\tseen\t%V\n", id, *url)
                   : us_put(p, "-\tunseen\t-\n");
    }

    return url ? us_json_printf(p, "{\"id\":%u,\"status\":\"seen\",\"url\":%q}"
                                "\n", id, *url)
               : us_put(p, "{\"id\":null,\"status\":\"unseen\",\"url\":null}"
                        "\n");
}


uint8_t *
us_explain_parts(uint8_t *p, const us_canon_t *canon)
{
    us_str_t         scheme, path, file, query;
    const uint8_t   *slash;
    const us_url_t  *u;

    u = &canon->url;
    scheme = (us_str_t) { u->protocol_end ? u->protocol_end - 1 : 0,
                          u->href.data };

    p = us_json_printf(p, "{\"url\":%q,\"scheme\":%q,\"host\":%q,\"port\":",
                       u->href, scheme, us_url_hostname(u));
    p = us_put_known(p, US_FORMAT_JSON, u->port, US_URL_OMITTED);

    path = us_url_pathname(u);
    p = us_json_printf(p, ",\"path\":%q,\"file\":", path);

    /* what follows the last slash */

    slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
    file.data = slash ? slash + 1 : path.data;
    file.len = path.data + path.len - file.data;
    p = file.len ? us_json_quote(p, file) : us_put(p, "null");
    p = us_put(p, ",\"query\":");

    if (u->search_start == US_URL_OMITTED) {
        return us_put(p, "null");
    }

    query = us_url_search(u);

    if (query.len) {
        query.data++;
        query.len--;
    }

    return us_json_quote(p, query);
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

    return us_json_printf(p, "%s{\"step\":%q,\"before\":%q,\"after\":%q}]",
                          p[-1] == '}' ? "," : "", step, before, after);
}


uint8_t *
us_explain_first(uint8_t *p, uint64_t id)
{
    return us_json_printf(p - 2, ",\"first\":%u}]", id);
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

    } else if (canon->merge == US_MERGE_FIRST
               && us_store_site(s, us_canon_site(canon), 1, &site) == US_OK)
    {
        *first = site.first;
        us_store_spell(s, &item);

    } else {
        return 0;
    }

    text->data = buf;
    text->len = us_store_item_url(&item, buf);

    return us_str_compare(*text, before) != 0;
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
