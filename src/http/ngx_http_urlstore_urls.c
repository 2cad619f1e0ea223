/*
 * GET /urls: the store's URLs in id order, from a cursor; an export, and a
 * feed of new URLs.
 *
 *     ids   from ......... at ......... end (given when it began, on disk)
 *                          |
 *                          `--> ngx_http_urlstore_stream()
 *
 * With older=, ids that are not due are passed over by their claims, many of
 * them at once.  They are not examined.
 *
 * No lock is held between slices, and nothing is kept between requests but the
 * cursor that the client has.
 *
 * Questions about a site or a URL's surroundings:
 *
 *     GET /site/HOST     its first id, spelling and, with sites=on, count
 *     GET /prefix?url=U  the longest stored URL that U begins with
 *
 * Sets, which any request names by set=NAME:
 *
 *     PUT, DELETE, GET /set/NAME        made, dropped, told
 *     GET /set                          a list of all
 *     POST /set/NAME, DELETE .../ID     ids: see ngx_http_urlstore_batch.h
 */


#include "ngx_http_urlstore_cluster.h"


#define NGX_HTTP_URLSTORE_SCAN      262144    /* claims of a call, .1 ms */


typedef struct {
    uint64_t                        at;       /* the next id to look at */
    uint64_t                        end;
    uint64_t                        next;     /* if it ends at `end` */
    uint64_t                        left;     /* ids to examine */
    ngx_uint_t                      limit;    /* lines to answer */

    us_select_t                     select;
    us_list_t                       list;
    unsigned                        summary:1;
    unsigned                        begun:1;
} ngx_http_urlstore_urls_t;


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_urls_args(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls)
{
    int                        merge;
    uint64_t                   n;
    ngx_int_t                  rc;
    ngx_str_t                  value, by_site;
    ngx_uint_t                 times;
    us_select_t               *select;
    us_store_site_t            site;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;
    select = &urls->select;
    n = 1000;

    if (ngx_http_urlstore_arg(ctx, "cursor", &value)) {
        return ngx_http_urlstore_bad(ctx, "\"cursor\" is of a router; a zone's "
                                     "list goes on by \"from\"");
    }

    rc = ngx_http_urlstore_urls_number(ctx, "from", 0, &urls->at);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_urls_number(ctx, "limit", 1, &n);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* at a shard, the cursor is an id of its own, or 0 for its first */

    if (zone->cluster && urls->at) {
        if ((urls->at ^ zone->first_id) > US_LOCAL_MAX) {
            return ngx_http_urlstore_shard_moved(ctx, "\"from\"");
        }

        urls->at -= zone->first_id;
    }

    urls->limit = ngx_min(n, NGX_HTTP_URLSTORE_EXAMINE);
    urls->left = NGX_HTTP_URLSTORE_EXAMINE;
    urls->end = us_life_ids(&zone->life);
    urls->next = ngx_max(urls->at, urls->end);

    select->new_sites = ngx_http_urlstore_flag(ctx->r, "new_sites");

    if ((ngx_http_urlstore_arg(ctx, "site", &by_site) || select->new_sites)
        && zone->conf.lookup)
    {
        /* without an index every site would be unknown, and its list empty */

        return ngx_http_urlstore_bad(ctx, "\"site\" is not allowed: a zone "
                                     "with mode=lookup keeps no sites");
    }

    if (select->new_sites) {
        rc = ngx_http_urlstore_shard_sites(ctx, "new_sites");

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    select->deleted = ngx_http_urlstore_flag(ctx->r, "deleted");
    urls->summary = ngx_http_urlstore_flag(ctx->r, "summary");

    (void) ngx_http_urlstore_arg(ctx, "prefix", &value);

    select->prefix = ngx_http_urlstore_str(&value);
    select->set = ctx->set;
    select->outside = ctx->outside;

    if (ctx->set_name.len && ctx->set.number == 0 && !ctx->outside) {
        urls->at = urls->next;
    }

    if (by_site.data) {
        rc = ngx_http_urlstore_site_key(ctx, &by_site, &select->site, &merge);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        select->merge = merge;

        if (us_store_site(zone->store, select->site, merge, &site) == US_OK) {
            urls->at = ngx_max(urls->at, site.first);
            urls->end = zone->conf.sites ? ngx_min(urls->end, site.last + 1)
                                         : urls->end;
        } else {
            urls->at = urls->next;
        }
    }

    rc = ngx_http_urlstore_older(ctx, &select->older, &times);
    urls->list.times = times;

    return rc;
}


/* one id: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_urls_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    uint64_t                   last;
    us_str_t                   url;
    ngx_uint_t                 full;
    us_store_t                *store;
    us_store_status_t          status;
    ngx_http_urlstore_urls_t  *urls;
    u_char                     buf[US_URL_MAX + 8];

    urls = ctx->data;
    store = ctx->zone->store;

    if (!urls->begun) {
        urls->begun = 1;
        out->pos = us_list_begin(out->pos, &urls->list);
    }

    if (ngx_http_urlstore_out_room(out, US_LIST_LINE + US_LIST_END) != NGX_OK) {
        return NGX_ERROR;
    }

    us_store_time(store, ngx_time());

    last = ngx_min(urls->at + NGX_HTTP_URLSTORE_SCAN, urls->end);
    urls->at = us_select_next(store, &urls->select, urls->at, last);

    /* a list that is full ends with the id that would follow */

    full = (urls->left == 0 || urls->list.shown == urls->limit);

    if (urls->at < last && !full) {
        urls->left--;

        status = us_select(store, &urls->select, urls->at, buf, &url);

        if (status != US_UNKNOWN) {
            urls->list.claimed = urls->list.times
                                 ? us_store_claimed(store, urls->at) : 0;

            out->pos = us_list_url(out->pos, &urls->list,
                                   ngx_http_urlstore_id(ctx->zone, urls->at),
                                   status == US_OK ? &url : NULL);
        }

        urls->at++;
    }

    /* a set that is dropped meanwhile contains nothing: the list is cut */

    if (urls->select.set.number && !us_store_set_is(store, urls->select.set)) {
        ctx->lsn = us_store_published(store);
        ctx->negative = 1;

        return ctx->r->header_sent ? NGX_ERROR : NGX_HTTP_NOT_FOUND;
    }

    /* what the slice depends on: also on deletes, sets and claims until now */

    ctx->lsn = us_store_published(store);
    ctx->top = ngx_max(ctx->top, urls->at);

    if (urls->at < urls->end && !full) {
        return NGX_AGAIN;
    }

    if (urls->at >= urls->end) {
        urls->at = urls->next;
    }

    out->pos = us_list_next(out->pos, &urls->list,
                            ngx_http_urlstore_id(ctx->zone, urls->at),
                            urls->summary);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_urls_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_urlstore_urls_t  *urls;

    urls = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_urls_t));
    if (urls == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->data = urls;

    rc = ngx_http_urlstore_urls_args(ctx, urls);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_TEXT, 1024) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    urls->list.format = ctx->format;

    /* a member, a drop, or a claim, may be newer than its id */

    ctx->tops = !(ctx->set_name.len
                  || urls->select.older || urls->list.times);
    ctx->absent = 1;

    return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_urls_produce);
}


