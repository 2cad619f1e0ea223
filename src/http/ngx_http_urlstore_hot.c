
/*
 * The hot table of a worker: one for the stores of all zones.  What it is:
 * store/us_hot.h.
 *
 * It is private to the worker, so a look-up in it takes no lock and waits for
 * no cache line of another worker.  Each worker has the links that it was asked
 * for.
 */


#include "ngx_http_urlstore.h"


static us_hot_t  *ngx_http_urlstore_hot;


void
ngx_http_urlstore_hot_init(size_t size, ngx_log_t *log)
{
    if (size == 0) {
        return;
    }

    ngx_http_urlstore_hot = us_hot_create(size);

    if (ngx_http_urlstore_hot == NULL) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "no memory for \"urlstore_hot\" %uz, this worker goes "
                      "on without", size);
    }
}


void
ngx_http_urlstore_hot_attach(ngx_http_urlstore_zone_t *zone)
{
    if (ngx_http_urlstore_hot) {
        us_store_hot(zone->store, ngx_http_urlstore_hot,
                     (uint64_t *) &zone->tally->n[NGX_HTTP_URLSTORE_N_HOT]);
    }
}


/* the stores have been closed */

void
ngx_http_urlstore_hot_exit(void)
{
    if (ngx_http_urlstore_hot) {
        us_hot_destroy(ngx_http_urlstore_hot);
        ngx_http_urlstore_hot = NULL;
    }
}
