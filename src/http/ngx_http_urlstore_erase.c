
/*
 * Erasures.
 *
 *     POST /erase             ids and URLs: a batch (ngx_http_urlstore_batch.h)
 *     DELETE /url/7?erase=1   one id: the same
 *     POST /erase?site=HOST   a site: one entry of the list, and a sweep
 *     GET /erase, /erase/3    what was erased
 *     DELETE /erase/3         its URLs may be added again
 *
 * An erasure is begun by the first URL of its request that can be erased, and
 * is done when the request has ended.  If its worker is killed before, or its
 * client leaves, a sweep completes it.
 *
 * The request that erases a site waits for the sweep, and is answered 202 in
 * any case after some seconds: the state says whether it is done.
 *
 * The error log gets a line when an erasure is begun, done and lifted.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_cluster.h"


/* a site that is being erased */

typedef struct {
    us_str_t                        site;
    uint64_t                        number;   /* 0: not begun */
    uint64_t                        since;    /* ms: it is on the list */
} ngx_http_urlstore_erase_t;


/* GET /erase */

typedef struct {
    uint64_t                        at;
    uint64_t                        last;
    uint64_t                        limit;
    us_list_t                       list;
    unsigned                        summary:1;
} ngx_http_urlstore_erasures_t;


/* --- erasures of a request ------------------------------------------------ */

ngx_int_t
ngx_http_urlstore_erase_reason(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_str_t  value;

    (void) ngx_http_urlstore_arg(ctx, "reason", &value);

    return us_list_is_reason(ngx_http_urlstore_str(&value))
           ? NGX_DECLINED
           : ngx_http_urlstore_bad(ctx, "invalid \"reason\"; at most %d bytes "
                                   "of UTF-8 without control characters are "
                                   "expected", US_ERASURE_REASON);
}


/* begins one: NGX_OK; NGX_BUSY; or a status, with a fault */

