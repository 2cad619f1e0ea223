
/*
 * A POST to urlstore_cluster_admin: which shards of this nginx it is for, and
 * how it waits until they are as it wants them.
 *
 *     create()        look() <--.      called again and again, every few ms
 *        |              |       |
 *        '------------->|  wait()
 *                       |
 *                     reply
 */


#include "ngx_http_urlstore_shard.h"


#define NGX_HTTP_URLSTORE_POST_TICK   5       /* ms between two looks */
#define NGX_HTTP_URLSTORE_POST_WAIT   10000   /* ms that a POST waits */


static void ngx_http_urlstore_post_timer(ngx_event_t *ev);
static void ngx_http_urlstore_post_cleanup(void *data);


ngx_http_urlstore_post_t *
ngx_http_urlstore_post_create(ngx_http_request_t *r,
    ngx_http_urlstore_post_pt look)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_urlstore_post_t      *a;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_post_t));
    if (cln == NULL) {
        return NULL;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_urlstore_post_t));

    cln->handler = ngx_http_urlstore_post_cleanup;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    a->r = r;
    a->cluster = ulcf->admin;
    a->shard = NGX_ERROR;
    a->look = look;
    a->since = ngx_http_urlstore_now();
    a->most = NGX_HTTP_URLSTORE_POST_WAIT;
    a->timer.handler = ngx_http_urlstore_post_timer;
    a->timer.data = a;
    a->timer.log = r->connection->log;

    return a;
}


ngx_int_t
ngx_http_urlstore_post_only(ngx_http_urlstore_post_t *a, u_char *number,
    size_t len)
{
    a->shard = ngx_atoi(number, len);

    return a->shard == NGX_ERROR || a->shard >= US_SHARDS ? NGX_ERROR : NGX_OK;
}


ngx_http_urlstore_zone_t *
ngx_http_urlstore_post_next(ngx_http_urlstore_post_t *a, ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t  *zone;

    while ((zone = ngx_http_urlstore_shard_next(a->r, a->cluster, i))) {

        if (a->shard == NGX_ERROR
            || (ngx_uint_t) a->shard == zone->conf.shard)
        {
            ngx_http_urlstore_refresh(zone);
            break;
        }
    }

    return zone;
}


ngx_int_t
ngx_http_urlstore_post_wait(ngx_http_urlstore_post_t *a)
{
    if ((a->most && (ngx_http_urlstore_now() - a->since) / 1000 > a->most)
        || ngx_exiting || ngx_terminate)
    {
        return NGX_DECLINED;
    }

    a->r->main->count++;

    ngx_add_timer(&a->timer, NGX_HTTP_URLSTORE_POST_TICK);

    return NGX_DONE;
}


static void
ngx_http_urlstore_post_timer(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_urlstore_post_t  *a;

    a = ev->data;
    r = a->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_finalize_request(r, a->look(a));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_urlstore_post_cleanup(void *data)
{
    ngx_http_urlstore_post_t *a = data;

    if (a->timer.timer_set) {
        ngx_del_timer(&a->timer);
    }

    us_map_free(a->map);
}
