
/*
 * Query arguments: which of them there may be (api/us_args.h).
 */


#include "ngx_http_urlstore_request.h"


/* bytes of an argument that a problem shows */
#define NGX_HTTP_URLSTORE_ARG   40


ngx_int_t
ngx_http_urlstore_args(ngx_http_request_t *r, const char *known)
{
    us_str_t         name;
    us_args_fault_t  fault;

    fault = us_args_check(ngx_http_urlstore_str(&r->args), known, &name);

    switch (fault) {

    case US_ARGS_OK:
        return NGX_DECLINED;

    case US_ARGS_UNKNOWN:
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "unknown query argument \"%*s\"; "
                                         "allowed are: %s",
                                         ngx_min(name.len,
                                                 NGX_HTTP_URLSTORE_ARG),
                                         name.data, *known ? known : "none");

    case US_ARGS_FLAG:
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query argument \"%*s\" is a "
                                         "flag; its value is 1 or 0",
                                         ngx_min(name.len,
                                                 NGX_HTTP_URLSTORE_ARG),
                                         name.data);

    default:
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query argument \"%*s\" %s",
                                         name.len, name.data,
                                         fault == US_ARGS_TWICE
                                         ? "is given twice" : "has no value");
    }
}
