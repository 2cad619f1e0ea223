
/*
 * See ngx_http_urlstore_persist.h: what a zone with path= can answer in each
 * state, and the 503 that says why it cannot.
 */


#include "ngx_http_urlstore_persist.h"


static ngx_int_t ngx_http_urlstore_retry_after(ngx_http_request_t *r);


ngx_uint_t
ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return r->method == NGX_HTTP_DELETE
           || (ep->name.len == 3 && ngx_strncmp(ep->name.data, "add", 3) == 0)
           || (ep->name.len == 4 && ngx_strncmp(ep->name.data, "mark", 4)
                                    == 0);
}


/* by id, which mode=lookup can */

static ngx_uint_t
ngx_http_urlstore_by_id(const ngx_http_urlstore_endpoint_t *ep)
{
    return (ep->name.len == 3 || (ep->name.len == 4 && ep->name.data[3] == 's'))
           && ngx_strncmp(ep->name.data, "url", 3) == 0;
}


ngx_int_t
ngx_http_urlstore_ready(ngx_http_request_t *r, ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    ngx_uint_t                       writes;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = zone->persist;

    if (p == NULL) {
        return NGX_DECLINED;
    }

    sh = p->sh;
    writes = ngx_http_urlstore_writes(r, ep);

    switch (sh->state) {

    case NGX_HTTP_URLSTORE_READY:

        if (!writes || ngx_http_urlstore_writable(zone)) {
            return NGX_DECLINED;
        }

        break;

    case NGX_HTTP_URLSTORE_FOLLOWING:
    case NGX_HTTP_URLSTORE_DAMAGED:

        if (!writes) {
            return NGX_DECLINED;
        }

        break;

    case NGX_HTTP_URLSTORE_LOOKUP:

        if (!writes && ngx_http_urlstore_by_id(ep)) {
            return NGX_DECLINED;
        }

        break;

    default:
        break;
    }

    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_UNREADY, 1);

    return ngx_http_urlstore_unready(r, zone, NULL);
}


/* all that there is: of a directory that is ours, or of a look-up zone's */

static ngx_uint_t
ngx_http_urlstore_whole(ngx_http_urlstore_persist_t *p)
{
    return p->sh->state == NGX_HTTP_URLSTORE_READY
           || p->sh->state == NGX_HTTP_URLSTORE_LOOKUP;
}


void
ngx_http_urlstore_begin(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_persist_t  *p;

    p = ctx->zone->persist;

    if (p) {
        ctx->partial = !ngx_http_urlstore_whole(p);
        ctx->generation = p->generation;
    }
}


/*
 * What a request did not find before the zone owned its directory may be there
 * now; if the zone began anew, what it found is worth nothing, either.
 */

ngx_uint_t
ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_persist_t  *p;

    p = ctx->zone->persist;

    return p
           && (ctx->generation != p->sh->load_generation
               || (ctx->negative
                   && (ctx->partial || !ngx_http_urlstore_whole(p))));
}


ngx_uint_t
ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    return p == NULL
           || (p->sh->state == NGX_HTTP_URLSTORE_READY && !p->orphan
               && !p->sh->stalled && !p->sh->lost);
}


/* whether a look-up tells anything, found or not, for which nobody can wait */

ngx_uint_t
ngx_http_urlstore_tells(ngx_http_urlstore_zone_t *zone, ngx_uint_t found)
{
    if (zone->persist == NULL) {
        return 1;
    }

    switch (zone->persist->sh->state) {

    case NGX_HTTP_URLSTORE_READY:
        return 1;

    case NGX_HTTP_URLSTORE_FOLLOWING:
    case NGX_HTTP_URLSTORE_DAMAGED:
        return found;

    default:
        return 0;
    }
}


/* in docs/api.md's words; states of one name stand together */

static const char  *ngx_http_urlstore_states[] = {
    [NGX_HTTP_URLSTORE_COLD] = "loading",
    [NGX_HTTP_URLSTORE_LOADING] = "loading",
    [NGX_HTTP_URLSTORE_FOLLOWING] = "not-owner",
    [NGX_HTTP_URLSTORE_READY] = "ready",
    [NGX_HTTP_URLSTORE_LOOKUP] = "ready",
    [NGX_HTTP_URLSTORE_DAMAGED] = "damaged",
    [NGX_HTTP_URLSTORE_FAILED] = "failed"
};


const char *
ngx_http_urlstore_state_name(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist ? ngx_http_urlstore_states[zone->persist->sh->state]
                         : "ready";
}


const char *
ngx_http_urlstore_state_word(ngx_http_urlstore_zone_t *zone, ngx_uint_t n)
{
    if (zone->persist == NULL) {
        return n == 0 ? "ready" : NULL;
    }

    return n < sizeof(ngx_http_urlstore_states)
               / sizeof(ngx_http_urlstore_states[0])
           ? ngx_http_urlstore_states[n] : NULL;
}


ngx_uint_t
ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist == NULL || ngx_http_urlstore_whole(zone->persist);
}


/* of loading, 0 .. 100 */

ngx_uint_t
ngx_http_urlstore_progress(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_sh_t  *sh;

    if (zone->persist == NULL) {
        return 100;
    }

    sh = zone->persist->sh;

    if (sh->state > NGX_HTTP_URLSTORE_LOADING) {
        return 100;
    }

    return sh->load_total ? ngx_min(99, sh->load_done * 100 / sh->load_total)
                          : 0;
}


/* 503 with the reason */

ngx_int_t
ngx_http_urlstore_unready(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra)
{
    u_char                           progress[64];
    ngx_http_urlstore_ctx_t         *ctx;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = zone->persist;
    sh = p->sh;
    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    switch (sh->state) {

    case NGX_HTTP_URLSTORE_DAMAGED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "read-only, good up to a damage of the "
                       "directory: %s", sh->reason);

    case NGX_HTTP_URLSTORE_FAILED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "the directory cannot be read: %s", sh->reason);

    case NGX_HTTP_URLSTORE_LOOKUP:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "this zone answers /url and /urls only "
                       "(mode=lookup)");

    default:
        break;
    }

    if (sh->lost) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "read-only until a restart: %s", sh->reason);
    }

    if (ngx_http_urlstore_retry_after(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (sh->state <= NGX_HTTP_URLSTORE_LOADING) {
        ngx_sprintf(progress, "\"progress\":%ui%Z",
                    ngx_http_urlstore_progress(zone));

        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       (char *) progress, "loading: %ui%%",
                       ngx_http_urlstore_progress(zone));
    }

    if (sh->state == NGX_HTTP_URLSTORE_FOLLOWING) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "another server owns the directory");
    }

    if (p->orphan) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "this process is ending");
    }

    if (ctx && ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "the directory was loaded meanwhile");
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, extra,
                                     "the disk is behind: %s",
                                     sh->stalled ? (char *) sh->reason
                                                 : "it did not answer in a "
                                                   "second");
}


static ngx_int_t
ngx_http_urlstore_retry_after(ngx_http_request_t *r)
{
    ngx_str_t  value;

    ngx_str_set(&value, "1");

    return ngx_http_urlstore_header(r, "Retry-After", &value);
}