static ngx_int_t
ngx_http_urlstore_erasure_begin(ngx_http_urlstore_ctx_t *ctx,
    us_erasure_kind_t kind, uint64_t *number)
{
    u_char                     random[16];
    uint64_t                   lsn;
    ngx_str_t                  reason;
    us_store_key_t            *key;
    us_store_status_t          status;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    (void) ngx_http_urlstore_arg(ctx, "reason", &reason);

    if (ngx_http_urlstore_random(ctx->r->connection->log, random,
                                 sizeof(random))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    key = ctx->key.name ? &ctx->key : NULL;
    ctx->key.until = ngx_time() + zone->keys_keep;

    ngx_http_urlstore_clock(zone);

    status = us_store_erasure_begin(zone->store, kind,
                                    ngx_http_urlstore_str(&reason), random,
                                    zone->life.self, key, number, &lsn);

    switch (status) {

    case US_NEW:
        ctx->wrote = 1;
        ctx->lsn = ngx_max(ctx->lsn, lsn);
        ngx_http_urlstore_erasure_log(zone, *number, "begun");
        return NGX_OK;

    case US_SEEN:
        ctx->lsn = ngx_max(ctx->lsn, lsn);
        us_tally_add(zone->tally, US_N_REPEATED, 1);
        return NGX_OK;

    case US_UNKNOWN:

        /* the store has no erasures yet */

        return NGX_HTTP_SERVICE_UNAVAILABLE;

    default:
        return ngx_http_urlstore_stored(ctx, status);
    }
}


ngx_int_t
ngx_http_urlstore_erasure_end(ngx_http_urlstore_ctx_t *ctx, uint64_t number)
{
    uint64_t                   lsn;
    us_store_status_t          status;
    us_erasure_info_t          e;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    if (!us_store_erasure(zone->store, number, &e)
        || e.state != US_ERASURE_DELETING)
    {
        return NGX_OK;
    }

    status = us_store_erasure_done(zone->store, number, &lsn);

    if (status == US_OK) {
        ctx->lsn = ngx_max(ctx->lsn, lsn);
        ngx_http_urlstore_erasure_log(zone, number, "done");
        ngx_http_urlstore_sweep(zone);
    }

    return status == US_BUSY ? NGX_BUSY : NGX_OK;
}


/* ids and URLs are erased, one after the other; g->done counts entries */

ngx_int_t
ngx_http_urlstore_erase_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    size_t                      len;
    uint64_t                    lsn;
    ngx_int_t                   rc;
    us_store_item_t            *item, one;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_zone_t   *zone;
    ngx_http_urlstore_entry_t  *e;
    u_char                      buf[US_URL_MAX + 8];

    ctx = batch->ctx;
    zone = ctx->zone;

    for ( /* void */ ; g->done < g->n; g->done++) {
        e = &g->entries[g->done];
        item = e->item;

        if (e->by_id && (e->moved || e->id == US_STORE_NO_ID)) {
            e->status = e->moved ? US_MOVED : US_UNKNOWN;
            continue;
        }

        if (e->by_id) {
            e->status = us_store_text(zone->store, e->id, buf, &len);

            if (e->status == US_UNKNOWN) {
                e->id = US_STORE_NO_ID;
            }

            if (e->status != US_OK) {
                continue;
            }

            item = &one;
            ngx_memzero(item, sizeof(us_store_item_t));

            item->url.data = buf;
            item->url.len = len;
            item->merge = us_norm_merge(zone->norm, zone->ws, item->url);
        }

        if (item == NULL) {
            continue;
        }

        if (batch->answers.erasure == 0) {
            rc = ngx_http_urlstore_erasure_begin(ctx, US_ERASURE_URLS,
                                                 &batch->answers.erasure);
            if (rc != NGX_OK) {
                return rc;
            }
        }

        us_life_deleting(&zone->life);

        lsn = us_store_erase(zone->store, batch->answers.erasure, item, 1);

        us_life_deleted(&zone->life, lsn);

        ctx->lsn = ngx_max(ctx->lsn, lsn);
        ctx->wrote |= (item->status == US_ERASED);
        e->status = item->status;

        switch (e->status) {

        case US_BUSY:
            return NGX_BUSY;

        case US_FENCED:
            return NGX_HTTP_SERVICE_UNAVAILABLE;

        case US_GONE:
            return ngx_http_urlstore_fault(ctx, NGX_HTTP_CONFLICT,
                                           "erasure %uL was lifted meanwhile",
                                           batch->answers.erasure);

        default: /* US_ERASED, US_FULL, US_MOVED */
            break;
        }

        if (!e->by_id) {
            e->id = e->status == US_ERASED ? item->id : US_STORE_NO_ID;
            e->moved = e->status == US_MOVED;
        }
    }

    return NGX_OK;
}


/* --- replies -------------------------------------------------------------- */

ngx_int_t
ngx_http_urlstore_erasure_missing(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                     "there is no erasure %*s",
                                     ngx_min(ctx->tail.len, 40),
                                     ctx->tail.data);
}


ngx_int_t
ngx_http_urlstore_erasure_reply(ngx_http_urlstore_ctx_t *ctx, uint64_t number)
{
    uint64_t            lsn;
    us_erasure_info_t   e;

    if (!us_store_erasure(ctx->zone->store, number, &e)) {
        return ngx_http_urlstore_deny(ctx, ngx_http_urlstore_erasure_missing);
    }

    lsn = us_store_published(ctx->zone->store);
    ctx->lsn = ngx_max(ctx->lsn, lsn);

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, US_LIST_ERASURE)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_list_erasure(ctx->out.pos, ctx->format, &e,
                                   us_life_left(&ctx->zone->life, &e),
                                   us_string(""));

    if (ctx->format == US_FORMAT_JSON) {
        *ctx->out.pos++ = '\n';
    }

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


void
ngx_http_urlstore_erasure_accepted(ngx_http_urlstore_ctx_t *ctx,
    uint64_t number)
{
    ctx->status = NGX_HTTP_ACCEPTED;

    ngx_http_urlstore_header_printf(ctx, "Location",
                                    sizeof("../erase/") + NGX_INT64_LEN,
                                    ctx->tail.len ? "../erase/%uL"
                                                  : "erase/%uL",
                                    number);
}


