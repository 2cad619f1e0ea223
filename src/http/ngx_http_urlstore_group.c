
/*
 * The items of a batch, on their way from the input to the store: each becomes
 * an entry of a group, and the up to 256 entries of a group go to the store
 * together.
 *
 *     us_input_item_t             entry                  item of the store
 *     kind, text, base, ref  -->  refusal, ref
 *       |                           by_id, id (sets, claims)
 *       `-- us_normalize() ---------------------------->  canonical URL
 *
 * A group is two pieces of output (ngx_http_urlstore_out.c): itself, and its
 * `text`, where the texts lie one after the other.  An entry without a
 * canonical URL has no item of the store: it is invalid, rejected or an id.
 * Refused input is logged, escaped.
 *
 *     batch->group   being filled, until it is full --> store --> records
 *
 * A group lives from its first item to the flush, at the latest until the event
 * loop goes on.  One exception: if the journal's ring is full (US_BUSY), the
 * request keeps its group until there is room, and reads no item until then;
 * g->done counts the entries that the store has processed.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_cluster.h"
#include "../cluster/us_scatter.h"
#include "../us_text.h"


/* bytes of a refused input that are logged, lines of a request, and a second */
#define NGX_HTTP_URLSTORE_LOGGED   256
#define NGX_HTTP_URLSTORE_LINES    10
#define NGX_HTTP_URLSTORE_RATE     50


_Static_assert(sizeof(ngx_http_urlstore_group_t) <= NGX_HTTP_URLSTORE_PIECE,
               "a group is a piece");


static void
ngx_http_urlstore_group_free(ngx_http_urlstore_batch_t *batch)
{
    ngx_http_urlstore_piece_put(batch->group->text);
    ngx_http_urlstore_piece_put(batch->group);

    batch->group = NULL;
}


/* what was new since it was called last */

static void
ngx_http_urlstore_group_charge(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t  n;

    if (batch->action == NGX_HTTP_URLSTORE_ADD && batch->ctx->conf->quota) {
        n = batch->answers.counts[US_ANSWER_NEW] - batch->free;
        ngx_http_urlstore_quota_charge(batch->ctx, n - batch->charged);
        batch->charged = n;
    }
}


