
/*
 * What a request brings: its context, query arguments (decoded once), headers.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_origin.h"


/* the request's, which begins here; NULL: no memory */

ngx_http_urlstore_ctx_t *
ngx_http_urlstore_ctx(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     ctx->format = US_FORMAT_TEXT;
     *     ctx->lsn = 0;
     *     ...
     */

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    ctx->zone = ulcf->zone;
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
    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == len
            && ngx_strncmp(h[i].lowcase_key, name, len) == 0)
        {
            return &h[i].value;
        }
    }
}


ngx_int_t
ngx_http_urlstore_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    us_str_t  raw;

    value->len = 0;
    value->data = NULL;

    if (!us_args_find(ngx_http_urlstore_str(&r->args), name, &raw)) {
        return NGX_DECLINED;
    }

    value->data = ngx_pnalloc(r->pool, raw.len + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = us_input_unescape(value->data, raw.data, raw.len);
    value->data[value->len] = '\0';

    return NGX_OK;
}


/* NAME=1 */

ngx_uint_t
ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name)
{
    return us_args_flag(ngx_http_urlstore_str(&r->args), name);
}


/* whether urlstore_allow_origin names it */

ngx_uint_t
ngx_http_urlstore_origin_allowed(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_str_t                     *allowed;
    ngx_uint_t                     i;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ulcf->origins == NULL) {
        return 0;
    }

    allowed = ulcf->origins->elts;

    for (i = 0; i < ulcf->origins->nelts; i++) {
        if (us_origin_matches(ngx_http_urlstore_str(&allowed[i]),
                              ngx_http_urlstore_str(origin)))
        {
            return 1;
        }
    }

    return 0;
}