/* --- a site --------------------------------------------------------------- */

/* of the request's end: what is left is for a sweep */

static void
ngx_http_urlstore_erase_cleanup(void *data)
{
    ngx_http_urlstore_ctx_t *ctx = data;

    ngx_http_urlstore_erase_t  *erase;

    erase = ctx->data;

    if (erase->number) {
        us_store_erasure_leave(ctx->zone->store, erase->number);
    }
}


/* begins the erasure, and goes on with it as often as it has waited */

static ngx_int_t
ngx_http_urlstore_erase_run(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                    lsn;
    ngx_int_t                   rc;
    us_store_status_t           status;
    ngx_http_urlstore_zone_t   *zone;
    ngx_http_urlstore_erase_t  *erase;

    zone = ctx->zone;
    erase = ctx->data;

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    ngx_http_urlstore_shard_under(ctx);

    rc = erase->number ? NGX_OK
         : ngx_http_urlstore_erasure_begin(ctx, US_ERASURE_SITE,
                                           &erase->number);

    if (rc == NGX_OK) {
        status = us_life_erase_site(&zone->life, erase->number, erase->site,
                                    &erase->since, &lsn);

        ctx->lsn = ngx_max(ctx->lsn, lsn);
        ctx->processed = (erase->since != 0);
        ngx_http_urlstore_sweep(zone);

        rc = status == US_GONE
             ? ngx_http_urlstore_fault(ctx, NGX_HTTP_CONFLICT,
                                       "erasure %uL was lifted meanwhile, or "
                                       "is of another site", erase->number)
             : status == US_MOVED
             ? ngx_http_urlstore_fault(ctx, NGX_HTTP_URLSTORE_MISDIRECTED,
                                       "the shard has a newer map than the "
                                       "request")
             : ngx_http_urlstore_stored(ctx, status);
    }

    if (rc != NGX_OK) {
        return ngx_http_urlstore_again(ctx, rc, ngx_http_urlstore_erase_run);
    }

    ngx_http_urlstore_erasure_accepted(ctx, erase->number);

    return ngx_http_urlstore_erasure_reply(ctx, erase->number);
}


/* --- /erase --------------------------------------------------------------- */

static ngx_int_t
ngx_http_urlstore_erasure_lift(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                   lsn;
    ngx_int_t                  rc;
    us_store_status_t          status;
    us_erasure_info_t          e;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    e.state = US_ERASURE_LIFTED;
    (void) us_store_erasure(zone->store, ctx->id, &e);

    ngx_http_urlstore_clock(zone);
    status = us_store_erasure_lift(zone->store, ctx->id, &lsn);
    ctx->lsn = ngx_max(ctx->lsn, lsn);

    if (status == US_OK && e.state != US_ERASURE_LIFTED) {
        ngx_http_urlstore_erasure_log(zone, ctx->id, "lifted");
    }

    rc = ngx_http_urlstore_changed(ctx, status, ngx_http_urlstore_erasure_lift);

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_deny(ctx, ngx_http_urlstore_erasure_missing)
           : rc;
}


/* one erasure: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_erasures_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    us_erasure_info_t              e;
    ngx_http_urlstore_erasures_t  *list;

    list = ctx->data;

    if (list->list.shown == 0 && ctx->format == US_FORMAT_JSON
        && ctx->processed == 0)
    {
        out->pos = ngx_cpymem(out->pos, "{\"erasures\":[", 13);
        ctx->processed = 1;
    }

    if (ngx_http_urlstore_out_room(out, US_LIST_ERASURE + US_LIST_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (list->at > list->last || list->list.shown == list->limit) {
        ctx->lsn = us_store_published(ctx->zone->store);
        out->pos = us_list_next(out->pos, &list->list, list->at, list->summary);

        return NGX_OK;
    }

    if (!us_store_erasure(ctx->zone->store, list->at++, &e)) {

        /* of a store that was replaced meanwhile */

        return NGX_ERROR;
    }

    if (list->list.shown++ && ctx->format == US_FORMAT_JSON) {
        *out->pos++ = ',';
    }

    out->pos = us_list_erasure(out->pos, ctx->format, &e,
                               us_life_left(&ctx->zone->life, &e),
                               us_string(""));

    ctx->lsn = us_store_published(ctx->zone->store);

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_urlstore_erasures_list(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_urlstore_erasures_t  *list;

    rc = ngx_http_urlstore_args(ctx, "from limit summary");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    list = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_erasures_t));

    if (list == NULL
        || ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, 1024) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    list->at = 1;
    list->limit = 1000;

    rc = ngx_http_urlstore_urls_number(ctx, "from", 1, &list->at);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_urls_number(ctx, "limit", 1, &list->limit);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    list->last = us_store_erasures(ctx->zone->store);
    list->list.format = ctx->format;
    list->summary = ngx_http_urlstore_flag(ctx->r, "summary");
    ctx->data = list;

    return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_erasures_produce);
}