ngx_int_t
ngx_http_urlstore_site_handler(ngx_http_urlstore_ctx_t *ctx)
{
    int              merge;
    us_str_t         key;
    ngx_int_t        rc;
    us_store_site_t  site;

    rc = ngx_http_urlstore_site_key(ctx, &ctx->tail, &key, &merge);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_shard_sites(ctx, "site");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_shard_site(ctx, key, merge, &site);

    if (rc == US_MOVED) {
        return ngx_http_urlstore_shard_moved(ctx, "the site");
    }

    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    if (rc != US_OK) {
        return ngx_http_urlstore_deny(ctx, ngx_http_urlstore_site_missing);
    }

    /* a delete makes the number of URLs smaller */

    ctx->top = site.last + 1;
    ctx->absent = ctx->zone->conf.sites;

    site.first = ngx_http_urlstore_id(ctx->zone, site.first);
    site.last = ngx_http_urlstore_id(ctx->zone, site.last);

    if (ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool,
                                   us_lookup_site_max(key.len))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_lookup_site_reply(ctx->out.pos, key, &site,
                                        ctx->zone->conf.sites);

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_site_missing(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                     "no URL of this site was added");
}


ngx_int_t
ngx_http_urlstore_prefix_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t         rc;
    us_str_t          url, cuts[US_CANON_CUTS];
    ngx_uint_t        i, n;
    us_canon_t        canon;
    us_store_item_t  *items;
    u_char            buf[US_URL_MAX + 8];

    rc = ngx_http_urlstore_one_url(ctx, NULL, &canon);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    items = ngx_palloc(ctx->r->pool, sizeof(us_store_item_t) * US_CANON_CUTS);
    if (items == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n = us_canon_cuts(&canon, cuts);

    ngx_memzero(items, n * sizeof(us_store_item_t));

    for (i = 0; i < n; i++) {
        items[i].url = cuts[i];
        items[i].merge = canon.merge;
    }

    ngx_http_urlstore_shard_under(ctx);
    us_store_seen(ctx->zone->store, items, n);
    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    for (i = 0; i < n; i++) {
        if (items[i].status == US_SEEN) {
            ctx->top = items[i].id + 1;
            ctx->id = ngx_http_urlstore_id(ctx->zone, items[i].id);

            url.data = buf;
            url.len = us_store_item_url(&items[i], buf);

            return ngx_http_urlstore_prefix_answer(ctx, &url);
        }

        if (items[i].status == US_MOVED) {
            return ngx_http_urlstore_shard_moved(ctx, "a prefix of the URL");
        }

        /* the reply also reveals that this longer one is not there */

        ctx->negative = 1;
        ctx->absent = 1;
    }

    return ngx_http_urlstore_prefix_answer(ctx, NULL);
}


