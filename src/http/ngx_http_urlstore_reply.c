
/*
 * Sending replies.  When they may be sent is in ngx_http_urlstore_park.c:
 * every reply that tells what the store has, or has not, leaves through
 * ngx_http_urlstore_reply_when(), with the LSN that it depends on in ctx->lsn.
 */


#include "ngx_http_urlstore.h"


/*
 * What a GET tells may be another thing in a second: without a word a cache
 * may keep a 200, 404 or 410 for as long as it likes (RFC 9111, 4.2.2).
 */

ngx_int_t
ngx_http_urlstore_send(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 value;
    ngx_chain_t              *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->replied = 1;

    r->headers_out.status = ctx->status;
    r->headers_out.content_type = ctx->type;
    r->headers_out.content_type_len = ctx->type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (!ctx->cacheable && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        ngx_str_set(&value, "no-store");

        if (ngx_http_urlstore_header(r, "Cache-Control", &value) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->status == NGX_HTTP_NO_CONTENT) {
        ngx_str_null(&r->headers_out.content_type);
        r->headers_out.content_type_len = 0;
        r->header_only = 1;
        return ngx_http_send_header(r);
    }

    r->headers_out.content_length_n = ngx_http_urlstore_out_size(&ctx->out);

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out = ngx_http_urlstore_out_finish(&ctx->out);

    ctx->out.last->buf->last_buf = (r == r->main) ? 1 : 0;
    ctx->out.last->buf->last_in_chain = 1;

    return ngx_http_output_filter(r, out);
}


/* key is a literal; *value lives as long as the request */

ngx_int_t
ngx_http_urlstore_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return NGX_OK;
}


void
ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_format_t format)
{
    ctx->format = format;

    switch (format) {

    case NGX_HTTP_URLSTORE_JSON:
        ngx_str_set(&ctx->type, "application/json");
        break;

    case NGX_HTTP_URLSTORE_NDJSON:
        ngx_str_set(&ctx->type, "application/x-ndjson");
        break;

    default:
        ngx_str_set(&ctx->type, "text/plain");
        break;
    }
}
