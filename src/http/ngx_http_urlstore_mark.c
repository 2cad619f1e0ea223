
/*
 * POST and DELETE /mark/NAME: one-bit marks of ids and URLs, in batches.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


ngx_int_t
ngx_http_urlstore_mark_handler(ngx_http_request_t *r)
{
    int                       mark;
    us_str_t                  name;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    name.data = ctx->tail.data;
    name.len = ctx->tail.len;

    mark = us_store_mark_number(ctx->zone->store, name);

    if (mark == -1) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "the zone has no mark \"%*s\"",
                                         ngx_min(name.len, US_STORE_MARK_LEN),
                                         name.data);
    }

    ctx->mark = mark;
    ctx->clear = (r->method == NGX_HTTP_DELETE)
                 || ngx_http_urlstore_flag(r, "clear");

    return ngx_http_urlstore_batch(r, NGX_HTTP_URLSTORE_MARK);
}
