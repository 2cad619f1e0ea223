
/*
 * POST /add; GET and POST /seen.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


ngx_int_t
ngx_http_urlstore_add_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_quota_test(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_urlstore_batch(r, NGX_HTTP_URLSTORE_ADD);
}


ngx_int_t
ngx_http_urlstore_seen_handler(ngx_http_request_t *r)
{
    return ngx_http_urlstore_batch(r, NGX_HTTP_URLSTORE_SEEN);
}