ngx_int_t
ngx_http_urlstore_prefix_answer(ngx_http_urlstore_ctx_t *ctx,
    const us_str_t *found)
{
    us_str_t  url;

    if (found) {
        ctx->answer = US_ANSWER_SEEN;

        ctx->url.data = ngx_pnalloc(ctx->r->pool, found->len);
        if (ctx->url.data == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->url.len = found->len;
        ngx_memcpy(ctx->url.data, found->data, found->len);

    } else {
        ctx->answer = US_ANSWER_UNSEEN;
    }

    url = ngx_http_urlstore_str(&ctx->url);

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON,
                                      us_lookup_url_max(url.len))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_lookup_prefix_reply(ctx->out.pos, ctx->format, ctx->id,
                                          found ? &url : NULL);

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


/* drops it, all that was put into it */

static ngx_int_t
ngx_http_urlstore_set_drop(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t           lsn;
    ngx_int_t          rc;
    us_store_status_t  status;

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    lsn = 0;
    status = us_store_set_drop(ctx->zone->store, ctx->set, &lsn);

    ctx->lsn = ngx_max(ctx->lsn, lsn);

    rc = ngx_http_urlstore_changed(ctx, status, ngx_http_urlstore_set_drop);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* US_GONE: another request was faster */

    return status == US_GONE
           ? ngx_http_urlstore_deny(ctx, ngx_http_urlstore_set_none)
           : ngx_http_urlstore_problem(ctx, NGX_HTTP_CONFLICT, NULL,
                                       "the set \"%V\" is declared (marks=), "
                                       "and cannot be dropped",
                                       &ctx->set_name);
}


/* one set: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_set_list(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    uint32_t                 *row;
    ngx_uint_t                more;
    us_store_set_info_t       set;

    row = ctx->data;

    if (*row == 0 && ctx->format == US_FORMAT_JSON) {
        out->pos = ngx_cpymem(out->pos, "{\"sets\":[", 9);
    }

    more = us_store_set_info(ctx->zone->store, row, &set);
    ctx->lsn = us_store_published(ctx->zone->store);

    if (ngx_http_urlstore_out_room(out, US_LIST_SET + US_LIST_END) != NGX_OK) {
        return NGX_ERROR;
    }

    if (more) {
        if (ctx->format == US_FORMAT_JSON && ctx->processed++) {
            *out->pos++ = ',';
        }

        out->pos = us_list_set(out->pos, ctx->format, &set);

    } else if (ctx->format == US_FORMAT_JSON) {
        out->pos = ngx_sprintf(out->pos, "],\"most\":%ui}\n", ctx->zone->sets);
    }

    return more ? NGX_AGAIN : NGX_OK;
}


/* GET /set, and PUT, GET and DELETE /set/NAME */

ngx_int_t
ngx_http_urlstore_set_handler(ngx_http_urlstore_ctx_t *ctx)
{
    uint32_t                  *row;
    ngx_int_t                  rc;
    us_store_t                *store;
    us_store_set_info_t        set;

    rc = ngx_http_urlstore_set_batch(ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->r->method == NGX_HTTP_DELETE) {
        return ngx_http_urlstore_set_drop(ctx);
    }

    store = ctx->zone->store;

    if (ctx->r->method == NGX_HTTP_PUT) {

        /* it may have waited for room since it was allowed */

        rc = ngx_http_urlstore_overtaken(ctx)
             ? NGX_HTTP_SERVICE_UNAVAILABLE : ngx_http_urlstore_set_make(ctx);

        if (rc != NGX_OK) {
            return ngx_http_urlstore_again(ctx, rc,
                                           ngx_http_urlstore_set_handler);
        }

        ctx->processed = 1;
        ctx->status = ctx->made ? NGX_HTTP_CREATED : NGX_HTTP_OK;
    }

    row = ngx_palloc(ctx->r->pool, sizeof(uint32_t));

    if (row == NULL
        || ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, US_LIST_SET)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->set_name.len == 0) {
        *row = 0;
        ctx->data = row;

        return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_set_list);
    }

    *row = ctx->set.row;

    if (!us_store_set_info(store, row, &set)
        || set.set.number != ctx->set.number)
    {
        return ngx_http_urlstore_deny(ctx, ngx_http_urlstore_set_none);
    }

    ctx->lsn = us_store_published(store);
    ctx->out.pos = us_list_set(ctx->out.pos, ctx->format, &set);

    if (ctx->format == US_FORMAT_JSON) {
        *ctx->out.pos++ = '\n';
    }

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}
