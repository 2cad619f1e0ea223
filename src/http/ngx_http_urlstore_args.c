/*
 * Query arguments: which of them there may be (api/us_request.h), and their
 * values.  Those of claims, older=DURATION, times=1 and at=TIME, are of a zone
 * that keeps claims (revisit=UNIT).  The rule is in store/us_claims.c.  The
 * site and the set that a request names, by site= and set=, or in its path.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_time.h"


/* bytes of an argument that a problem shows */
#define NGX_HTTP_URLSTORE_ARG   40

/* of a value, what a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN   100


ngx_int_t
ngx_http_urlstore_args(ngx_http_urlstore_ctx_t *ctx, const char *known)
{
    us_str_t         name;
    us_args_fault_t  fault;

    if (ctx->r->args.len == 0) {
        return NGX_DECLINED;
    }

    ctx->query = ngx_pnalloc(ctx->r->pool, ctx->r->args.len + 1);
    if (ctx->query == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    fault = us_args_check(ngx_http_urlstore_str(&ctx->r->args), known, &name);

    if (fault == US_ARGS_OK) {
        return NGX_DECLINED;
    }

    name.len = ngx_min(name.len, NGX_HTTP_URLSTORE_ARG);

    return fault == US_ARGS_UNKNOWN
           ? ngx_http_urlstore_bad(ctx, "unknown query argument \"%*s\"; "
                                   "allowed are: %s", name.len, name.data,
                                   *known ? known : "none")
           : ngx_http_urlstore_bad(ctx, "the query argument \"%*s\" %s",
                                   name.len, name.data,
                                   fault == US_ARGS_TWICE ? "is given twice"
                                   : fault == US_ARGS_FLAG
                                   ? "is a flag; its value is 1 or 0"
                                   : "has no value");
}


/* each value has the place in buf that it has in the query */

ngx_uint_t
ngx_http_urlstore_query(ngx_http_request_t *r, u_char *buf, const char *name,
    ngx_str_t *value)
{
    us_str_t  raw;

    ngx_str_null(value);

    if (!us_args_find(ngx_http_urlstore_str(&r->args), name, &raw)) {
        return 0;
    }

    value->data = buf + (raw.data - r->args.data);
    value->len = us_input_unescape(value->data, raw.data, raw.len);
    value->data[value->len] = '\0';

    return 1;
}


ngx_uint_t
ngx_http_urlstore_arg(ngx_http_urlstore_ctx_t *ctx, const char *name,
    ngx_str_t *value)
{
    return ngx_http_urlstore_query(ctx->r, ctx->query, name, value);
}


/* NAME=1 */

ngx_uint_t
ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name)
{
    return us_args_flag(ngx_http_urlstore_str(&r->args), name);
}


