
/*
 * GET /              the status page
 * GET /openapi.yaml  the description of the interface
 *
 * Both are files of front/, which front.awk turns into strings at configure
 * time.  The page shows what /stats, /seen, /url and /normalize answer to it,
 * under their access rules: there is no other way to the store.
 */


#include "ngx_http_urlstore_request.h"

#include "ngx_http_urlstore_front.h"


static ngx_int_t ngx_http_urlstore_page_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_page_send(ngx_http_request_t *r,
    ngx_str_t *text);


ngx_int_t
ngx_http_urlstore_page_handler(ngx_http_request_t *r)
{
    ngx_str_t                      policy;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ulcf->endpoint == NULL && r->uri.data[r->uri.len - 1] != '/') {
        return ngx_http_urlstore_page_redirect(r);
    }

    /* nothing from elsewhere, and no script but the page's own */

    ngx_str_set(&policy, "default-src 'none'; style-src 'unsafe-inline'; "
                         "script-src 'unsafe-inline'; img-src data:; "
                         "connect-src 'self'; form-action 'self'; "
                         "base-uri 'none'; frame-ancestors 'none'");

    if (ngx_http_urlstore_header(r, "Content-Security-Policy", &policy)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ngx_str_set(&ctx->type, "text/html; charset=utf-8");

    return ngx_http_urlstore_page_send(r, &ngx_http_urlstore_front_status);
}


ngx_int_t
ngx_http_urlstore_openapi_handler(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ngx_str_set(&ctx->type, "application/yaml");

    return ngx_http_urlstore_page_send(r, &ngx_http_urlstore_front_openapi);
}


/*
 * The page's links are relative and need the slash after the location's name.
 * The answer is relative too: "./NAME/" cannot lead to another host.
 */

static ngx_int_t
ngx_http_urlstore_page_redirect(ngx_http_request_t *r)
{
    u_char                   *name, *end;
    ngx_str_t                 location, text;
    ngx_http_urlstore_ctx_t  *ctx;

    name = r->unparsed_uri.data;
    end = ngx_strlchr(name, name + r->unparsed_uri.len, '?');

    if (end == NULL) {
        end = name + r->unparsed_uri.len;
    }

    for (name = end; name > r->unparsed_uri.data && name[-1] != '/'; name--) {
        /* void */
    }

    location.data = ngx_pnalloc(r->pool, sizeof(".//?") - 1 + (end - name)
                                         + r->args.len);
    if (location.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    location.len = ngx_sprintf(location.data, "./%*s/%s%V", end - name, name,
                               r->args.len ? "?" : "", &r->args)
                   - location.data;

    if (ngx_http_urlstore_header(r, "Location", &location) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ctx->status = NGX_HTTP_MOVED_PERMANENTLY;

    ngx_str_set(&ctx->type, "text/plain");
    ngx_str_set(&text, "moved\n");

    return ngx_http_urlstore_page_send(r, &text);
}


static ngx_int_t
ngx_http_urlstore_page_send(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    if (ngx_http_urlstore_out_init(out, r->pool, text->len) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    out->pos = ngx_cpymem(out->pos, text->data, text->len);

    return ngx_http_urlstore_send(r);
}