ngx_int_t
ngx_http_urlstore_erase_args(ngx_http_urlstore_ctx_t *ctx, us_str_t *key)
{
    int         merge;
    ngx_int_t   rc;
    ngx_str_t   site, other;
    ngx_uint_t  i;

    static const char *const  others[] = {
        "url", "id", "base", "brief", "summary"
    };

    key->len = 0;

    rc = ngx_http_urlstore_args(ctx, "url id base brief summary site reason");

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_erase_reason(ctx);
    }

    if (rc != NGX_DECLINED || !ngx_http_urlstore_arg(ctx, "site", &site)) {
        return rc;
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (ngx_http_urlstore_arg(ctx, others[i], &other)) {
            return ngx_http_urlstore_bad(ctx, "the query has \"site\" and "
                                         "\"%s\"; one of them is allowed",
                                         others[i]);
        }
    }

    if (ctx->has_body) {
        return ngx_http_urlstore_bad(ctx, "the request has a \"site\" in the "
                                     "query and a body; one of them is "
                                     "allowed");
    }

    rc = ngx_http_urlstore_no_body(ctx->r);

    return rc == NGX_OK ? ngx_http_urlstore_site_key(ctx, &site, key, &merge)
                        : rc;
}


ngx_int_t
ngx_http_urlstore_erasures(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                    site;
    ngx_int_t                   rc;
    us_id_rc_t                  known;
    ngx_http_cleanup_t         *cln;
    ngx_http_urlstore_erase_t  *erase;

    if (ctx->tail.len) {
        known = us_id_parse(ngx_http_urlstore_str(&ctx->tail), &ctx->id);

        if (known == US_ID_BAD || (known == US_ID_OK && ctx->id == 0)) {
            return ngx_http_urlstore_bad(ctx, "\"%*s\" is no number of an "
                                         "erasure; a decimal number from 1, "
                                         "without a leading zero, is expected",
                                         ngx_min(ctx->tail.len, 40),
                                         ctx->tail.data);
        }

        /* no erasure has the number of US_ID_NEVER, UINT64_MAX */

        return ctx->r->method == NGX_HTTP_DELETE
               ? ngx_http_urlstore_erasure_lift(ctx)
               : ngx_http_urlstore_erasure_reply(ctx, ctx->id);
    }

    if (ctx->r->method != NGX_HTTP_POST) {
        return ngx_http_urlstore_erasures_list(ctx);
    }

    rc = ngx_http_urlstore_erase_args(ctx, &site);

    if (rc != NGX_DECLINED || site.len == 0) {
        return rc;
    }

    if (ctx->tagged
        && ctx->under_version != us_store_map(ctx->zone->store)->version)
    {
        /* a router with an older map does not ask all shards */

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_MISDIRECTED,
                                         "\"reason\":\"map\"", "the shard has "
                                         "a newer map than the request");
    }

    erase = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_erase_t));
    cln = ngx_http_cleanup_add(ctx->r, 0);

    if (erase == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_erase_cleanup;
    cln->data = ctx;

    ctx->data = erase;
    erase->site = site;

    return ngx_http_urlstore_erase_run(ctx);
}