ngx_int_t
ngx_http_urlstore_urls_number(ngx_http_urlstore_ctx_t *ctx, const char *name,
    uint64_t least, uint64_t *n)
{
    ngx_str_t  value;

    if (!ngx_http_urlstore_arg(ctx, name, &value)) {
        return NGX_DECLINED;
    }

    if (us_id_parse(ngx_http_urlstore_str(&value), n) != US_ID_OK
        || *n < least)
    {
        return ngx_http_urlstore_bad(ctx, "invalid \"%s\" \"%*s\"; a decimal "
                                     "number, %uL or more, is expected", name,
                                     ngx_min(value.len, 100), value.data,
                                     least);
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_claims(ngx_http_urlstore_ctx_t *ctx, const char *what,
    uint64_t *least, uint64_t *most)
{
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    if (!us_life_recent(&zone->life)) {
        us_tally_add(zone->tally, US_N_UNREADY, 1);
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    *least = us_store_revisit(zone->store);
    *most = US_STORE_OLDER_MAX * *least;

    if (*least) {
        ctx->recent = !ctx->writes;
        return NGX_DECLINED;
    }

    if (zone->life.conf.store.revisit) {

        ngx_http_urlstore_retry_after(ctx, 1);

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         NULL, "claims are being added");
    }

    return ngx_http_urlstore_bad(ctx, "\"%s\" is not allowed: the zone keeps "
                                 "no claims (revisit=UNIT of urlstore_zone)",
                                 what);
}


ngx_int_t
ngx_http_urlstore_older(ngx_http_urlstore_ctx_t *ctx, uint32_t *units,
    ngx_uint_t *times)
{
    u_char      *p;
    uint64_t     s, unit, max;
    ngx_int_t    rc;
    ngx_str_t    value;
    ngx_uint_t   older;
    u_char       least[US_TIME_TEXT + 1];
    u_char       most[US_TIME_TEXT + 1];

    *units = 0;
    *times = ngx_http_urlstore_flag(ctx->r, "times");

    older = ngx_http_urlstore_arg(ctx, "older", &value);

    if (!older && !*times) {
        return NGX_DECLINED;
    }

    rc = ctx->zone->kind->claims(ctx, older ? "older" : "times", &unit, &max);

    if (rc != NGX_DECLINED || !older) {
        return rc;
    }

    if (us_time_duration(ngx_http_urlstore_str(&value), &s) == 0
        && s >= unit && s <= max)
    {
        *units = (uint32_t) ((s + unit - 1) / unit);
        return NGX_DECLINED;
    }

    p = us_time_put(least, unit);
    *p = '\0';
    p = us_time_put(most, max);
    *p = '\0';

    return ngx_http_urlstore_bad(ctx, "invalid \"older\" value \"%*s\"; use a "
                                 "duration from %s to %s, such as 90m, 12h or "
                                 "30d",
                                 ngx_min(value.len, NGX_HTTP_URLSTORE_SHOWN),
                                 value.data, least, most);
}


/* *at: now, if there is no at=; 0: clear=1 */

ngx_int_t
ngx_http_urlstore_claim_time(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t clear,
    uint64_t *at)
{
    ngx_str_t  value;

    *at = clear ? 0 : ngx_time();

    if (!ngx_http_urlstore_arg(ctx, "at", &value)) {
        return NGX_DECLINED;
    }

    if (clear) {
        return ngx_http_urlstore_bad(ctx, "the query has \"at\" and \"clear\"; "
                                     "one of them is allowed");
    }

    if (us_time_point(ngx_http_urlstore_str(&value), at) == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_bad(ctx, "invalid \"at\" value \"%*s\"; use "
                                 "seconds since 1970, or a time such as "
                                 "2026-11-22T08:28:18Z",
                                 ngx_min(value.len, NGX_HTTP_URLSTORE_SHOWN),
                                 value.data);
}


/*
 * The key of the site that a client names, in the request's pool.  *merge is
 * whether www.KEY is the same site.
 */

ngx_int_t
ngx_http_urlstore_site_key(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *host,
    us_str_t *key, int *merge)
{
    int                        rc;
    u_char                    *p;
    uint64_t                   budget;
    us_str_t                   name;
    us_canon_t                 canon;
    ngx_uint_t                 by_path;
    ngx_http_urlstore_zone_t  *zone;
    u_char                     buf[US_LOOKUP_BUF];

    zone = ctx->zone;

    budget = NGX_HTTP_URLSTORE_BUDGET;
    us_norm_ws_budget(zone->ws, &budget);

    rc = us_lookup_site(zone->norm, zone->ws, ngx_http_urlstore_str(host),
                        buf, &canon);

    us_norm_ws_budget(zone->ws, NULL);

    if (rc != 0) {
        by_path = (host == &ctx->tail);

        return ngx_http_urlstore_bad(ctx, "invalid %s \"%*s\"; "
                                     "%sHOST[:PORT] is expected",
                                     by_path ? "host" : "\"site\"",
                                     ngx_min(host->len, 100), host->data,
                                     by_path ? "/site/" : "");
    }

    name = us_canon_site(&canon);

    p = ngx_pnalloc(ctx->r->pool, name.len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    key->data = p;
    key->len = name.len;
    *merge = canon.merge == US_MERGE_FIRST;

    ngx_memcpy(p, name.data, name.len);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_set_make(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                   lsn;
    ngx_uint_t                 most;
    us_store_t                *store;
    us_store_conf_t            conf;
    us_store_status_t          status;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;
    store = zone->store;

    ngx_http_urlstore_clock(zone);
    us_store_conf(store, &conf);
    most = zone->sets + conf.nmarks;

    status = us_store_set_make(store, ngx_http_urlstore_str(&ctx->set_name),
                               most, &ctx->set, &lsn);

    if (status == US_NEW || status == US_SEEN) {
        ctx->made = (status == US_NEW);
        ctx->wrote |= ctx->made;
        ctx->lsn = ngx_max(ctx->lsn, lsn);
        return NGX_OK;
    }

    if (status == US_FULL && us_store_sets(store) >= most) {
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_CONFLICT,
                                       "the zone has %ui sets, and is allowed "
                                       "no more (sets=N of urlstore_zone)",
                                       zone->sets);
    }

    /* sets=N is new, and the store has no sets yet */

    return status == US_FULL && conf.sets == 0
           ? NGX_HTTP_SERVICE_UNAVAILABLE
           : ngx_http_urlstore_stored(ctx, status);
}


ngx_int_t
ngx_http_urlstore_set_begin(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                   id, set;
    ngx_str_t                 *name, other;
    ngx_uint_t                 by_path;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;
    name = &ctx->set_name;

    by_path = ctx->endpoint->flags & NGX_HTTP_URLSTORE_OF_SET;

    if (name->data == NULL && by_path) {
        *name = ctx->tail;

        if (ctx->r->method == NGX_HTTP_DELETE) {

            /* NAME/ID */

            id = ngx_http_urlstore_str(name);
            ctx->tail.len = 0;

            if (us_str_cut(&id, '/', &set) && id.len) {
                name->len = set.len;
                ctx->tail.data += set.len + 1;
                ctx->tail.len = id.len;
            }
        }

    } else if (name->data == NULL) {
        if (ngx_http_urlstore_arg(ctx, "mark", name)
            && ngx_http_urlstore_arg(ctx, "set", &other))
        {
            return ngx_http_urlstore_bad(ctx, "the query has \"set\" and "
                                         "\"mark\"; one of them is allowed");
        }

        if (name->data == NULL) {
            (void) ngx_http_urlstore_arg(ctx, "set", name);
        }

        if (name->data && name->data[0] == '!'
            && (ctx->endpoint->flags & NGX_HTTP_URLSTORE_LISTS))
        {
            ctx->outside = 1;
            name->data++;
            name->len--;
        }
    }

    /* GET /set: all of them */

    if (name->data == NULL
        || (by_path && name->len == 0
            && (ctx->r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))))
    {
        return ctx->handler(ctx);
    }

    if (!us_conf_is_set(ngx_http_urlstore_str(name))) {
        return ngx_http_urlstore_bad(ctx, "invalid name of a set \"%*s\"; 1 to "
                                     "%d letters, digits and _ - . : are "
                                     "expected", ngx_min(name->len, 100),
                                     name->data, US_STORE_SET_LEN);
    }

    /* the shards know the sets; a filter has none */

    if (zone->store == NULL) {
        return ctx->handler(ctx);
    }

    ctx->set = us_store_set(zone->store, ngx_http_urlstore_str(name));

    /* with sets_create=auto, none is an empty one, until something is put in */

    if (ctx->set.number == 0 && ctx->r->method != NGX_HTTP_PUT
        && !(zone->sets_auto
             && !(by_path && (ctx->r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD
                                           |NGX_HTTP_DELETE)))))
    {
        return ngx_http_urlstore_deny(ctx, ngx_http_urlstore_set_none);
    }

    return ctx->handler(ctx);
}
