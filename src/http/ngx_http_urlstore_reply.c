/*
 * A request's context and headers, and the writer of its reply: the status
 * line, headers, and the text in ctx->out.
 *
 *     send()      ctx->out has all of it: a few answers, a page
 *     stream()    a producer writes it (ngx_http_urlstore_wait.c)
 *
 * The format is chosen by accept(): the best one that the header Accept names
 * (us_media_accept() in api/us_request.c), or else what the endpoint presets.
 * A batch presets that of its body (us_media_reply()), JSON for a query.
 *
 * When a reply may be sent is in ngx_http_urlstore_wait.c: all that depends on
 * the store passes ngx_http_urlstore_reply_when().
 */


#include "ngx_http_urlstore_cluster.h"


/* the request's, which begins here; NULL: no memory */

ngx_http_urlstore_ctx_t *
ngx_http_urlstore_ctx(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->r = r;
    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    ctx->zone = ctx->conf->zone;
    ctx->status = NGX_HTTP_OK;
    ctx->id = US_STORE_NO_ID;

    ngx_http_set_ctx(r, ctx, ngx_http_urlstore_module);

    return ctx;
}


/* the first header of this name, in lower case; NULL: there is none */

ngx_str_t *
ngx_http_urlstore_header_in(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == len
                && ngx_strncmp(h[i].lowcase_key, name, len) == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}


/* whether urlstore_allow_origin names it */

