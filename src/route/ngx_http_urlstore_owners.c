
/*
 * GET /prefix and GET /site/HOST of a router.
 *
 *     /prefix   the probes are looked up as a batch of /seen; the longest that
 *               is there is the answer, unless a longer one has no answer
 *     /site     the owner of the site's slot and all former owners are asked at
 *               the same time; the oldest that knows the site is right about
 *               its first id and its spelling
 *
 * A shard that does not answer has not denied: then the reply is 503, unless an
 * older one knows the site.  Numbers of URLs are added up; they are left out if
 * one is missing.
 */


#include "ngx_http_urlstore_rounds.h"
#include "../us_text.h"


/* of the rounds */

static ngx_int_t
ngx_http_urlstore_prefix_done(ngx_http_request_t *r)
{
    size_t                       i;
    us_scatter_item_t           *item;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_rounds_t  *rounds;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    rounds = ngx_http_urlstore_rounds_of(r);

    for (i = 0; i < rounds->s.n; i++) {
        item = &rounds->s.items[i];

        if (item->status == US_ANSWER_UNAVAILABLE) {
            return ngx_http_urlstore_rounds_none(rounds);
        }

        if (item->status == US_ANSWER_SEEN) {
            ctx->id = item->id;
            return ngx_http_urlstore_prefix_answer(r, &item->text);
        }
    }

    return ngx_http_urlstore_prefix_answer(r, NULL);
}


ngx_int_t
ngx_http_urlstore_route_prefix(ngx_http_request_t *r)
{
    us_str_t                     cuts[US_CANON_CUTS];
    ngx_int_t                    rc;
    ngx_uint_t                   i, n;
    us_canon_t                   canon;
    ngx_http_urlstore_rounds_t  *rounds;

    rc = ngx_http_urlstore_one_url(r, NULL, &canon);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* the longest first */

    n = us_canon_cuts(&canon, cuts);

    rounds = ngx_http_urlstore_rounds_create(r, US_SCATTER_SEEN, &rc);

    if (rounds == NULL) {
        return rc;
    }

    for (i = 0; i < n; i++) {
        if (us_scatter_url(&rounds->s, cuts[i]) != 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_str_set(&rounds->action, "/seen?summary=1");
    rounds->look_up = rounds->action;
    rounds->done = ngx_http_urlstore_prefix_done;

    return ngx_http_urlstore_rounds(rounds);
}


/* where the member begins, whose name has its comma; NULL: it has none */

static u_char *
ngx_http_urlstore_site_member(us_str_t text, const char *name, uint64_t *n)
{
    u_char    *p, *member;
    us_str_t   value;

    member = memmem(text.data, text.len, name, ngx_strlen(name));

    if (member == NULL) {
        return NULL;
    }

    p = member + ngx_strlen(name);
    value.data = p;

    while (p < text.data + text.len && *p >= '0' && *p <= '9') {
        p++;
    }

    value.len = p - value.data;

    return us_id_parse(value, n) == US_ID_OK ? member : NULL;
}


/* 0: one of the shards does not count, or does not answer */

static ngx_uint_t
ngx_http_urlstore_site_counts(ngx_http_urlstore_fan_t *fan, uint64_t *urls,
    uint64_t *last)
{
    uint64_t                   n;
    ngx_uint_t                 i;
    ngx_http_urlstore_call_t  *call;

    *urls = 0;

    for (i = fan->n; i; i--) {
        call = &fan->calls[i - 1];

        if (call->status == NGX_HTTP_NOT_FOUND) {
            continue;
        }

        if (call->status != NGX_HTTP_OK
            || ngx_http_urlstore_site_member(call->text, ",\"urls\":", &n)
               == NULL)
        {
            return 0;
        }

        *urls += n;

        /* the youngest that has the site has its last id */

        if (ngx_http_urlstore_site_member(call->text, ",\"last\":", last)
            == NULL)
        {
            return 0;
        }
    }

    return 1;
}


/* what the oldest answers, with the numbers of all */

static ngx_int_t
ngx_http_urlstore_site_reply(ngx_http_request_t *r,
    ngx_http_urlstore_fan_t *fan, ngx_uint_t oldest)
{
    u_char                   *end;
    us_str_t                  text;
    uint64_t                  n, urls, last;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    text = fan->calls[oldest].text;

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, text.len + 64)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    end = ngx_http_urlstore_site_member(text, ",\"urls\":", &n);

    if (end) {
        text.len = end - text.data;
    }

    ctx->out.pos = us_put_str(ctx->out.pos, text);

    if (end) {

        if (ngx_http_urlstore_site_counts(fan, &urls, &last)) {
            ctx->out.pos = us_put(ctx->out.pos, ",\"urls\":");
            ctx->out.pos = us_put_u64(ctx->out.pos, urls);
            ctx->out.pos = us_put(ctx->out.pos, ",\"last\":");
            ctx->out.pos = us_put_u64(ctx->out.pos, last);
        }

        ctx->out.pos = us_put(ctx->out.pos, "}\n");
    }

    return ngx_http_urlstore_send(r);
}


/* of the fan */

static ngx_int_t
ngx_http_urlstore_site_done(ngx_http_request_t *r)
{
    ngx_uint_t                 i;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = ngx_http_get_module_ctx(r, ngx_http_urlstore_route_module);

    for (i = fan->n; i; i--) {
        call = &fan->calls[i - 1];

        if (call->status == NGX_HTTP_OK) {
            return ngx_http_urlstore_site_reply(r, fan, i - 1);
        }

        if (call->status == NGX_HTTP_NOT_FOUND) {
            continue;
        }

        if (ngx_http_urlstore_call_problem(call)) {
            return ngx_http_urlstore_relay_reply(r, call);
        }

        ngx_http_urlstore_call_log(call, 1);

        return ngx_http_urlstore_route_silent(r,
                                      call->map->shards[call->shard].number);
    }

    return ngx_http_urlstore_site_missing(r);
}


/* the host as the client spells it */

static ngx_int_t
ngx_http_urlstore_site_path(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char                   *p;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    p = ngx_pnalloc(r->pool, sizeof("/site/") + 3 * ctx->tail.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    path->data = p;
    p = ngx_cpymem(p, "/site/", 6);
    p = (u_char *) ngx_escape_uri(p, ctx->tail.data, ctx->tail.len,
                                  NGX_ESCAPE_URI_COMPONENT);
    path->len = p - path->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_route_site(ngx_http_request_t *r)
{
    us_str_t                    key;
    ngx_int_t                   rc;
    ngx_str_t                   path;
    ngx_uint_t                  i;
    const us_owners_t          *owners;
    ngx_http_urlstore_fan_t    *fan;
    ngx_http_urlstore_call_t   *call;
    u_char                      buf[US_SLOT_FRONT];

    rc = ngx_http_urlstore_site_named(r, &key);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    fan = ngx_http_urlstore_fan(r, &rc);

    if (fan == NULL) {
        return rc;
    }

    if (fan->map->key != US_KEY_SITE) {
        return ngx_http_urlstore_route_sites(r, "site");
    }

    owners = us_map_owners(fan->map, us_slot_front(key, buf));
    fan->done = ngx_http_urlstore_site_done;

    /* the oldest is the last one */

    if (ngx_http_urlstore_site_path(r, &path) != NGX_OK
        || ngx_http_urlstore_fan_calls(fan, owners->nformer + 1) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        call->shard = i ? owners->former[i - 1] : owners->owner;
        call->reads = 1;
        call->single = 1;
        call->path = path;

        (void) ngx_http_urlstore_fan_call(fan, call);
    }

    return ngx_http_urlstore_fan_wait(fan);
}
