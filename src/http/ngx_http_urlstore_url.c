
/*
 * id -> URL.
 *
 *     GET /url/7            the URL, cacheable; ?redirect=1: 302 to it
 *     DELETE /url/7         forgets it
 *
 * Many ids are in ngx_http_urlstore_ids.c.
 */


#include "ngx_http_urlstore.h"


static ngx_int_t ngx_http_urlstore_url_one(ngx_http_request_t *r,
    uint64_t id, ngx_int_t known);
static ngx_int_t ngx_http_urlstore_url_found(ngx_http_request_t *r,
    uint64_t id);
static ngx_uint_t ngx_http_urlstore_url_private(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_cache(ngx_http_request_t *r,
    uint64_t id);
static ngx_int_t ngx_http_urlstore_url_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_delete(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_missing(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_gone(ngx_http_request_t *r);


ngx_int_t
ngx_http_urlstore_url_handler(ngx_http_request_t *r)
{
    uint64_t                  id;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (r->method == NGX_HTTP_POST) {
        return ngx_http_urlstore_ids_post(r);
    }

    if (r->method != NGX_HTTP_DELETE
        && ngx_strlchr(ctx->tail.data, ctx->tail.data + ctx->tail.len, ','))
    {
        return ngx_http_urlstore_ids_get(r);
    }

    rc = ngx_http_urlstore_id(ctx->tail.data, ctx->tail.len, &id);

    if (rc == NGX_ERROR) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "an id is a decimal number");
    }

    if (rc == NGX_OK) {
        ctx->id = id;
    }

    if (r->method == NGX_HTTP_DELETE) {

        if (rc == NGX_DECLINED) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                             "no such id was given yet");
        }

        return ngx_http_urlstore_url_delete(r);
    }

    return ngx_http_urlstore_url_one(r, id, rc);
}


/* known: NGX_DECLINED if the id is too large to have been given */

static ngx_int_t
ngx_http_urlstore_url_one(ngx_http_request_t *r, uint64_t id, ngx_int_t known)
{
    size_t                    len;
    ngx_int_t                 rc;
    us_store_status_t         status;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    buf[US_URL_MAX + 8];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    status = US_UNKNOWN;
    len = 0;

    if (known == NGX_OK) {
        status = us_store_get(ctx->zone->store, id, buf, &len);
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    if (status == US_DELETED) {
        ngx_str_set(&ctx->status_name, "deleted");

        ctx->tops = 1;
        ctx->top = id + 1;
        ctx->absent = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_gone);
    }

    if (status == US_DAMAGED) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "urlstore_zone \"%V\": the record of id %uL is damaged",
                      &ctx->zone->name, id);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (status != US_OK) {
        ngx_str_set(&ctx->status_name, "unknown");

        ctx->negative = 1;
        ctx->absent = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_missing);
    }

    ngx_str_set(&ctx->status_name, "seen");

    ctx->tops = 1;
    ctx->top = id + 1;

    ctx->url.data = ngx_pnalloc(r->pool, len);
    if (ctx->url.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(ctx->url.data, buf, len);
    ctx->url.len = len;

    return ngx_http_urlstore_url_found(r, id);
}


/* ctx->url is the URL of the id */

static ngx_int_t
ngx_http_urlstore_url_found(ngx_http_request_t *r, uint64_t id)
{
    us_str_t                  url;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    url.data = ctx->url.data;
    url.len = ctx->url.len;

    if (ngx_http_urlstore_url_cache(r, id) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool,
                                   us_json_quoted_max(url.len) + 64)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_flag(r, "redirect")) {
        return ngx_http_urlstore_url_redirect(r);
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT));

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        ctx->out.pos = ngx_cpymem(ctx->out.pos, url.data, url.len);

    } else {
        ctx->out.pos = ngx_sprintf(ctx->out.pos, "{\"id\":%uL,\"url\":", id);
        ctx->out.pos = us_json_quote(ctx->out.pos, url);
        *ctx->out.pos++ = '}';
    }

    *ctx->out.pos++ = '\n';

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


/*
 * An id on disk keeps its URL, but for a DELETE: caches may keep the answer.
 * The ETag changes with the store and its epoch; JSON and text differ.
 */