ngx_int_t
ngx_http_urlstore_group_flush(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                   rc;
    ngx_http_urlstore_group_t  *g;

    g = batch->group;

    if (g == NULL) {
        return NGX_OK;
    }

    /* the body may have come slowly, while others were added */

    if (batch->action == NGX_HTTP_URLSTORE_ADD && batch->ctx->conf->quota
        && !batch->admitted)
    {
        rc = ngx_http_urlstore_quota_test(batch->ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        batch->admitted = 1;
    }

    rc = batch->ctx->zone->kind->group(batch, g);

    if (rc != NGX_OK) {
        return rc;
    }

    for ( /* void */ ; g->answered < g->n; g->answered++) {
        rc = ngx_http_urlstore_answer(batch, &g->entries[g->answered]);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    ngx_http_urlstore_group_charge(batch);

    if (batch->over) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    ngx_http_urlstore_group_free(batch);

    return NGX_OK;
}


/*
 * Sets and claims are changed by id as well: an all-digit line of text or a
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
            || batch->ctx->input->format != US_INPUT_TEXT
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

static us_verdict_t
ngx_http_urlstore_item_base(ngx_http_urlstore_batch_t *batch, us_str_t text)
{
    ngx_str_t                 *last;
    ngx_http_urlstore_zone_t  *zone;

    zone = batch->ctx->zone;
    last = &batch->base_text;

    if (last->data && last->len == text.len
        && ngx_memcmp(last->data, text.data, text.len) == 0)
    {
        return batch->base_verdict;
    }

    if (last->data == NULL) {
        last->data = ngx_pnalloc(batch->ctx->r->pool,
                                 US_URL_MAX + batch->query_base.len);

        if (last->data == NULL) {
            return US_URL_LENGTH;
        }
    }

    if (batch->base) {
        us_base_destroy(batch->base);
    }

    ngx_memcpy(last->data, text.data, text.len);
    last->len = text.len;

    batch->base = us_base_create(zone->norm, zone->ws, text,
                                 &batch->base_verdict);

    return batch->base_verdict;
}


static void
ngx_http_urlstore_item_url(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, const us_input_item_t *in)
{
    us_str_t                    base;
    us_canon_t                  canon;
    us_store_item_t            *item;
    ngx_http_urlstore_zone_t   *zone;
    ngx_http_urlstore_group_t  *g;

    zone = batch->ctx->zone;
    g = batch->group;

    base = in->base.data ? in->base : ngx_http_urlstore_str(&batch->query_base);

    if (base.data && ngx_http_urlstore_item_base(batch, base) != US_URL_OK) {
        e->refusal.verdict = US_URL_BASE;
        return;
    }

    canon.rule.len = 0;

    if (zone->rules) {
        us_norm_ws_budget(zone->ws, &batch->budget);
    }

    e->refusal.verdict = zone->kind->normalize(zone->norm, zone->ws, in->text,
                                               base.data ? batch->base : NULL,
                                               &canon);

    if (zone->rules) {
        us_norm_ws_budget(zone->ws, NULL);

        /* rules may be slow even within what the budget leaves free */

        if (!batch->query) {
            ngx_http_urlstore_body_slow(batch->ctx);
        }
    }

    if (e->refusal.verdict == US_URL_BUDGET) {
        us_tally_add(zone->tally, US_N_BUDGET, 1);
    }

    if (e->refusal.verdict == US_URL_OK
        && canon.url.href.len > batch->ctx->conf->max_url)
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

    log = batch->ctx->r->connection->log;

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
    u_char                     *text;
    ngx_uint_t                  max;
    ngx_http_urlstore_entry_t  *e;
    ngx_http_urlstore_group_t  *g;

    max = batch->ctx->conf->max_batch;

    if (batch->ctx->tagged) {

        /* a router, which has its clients' limit, divides by this one */

        max = ngx_max(max, US_SCATTER_ITEMS);
    }

    /* a form, and a list that waited for its base, are refused as a whole */

    if (batch->items == max
        || (batch->items == 0 && !batch->query
            && batch->ctx->input->known > max))
    {
        return ngx_http_urlstore_fault(batch->ctx,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       NGX_HTTP_URLSTORE_TOO_MANY, max);
    }

    if (batch->group == NULL) {
        g = ngx_http_urlstore_piece_get(&batch->records);
        text = ngx_http_urlstore_piece_get(&batch->records);

        if (g == NULL || text == NULL) {
            return ngx_http_urlstore_fault(batch->ctx,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for a group");
        }

        ngx_memzero(g, offsetof(ngx_http_urlstore_group_t, entries));
        g->text = text;
        g->last = text;

        batch->group = g;
    }

    g = batch->group;
    batch->items++;

    e = &g->entries[g->n++];

    ngx_memzero(e, sizeof(ngx_http_urlstore_entry_t));

    e->refusal.kind = in->kind;
    e->refusal.why = in->why;

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

    /* full: there may be no room for another item */

    return g->n == US_STORE_GROUP
           || (size_t) (g->text + NGX_HTTP_URLSTORE_PIECE - g->last)
              < US_URL_MAX + 8 + US_INPUT_REF
           ? ngx_http_urlstore_group_flush(batch) : NGX_OK;
}


/* ends the batch: another request has dropped the set, or has not made it */

static ngx_int_t
ngx_http_urlstore_group_gone(ngx_http_urlstore_batch_t *batch)
{
    uint64_t  lsn;

    lsn = us_store_published(batch->ctx->zone->store);
    batch->ctx->lsn = ngx_max(batch->ctx->lsn, lsn);

    return ngx_http_urlstore_fault(batch->ctx, NGX_HTTP_NOT_FOUND,
                                   "there is no set \"%V\"%s",
                                   &batch->ctx->set_name,
                                   batch->ctx->set.number ? " any more" : "");
}


/* what the store is to remember for a retry; NULL: nothing */

static us_store_key_t *
ngx_http_urlstore_group_key(ngx_http_urlstore_batch_t *batch)
{
    us_store_key_t  *key;

    key = &batch->ctx->key;

    if (key->name == 0 || !ngx_http_urlstore_repeatable(batch)) {
        return NULL;
    }

    key->until = ngx_time() + batch->ctx->zone->keys_keep;

    return key;
}


static ngx_int_t
ngx_http_urlstore_group_add(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                  lsn;
    us_store_t               *store;
    ngx_uint_t                set;
    us_store_key_t           *key;
    us_store_item_t          *item;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;
    store = ctx->zone->store;
    key = ngx_http_urlstore_group_key(batch);
    set = batch->answers.set;

    if (g->done < g->urls) {
        ngx_http_urlstore_clock(ctx->zone);

        lsn = set ? us_store_add_set(store, &g->items[g->done],
                                     g->urls - g->done, ctx->set, key)
                  : us_store_add_key(store, &g->items[g->done],
                                     g->urls - g->done, batch->older, key);
        ctx->lsn = ngx_max(ctx->lsn, lsn);
    }

    for (item = &g->items[g->done]; g->done < g->urls; item++) {

        if (item->status == US_BUSY) {
            return NGX_BUSY;
        }

        if (item->status == US_FENCED) {
            return NGX_HTTP_SERVICE_UNAVAILABLE;
        }

        if (item->status == US_GONE) {
            return ngx_http_urlstore_group_gone(batch);
        }

        g->done++;

        if (item->status != US_NEW && item->status != US_DUE) {

            /* there was room for the URL, and none for it in the set */

            ctx->wrote |= (set && item->stored == US_NEW);
            continue;
        }

        if (key) {
            switch (ngx_http_urlstore_once(batch, item->id)) {

            case NGX_DECLINED:
                item->status = US_SEEN;
                item->stored = US_SEEN;
                item->again = 0;
                continue;

            case NGX_ERROR:
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }

        ctx->wrote |= !item->again;

        if (item->again) {
            us_tally_add(ctx->zone->tally, US_N_REPEATED, 1);
        }

        batch->free += item->status == US_NEW
                       && (item->again || (set && item->stored != US_NEW));
    }

    if (ctx->wrote) {
        ngx_http_urlstore_train(ctx->zone);
    }

    return NGX_OK;
}


/*
 * Ids are claimed, put into a set, or taken out: all of the group, or none: the
 * ring is full.
 */

static ngx_int_t
ngx_http_urlstore_group_ids(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                   lsn;
    ngx_uint_t                 i, n;
    us_store_t                *store;
    us_store_key_t            *key;
    us_store_claim_t           ids[US_STORE_GROUP];
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_entry_t *e, *entries[US_STORE_GROUP];

    ctx = batch->ctx;
    store = ctx->zone->store;
    key = ngx_http_urlstore_group_key(batch);

    ngx_http_urlstore_clock(batch->ctx->zone);
    us_store_seen(store, g->items, g->urls);

    for (i = 0, n = 0; i < g->n; i++) {
        e = &g->entries[i];

        if (e->item) {
            e->id = e->item->status == US_SEEN ? e->item->id : US_STORE_NO_ID;
            e->moved = e->item->status == US_MOVED;
        }

        e->status = e->moved ? US_MOVED : US_UNKNOWN;

        if ((e->item || e->by_id) && e->id != US_STORE_NO_ID) {
            ids[n].id = e->id;
            entries[n++] = e;
        }
    }

    if (batch->action == NGX_HTTP_URLSTORE_CLAIM) {
        lsn = us_store_claim(store, ids, n, batch->at_time);

    } else {
        lsn = us_store_set_put(store, ctx->set, ids, n, !batch->clear, key);
    }

    if (n && ids[0].status == US_BUSY) {
        return NGX_BUSY;
    }

    if (n && ids[0].status == US_FENCED) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    if (n && ids[0].status == US_GONE) {
        return ngx_http_urlstore_group_gone(batch);
    }

    for (i = 0; i < n; i++) {

        switch (ids[i].status) {

        case US_NEW:

            if (key) {
                switch (ngx_http_urlstore_once(batch, ids[i].id)) {

                case NGX_DECLINED:
                    ids[i].status = US_SEEN;
                    break;

                case NGX_ERROR:
                    return NGX_HTTP_INTERNAL_SERVER_ERROR;
                }
            }

            /* fall through */

        case US_OK:
        case US_SEEN:
        case US_UNSEEN:
            ctx->wrote = 1;
            break;

        default:
            break;
        }

        entries[i]->status = ids[i].status;
    }

    ctx->lsn = ngx_max(ctx->lsn, lsn);

    return NGX_OK;
}


/* of the kind: the store looks the URLs up, or adds them */

ngx_int_t
ngx_http_urlstore_store_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    ngx_int_t                 rc;
    us_store_t               *store;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;
    store = ctx->zone->store;
    rc = NGX_OK;

    /* the node was the primary when the request began, and maybe long ago */

    if (ctx->writes && ngx_http_urlstore_overtaken(ctx)) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    ngx_http_urlstore_shard_under(ctx);

    if (ctx->set_name.len && ctx->set.number == 0
        && (batch->action == NGX_HTTP_URLSTORE_ADD
            || (batch->action == NGX_HTTP_URLSTORE_SET && !batch->clear)))
    {
        rc = ngx_http_urlstore_set_make(ctx);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (batch->action == NGX_HTTP_URLSTORE_ADD) {
        rc = ngx_http_urlstore_group_add(batch, g);

    } else if (batch->action == NGX_HTTP_URLSTORE_ERASE) {
        rc = ngx_http_urlstore_erase_group(batch, g);

    } else if (batch->action == NGX_HTTP_URLSTORE_SEEN) {
        ngx_http_urlstore_clock(batch->ctx->zone);
        us_store_seen(store, g->items, g->urls);

        if (ctx->tagged) {
            us_store_refuse(store, g->items, g->urls);
        }

        if (batch->older) {
            (void) us_store_due(store, g->items, g->urls, batch->older);
        }

        if (batch->answers.set) {
            us_store_members(store, ctx->set, g->items, g->urls);

            if (ctx->set.number && !us_store_set_is(store, ctx->set)) {
                return ngx_http_urlstore_group_gone(batch);
            }
        }

        /* what is published now covers what the look-up has seen */

        ctx->lsn = us_store_published(store);

    } else {
        rc = ngx_http_urlstore_group_ids(batch, g);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (batch->answers.times) {
        us_store_times(store, g->items, g->urls);
        ctx->lsn = ngx_max(ctx->lsn, us_store_published(store));
    }

    return NGX_OK;
}


/*
 * The group of a request that is ended.  Entries that the store has changed
 * count as processed; URLs that it has added are new to no other request, so
 * they are counted, and charged, too.
 */

void
ngx_http_urlstore_group_drop(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                  i, add;
    ngx_http_urlstore_entry_t  *e;
    ngx_http_urlstore_group_t  *g;

    g = batch->group;
    add = (batch->action == NGX_HTTP_URLSTORE_ADD);

    for (i = g ? g->answered : 0; g && i < g->n; i++) {
        e = &g->entries[i];

        if (add ? (e->item == NULL || e->item >= &g->items[g->done])
                : i >= g->done)
        {
            continue;
        }

        batch->ctx->processed++;

        if (add && e->item->status == US_NEW) {
            batch->answers.counts[US_ANSWER_NEW]++;

        } else if (add && e->item->status == US_DUE) {
            batch->answers.counts[US_ANSWER_DUE]++;
        }
    }

    if (g) {
        ngx_http_urlstore_group_free(batch);
    }

    ngx_http_urlstore_group_charge(batch);
}
