
/*
 * An item on its way in: from the input to an entry of the group.
 *
 *     us_input_item_t             entry                  item of the store
 *     kind, text, base, ref  -->  refusal, ref
 *       |                           by_id, id (marks, claims)
 *       `-- us_normalize() ---------------------------->  canonical URL
 *
 * The texts of a group lie in its `text`, one after the other.  An entry
 * without a canonical URL has no item of the store: it is invalid, rejected or
 * an id.  Refused input is logged, escaped.
 */


#include "ngx_http_urlstore_batch.h"
#include "../cluster/us_scatter.h"
#include "../us_text.h"


/* bytes of a refused input that are logged, lines of a request, and a second */
#define NGX_HTTP_URLSTORE_LOGGED   256
#define NGX_HTTP_URLSTORE_LINES    10
#define NGX_HTTP_URLSTORE_RATE     50


/*
 * A group with room for an entry.  NGX_BUSY: there is one, but no more must be
 * read, because the full one waits for the ring.
 */

static ngx_int_t
ngx_http_urlstore_item_group(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                   rc;
    ngx_http_urlstore_group_t  *g;

    rc = NGX_OK;
    g = batch->group;

    if (g && (g->n == US_STORE_GROUP
              || (size_t) (g->text + NGX_HTTP_URLSTORE_TEXT_SIZE - g->last)
                 < US_URL_MAX + 8 + US_INPUT_REF))
    {
        rc = ngx_http_urlstore_group_flush(batch);

        if (rc != NGX_OK && rc != NGX_BUSY) {
            return rc;
        }
    }

    if (batch->group == NULL) {
        batch->group = ngx_http_urlstore_group_get(batch->r->connection->log);

        if (batch->group == NULL) {
            return ngx_http_urlstore_fault(batch->r,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for a group");
        }
    }

    return rc;
}


/*
 * Marks are set, and claims made, by id as well: an all-digit line of text or a
 * number of JSON.  Returns 1 if the entry is one, or a number that is none.
 */

static ngx_uint_t
ngx_http_urlstore_item_id(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, const us_input_item_t *in)
{
    if (!ngx_http_urlstore_of_ids(batch->action)) {

        if (in->kind == US_INPUT_NUMBER) {
            e->refusal.kind = US_INPUT_BAD;
            e->refusal.why = "a URL is a string, not a number";
            return 1;
        }

        return 0;
    }

    if (in->kind == US_INPUT_URL
        && (batch->query
            || ngx_http_urlstore_body_input(batch->ctx)->format
               != US_INPUT_TEXT
            || !us_id_digits(in->text)))
    {
        return 0;
    }

    switch (ngx_http_urlstore_id_parse(batch->ctx->zone, in->text,
                                       &e->id)) {

    case US_ID_OK:
        break;

    case US_ID_MOVED:
        e->moved = 1;
        e->id = US_STORE_NO_ID;
        break;

    case US_ID_NEVER:
        e->id = US_STORE_NO_ID;
        break;

    default: /* US_ID_BAD */
        e->refusal.kind = US_INPUT_BAD;
        e->refusal.why = "an id is a decimal number, without a leading zero";
        return 1;
    }

    e->by_id = 1;

    return 1;
}


/* the last item's base serves the next one as well: links of one page */

static us_base_t *
ngx_http_urlstore_item_base(ngx_http_urlstore_batch_t *batch, us_str_t text,
    us_verdict_t *why)
{
    ngx_str_t                 *last;
    ngx_http_urlstore_zone_t  *zone;

    zone = batch->ctx->zone;
    last = &batch->base_text;

    if (last->data == NULL || last->len != text.len
        || ngx_memcmp(last->data, text.data, text.len) != 0)
    {
        if (last->data == NULL) {
            last->data = ngx_pnalloc(batch->r->pool, US_URL_MAX);

            if (last->data == NULL) {
                *why = US_URL_LENGTH;
                return NULL;
            }
        }

        if (batch->item_base) {
            us_base_destroy(batch->item_base);
        }

        ngx_memcpy(last->data, text.data, text.len);
        last->len = text.len;

        batch->item_verdict = US_URL_OK;
        batch->item_base = us_base_create(zone->norm, zone->ws, text,
                                          &batch->item_verdict);
    }

    *why = batch->item_verdict;

    return batch->item_base;
}


static void
ngx_http_urlstore_item_url(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, const us_input_item_t *in)
{
    us_base_t                  *base;
    us_canon_t                  canon;
    us_verdict_t                why;
    us_store_item_t            *item;
    ngx_http_urlstore_zone_t   *zone;
    ngx_http_urlstore_group_t  *g;

    zone = batch->ctx->zone;
    g = batch->group;

    base = NULL;
    why = US_URL_OK;

    if (in->base.data) {
        base = ngx_http_urlstore_item_base(batch, in->base, &why);

    } else if (batch->has_base) {
        base = batch->base;
        why = batch->base_verdict;
    }

    if (why != US_URL_OK) {
        e->refusal.verdict = US_URL_BASE;
        return;
    }

    canon.rule.len = 0;

    us_norm_ws_budget(zone->ws, &batch->budget);

    e->refusal.verdict = zone->kind->normalize(zone->norm, zone->ws, in->text,
                                               base, &canon);

    us_norm_ws_budget(zone->ws, NULL);

    /* rules may be slow even within what the budget leaves free */

    if (zone->rules && !batch->query) {
        ngx_http_urlstore_body_slow(batch->ctx);
    }

    if (e->refusal.verdict == US_URL_BUDGET) {
        us_tally_add(zone->tally, US_N_BUDGET, 1);
    }

    if (e->refusal.verdict == US_URL_OK
        && canon.url.href.len > batch->conf->max_url)
    {
        e->refusal.verdict = US_URL_LENGTH;
    }

    if (e->refusal.verdict != US_URL_OK) {
        e->refusal.rule = canon.rule;
        return;
    }

    item = &g->items[g->urls++];

    item->url.data = g->last;
    item->url.len = canon.url.href.len;
    item->merge = canon.merge;

    g->last = ngx_cpymem(g->last, canon.url.href.data, canon.url.href.len);

    e->item = item;

    if (batch->answers.same) {
        e->same = (us_str_compare(canon.url.href, in->text) == 0);
    }
}


/*
 * A line for each refused input, at info level; its bytes are escaped.  Some of
 * a request, and some of a second of this worker, are enough to see what is
 * wrong, and fill no disk.
 */

static void
ngx_http_urlstore_item_log(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, const us_str_t *text)
{
    us_str_t           begin;
    ngx_log_t         *log;
    ngx_str_t          reason, input;
    u_char             why[US_REFUSAL_WORD];
    u_char             buf[NGX_HTTP_URLSTORE_LOGGED * 4];
    static time_t      second;
    static ngx_uint_t  lines;

    log = batch->r->connection->log;

    if (log->log_level < NGX_LOG_INFO
        || batch->logged == NGX_HTTP_URLSTORE_LINES)
    {
        return;
    }

    if (second != ngx_time()) {
        second = ngx_time();
        lines = 0;
    }

    if (lines == NGX_HTTP_URLSTORE_RATE) {
        return;
    }

    lines++;
    batch->logged++;

    reason.data = why;
    reason.len = us_refusal_word(why, &e->refusal) - why;

    begin.data = text->data;
    begin.len = ngx_min(text->len, NGX_HTTP_URLSTORE_LOGGED);

    input.data = buf;
    input.len = us_put_escaped(buf, begin) - buf;

    ngx_log_error(NGX_LOG_INFO, log, 0,
                  "urlstore zone=%V endpoint=%V item=%ui reason=%V "
                  "length=%uz input=\"%V\"%s", &batch->ctx->zone->name,
                  &batch->ctx->endpoint->name, batch->items - 1, &reason,
                  text->len, &input,
                  lines == NGX_HTTP_URLSTORE_RATE
                  ? ", and no more of this second"
                  : batch->logged == NGX_HTTP_URLSTORE_LINES
                  ? ", and no more of this request" : "");
}


ngx_int_t
ngx_http_urlstore_item(ngx_http_urlstore_batch_t *batch,
    const us_input_item_t *in)
{
    ngx_int_t                   rc;
    ngx_uint_t                  max;
    ngx_http_urlstore_entry_t  *e;
    ngx_http_urlstore_group_t  *g;

    max = batch->conf->max_batch;

    if (batch->ctx->tagged) {

        /* a router, which has its clients' limit, divides by this one */

        max = ngx_max(max, US_SCATTER_ITEMS);
    }

    /* a form, and a list that waited for its base, are refused as a whole */

    if (batch->items == max
        || (batch->items == 0 && !batch->query
            && ngx_http_urlstore_body_input(batch->ctx)->known > max))
    {
        return ngx_http_urlstore_fault(batch->r,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       NGX_HTTP_URLSTORE_TOO_MANY, max);
    }

    rc = ngx_http_urlstore_item_group(batch);

    if (rc != NGX_OK && rc != NGX_BUSY) {
        return rc;
    }

    batch->items++;

    g = batch->group;
    e = &g->entries[g->n++];

    e->item = NULL;
    e->by_id = 0;
    e->moved = 0;
    e->same = 0;
    e->refusal.kind = in->kind;
    e->refusal.verdict = US_URL_OK;
    e->refusal.why = in->why;
    e->refusal.rule.len = 0;
    e->ref.len = 0;

    if (in->ref.data) {
        e->ref.data = g->last;
        e->ref.len = in->ref.len;
        g->last = ngx_cpymem(g->last, in->ref.data, in->ref.len);
    }

    if ((in->kind == US_INPUT_URL || in->kind == US_INPUT_NUMBER)
        && !ngx_http_urlstore_item_id(batch, e, in))
    {
        ngx_http_urlstore_item_url(batch, e, in);
    }

    if (e->item == NULL && !e->by_id) {
        ngx_http_urlstore_item_log(batch, e, &in->text);
    }

    return rc;
}
