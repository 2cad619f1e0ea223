
/*
 * An nginx module of its own: the replicated log in PostgreSQL.  It has no
 * directives and links libpq, which ngx_http_urlstore_module does not.  That
 * module finds this one by its name, and in spare_hook0 the functions of the
 * log (us_replog_ops_t).
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "postgres/us_pg.h"


static ngx_core_module_t  ngx_http_urlstore_postgres_module_ctx = {
    ngx_string("urlstore_postgres"),
    NULL,
    NULL
};


ngx_module_t  ngx_http_urlstore_postgres_module = {
    NGX_MODULE_V1,
    &ngx_http_urlstore_postgres_module_ctx,   /* module context */
    NULL,                                     /* module directives */
    NGX_CORE_MODULE,                          /* module type */
    NULL,                                     /* init master */
    NULL,                                     /* init module */
    NULL,                                     /* init process */
    NULL,                                     /* init thread */
    NULL,                                     /* exit thread */
    NULL,                                     /* exit process */
    NULL,                                     /* exit master */
    (uintptr_t) &us_pg_ops,
    0, 0, 0, 0, 0, 0, 0
};
