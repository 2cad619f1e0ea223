
/*
 * The handlers of all endpoints, for the table in
 * ngx_http_urlstore_handler.c.
 */


#ifndef _NGX_HTTP_URLSTORE_ENDPOINTS_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_ENDPOINTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


ngx_int_t ngx_http_urlstore_add_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_seen_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_url_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_urls_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_prefix_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_site_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_mark_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_normalize_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_metrics_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_health_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_stats_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_page_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_openapi_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_URLSTORE_ENDPOINTS_H_INCLUDED_ */