ngx_uint_t
ngx_http_urlstore_origin_allowed(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *origin)
{
    ngx_str_t    *allowed;
    ngx_uint_t    i;
    ngx_array_t  *origins;

    origins = ctx->conf->origins;

    if (origins == NULL) {
        return 0;
    }

    allowed = origins->elts;

    for (i = 0; i < origins->nelts; i++) {
        if (us_origin_matches(ngx_http_urlstore_str(&allowed[i]),
                              ngx_http_urlstore_str(origin)))
        {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_urlstore_tag(ngx_http_urlstore_zone_t *zone, us_map_tag_t *tag)
{
    const us_store_map_t  *map;

    map = us_store_map(zone->store);

    ngx_memcpy(tag->cluster, map->cluster, 16);
    ngx_memcpy(tag->digest, map->digest, 16);
    tag->shard = zone->conf.shard;
    tag->version = map->version;
}


/* a reply that is there as a whole */

ngx_int_t
ngx_http_urlstore_send_text(ngx_http_urlstore_ctx_t *ctx, us_str_t text)
{
    /* a byte more, as out_init() of 0 makes no piece */

    if (ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, text.len + 1)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = ngx_cpymem(ctx->out.pos, text.data, text.len);

    return ngx_http_urlstore_send(ctx);
}


ngx_int_t
ngx_http_urlstore_send(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_reply_header(ctx,
                                     ngx_http_urlstore_out_size(&ctx->out));

    if (rc == NGX_ERROR || rc > NGX_OK || ctx->r->header_only) {
        return rc;
    }

    return ngx_http_urlstore_reply_output(ctx, 1);
}


ngx_int_t
ngx_http_urlstore_reply_header(ngx_http_urlstore_ctx_t *ctx, off_t length)
{
    ngx_int_t            rc;
    ngx_str_t           *origin;
    ngx_uint_t           varies;
    us_map_tag_t         tag;
    ngx_http_request_t  *r;
    u_char               text[US_MAP_TAG_LEN];

    r = ctx->r;
    ctx->replied = 1;

    if (r->reading_body) {

        /* a fault before its end: nginx lingers, and closes */

        r->keepalive = 0;
    }

    r->headers_out.status = ctx->status;
    r->headers_out.content_type = ctx->type;
    r->headers_out.content_type_len = ctx->type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.content_length_n = length;

    if (!ctx->cacheable) {
        ngx_http_urlstore_no_store(ctx);
    }

    /*
     * What the reply depends on, in one line, since a cache of nginx before
     * 1.23 knows only the last one; and whether the page that asked may read it
     */

    varies = (ctx->conf->origins != NULL);

    if (ctx->cacheable || varies) {
        ngx_http_urlstore_header_text(ctx, "Vary",
                                      !varies ? "Accept"
                                      : ctx->cacheable ? "Accept, Origin"
                                      : "Origin");
    }

    origin = varies ? ngx_http_urlstore_header_in(r, "origin") : NULL;

    if (origin && ngx_http_urlstore_origin_allowed(ctx, origin)) {
        ngx_http_urlstore_header(ctx, "Access-Control-Allow-Origin", origin);
        ngx_http_urlstore_header_text(ctx, "Access-Control-Expose-Headers",
                                      "ETag, Idempotency-Status, Location, "
                                      "Retry-After");
    }

    if (ctx->tagged && us_store_map(ctx->zone->store)->number) {
        ngx_http_urlstore_tag(ctx->zone, &tag);
        ngx_http_urlstore_header_printf(ctx, "Urlstore-Map", sizeof(text),
                                        "%*s", (size_t)
                                        (us_map_tag_put(text, &tag) - text),
                                        text);
    }

    if (ctx->repeats && ctx->status < NGX_HTTP_BAD_REQUEST) {
        ngx_http_urlstore_header_text(ctx, "Idempotency-Status", "repeated");
    }

    if (ctx->no_memory) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->status == NGX_HTTP_NO_CONTENT) {
        ngx_str_null(&r->headers_out.content_type);
        r->headers_out.content_type_len = 0;
        r->headers_out.content_length_n = -1;
        r->header_only = 1;
    }

    rc = ngx_http_send_header(r);

    return rc == NGX_AGAIN ? NGX_OK : rc;
}


/*
 * The next answer may be another one: without Cache-Control a cache may keep a
 * 200, 404, 410 or 414 as long as it likes (RFC 9111, 4.2.2).
 */

void
ngx_http_urlstore_no_store(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_header_text(ctx, "Cache-Control", "no-store");
}


ngx_int_t
ngx_http_urlstore_reply_output(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t last)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *out, *cl;
    ngx_http_request_t  *r;

    r = ctx->r;

    out = ngx_http_urlstore_out_take(&ctx->out, last);

    if (out == NULL) {
        return last ? NGX_ERROR : NGX_OK;
    }

    for (cl = out; cl->next; cl = cl->next) { /* void */ }

    b = cl->buf;
    b->flush = !last;
    b->last_buf = (last && r == r->main);
    b->last_in_chain = last;

    rc = ngx_http_output_filter(r, out);

    (void) ngx_http_urlstore_out_sent(&ctx->out);

    return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


/*
 * If access may have been granted to this client alone, a cache that clients
 * share must not answer others.
 */

void
ngx_http_urlstore_cache_control(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t stays)
{
    ngx_uint_t           alone;
    ngx_http_request_t  *r;

    r = ctx->r;
    ctx->cacheable = 1;

    if (!stays) {
        ngx_http_urlstore_header_text(ctx, "Cache-Control", "no-cache");
        return;
    }

    alone = r->headers_in.authorization != NULL
            || ngx_http_urlstore_header_in(r, "cookie") != NULL;

    ngx_http_urlstore_header_printf(ctx, "Cache-Control", 32 + NGX_TIME_T_LEN,
                                    "%s, max-age=%T", alone ? "private"
                                                            : "public",
                                    ctx->conf->max_age);
}


ngx_table_elt_t *
ngx_http_urlstore_header(ngx_http_urlstore_ctx_t *ctx, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&ctx->r->headers_out.headers);
    if (h == NULL) {
        ctx->no_memory = 1;
        return NULL;
    }

#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return h;
}


void
ngx_http_urlstore_etag(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *value)
{
    /* the not modified filter takes it from there */

    ctx->r->headers_out.etag = ngx_http_urlstore_header(ctx, "ETag", value);
}


void
ngx_http_urlstore_untouched(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_header_text(ctx, "Urlstore-Refused", "1");
}


void
ngx_http_urlstore_header_text(ngx_http_urlstore_ctx_t *ctx, const char *key,
    const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = ngx_strlen(text);

    ngx_http_urlstore_header(ctx, key, &value);
}


void
ngx_http_urlstore_header_printf(ngx_http_urlstore_ctx_t *ctx, const char *key,
    size_t max, const char *fmt, ...)
{
    va_list    args;
    ngx_str_t  value;

    value.data = ngx_pnalloc(ctx->r->pool, max);
    if (value.data == NULL) {
        ctx->no_memory = 1;
        return;
    }

    va_start(args, fmt);
    value.len = ngx_vslprintf(value.data, value.data + max, fmt, args)
                - value.data;
    va_end(args);

    ngx_http_urlstore_header(ctx, key, &value);
}


void
ngx_http_urlstore_retry_after(ngx_http_urlstore_ctx_t *ctx, uint64_t seconds)
{
    ngx_http_urlstore_header_printf(ctx, "Retry-After", NGX_INT64_LEN, "%uL",
                                    seconds);
}


void
ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx, us_format_t format)
{
    us_str_t  type;

    ctx->format = format;

    type = us_media_type(format);

    ctx->type.data = (u_char *) type.data;
    ctx->type.len = type.len;
}


void
ngx_http_urlstore_accept(ngx_http_urlstore_ctx_t *ctx, us_format_t preset)
{
    ngx_str_t  *value;

    value = ngx_http_urlstore_header_in(ctx->r, "accept");

    ngx_http_urlstore_type(ctx, value ? us_media_accept(
                                            ngx_http_urlstore_str(value),
                                            preset)
                                      : preset);
}


ngx_int_t
ngx_http_urlstore_reply_begin(ngx_http_urlstore_ctx_t *ctx, us_format_t preset,
    size_t n)
{
    ngx_http_urlstore_accept(ctx, preset);

    return ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, n);
}