static ngx_int_t
ngx_http_urlstore_url_cache(ngx_http_request_t *r, uint64_t id)
{
    u_char                        *p;
    ngx_str_t                      value;
    ngx_table_elt_t               *h;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    p = ngx_pnalloc(r->pool, 32 + 3 * NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    *p++ = '"';

    p = ngx_hex_dump(p, ctx->zone->conf.uuid, 16);
    p = ngx_sprintf(p, "-%xL-%xL%s\"", ctx->zone->conf.epoch, id,
                    ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT)
                    == NGX_HTTP_URLSTORE_TEXT ? "" : "-j");

    value.len = p - value.data;

    if (ngx_http_urlstore_header(r, "ETag", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the not modified filter takes it from there */

    h = r->headers_out.headers.last->elts;
    r->headers_out.etag = &h[r->headers_out.headers.last->nelts - 1];

    ngx_str_set(&value, "Accept");

    if (ngx_http_urlstore_header(r, "Vary", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (id < ngx_http_urlstore_durable_ids(ctx->zone)) {
        value.data = ngx_pnalloc(r->pool, 32 + NGX_TIME_T_LEN);
        if (value.data == NULL) {
            return NGX_ERROR;
        }

        value.len = ngx_sprintf(value.data, "%s, max-age=%T",
                                ngx_http_urlstore_url_private(r)
                                ? "private" : "public",
                                ulcf->max_age)
                    - value.data;

    } else {
        ngx_str_set(&value, "no-cache");
    }

    ctx->cacheable = 1;

    return ngx_http_urlstore_header(r, "Cache-Control", &value);
}


/* a canonical URL is ASCII without control bytes: make sure all the same */

static ngx_int_t
ngx_http_urlstore_url_redirect(ngx_http_request_t *r)
{
    size_t                    i;
    u_char                   *p;
    ngx_str_t                *url, value;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    url = &ctx->url;

    value.data = ngx_pnalloc(r->pool, url->len * 3);
    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = value.data;

    for (i = 0; i < url->len; i++) {
        if (url->data[i] <= 0x20 || url->data[i] >= 0x7f) {
            p = ngx_sprintf(p, "%%%02XD", (int) url->data[i]);

        } else {
            *p++ = url->data[i];
        }
    }

    value.len = p - value.data;

    if (ngx_http_urlstore_header(r, "Location", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->status = NGX_HTTP_MOVED_TEMPORARILY;
    ngx_http_urlstore_type(ctx, NGX_HTTP_URLSTORE_TEXT);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_url_delete(ngx_http_request_t *r)
{
    int                       was;
    ngx_int_t                 rc;
    us_store_status_t         status;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    was = 0;
    ngx_http_urlstore_deleting(ctx->zone);

    status = us_store_delete(ctx->zone->store, ctx->id, &was, &ctx->lsn);

    ngx_http_urlstore_deleted(ctx->zone, status == US_OK ? ctx->lsn : 0);

    switch (status) {

    case US_OK:
        ctx->wrote = 1;
        ctx->status = NGX_HTTP_NO_CONTENT;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);

    case US_BUSY:
        rc = ngx_http_urlstore_room_when(r, ngx_http_urlstore_url_delete);

        return rc == NGX_DECLINED
               ? ngx_http_urlstore_unready(r, ctx->zone, NULL) : rc;

    case US_FULL:
        return ngx_http_urlstore_problem(r, NGX_HTTP_INSUFFICIENT_STORAGE,
                                         NULL, "the zone is full, it cannot "
                                         "note that the URL is deleted");

    default: /* US_UNKNOWN */
        ctx->lsn = us_store_published(ctx->zone->store);
        ctx->negative = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_missing);
    }
}


static ngx_int_t
ngx_http_urlstore_url_missing(ngx_http_request_t *r)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                     "no such id was given yet");
}


static ngx_int_t
ngx_http_urlstore_url_gone(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_GONE, NULL,
                                     "the URL of id %uL was deleted",
                                     ctx->id);
}


/*
 * Whether access may have been granted to this client alone: then a cache that
 * clients share must not answer others.
 */

static ngx_uint_t
ngx_http_urlstore_url_private(ngx_http_request_t *r)
{
    return r->headers_in.authorization != NULL
           || ngx_http_urlstore_header_in(r, "cookie") != NULL;
}
