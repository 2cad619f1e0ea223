
/*
 * See ngx_http_urlstore_persist.h: the options of urlstore_zone that name a
 * directory and say how it is kept.
 */


#include "ngx_http_urlstore_persist.h"


static ngx_http_urlstore_persist_t *ngx_http_urlstore_persist_of(
    ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone);

static ngx_http_urlstore_persist_t *
ngx_http_urlstore_persist_of(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
    us_life_conf_t               *conf;
    ngx_http_urlstore_persist_t  *p;

    if (zone->persist) {
        return zone->persist;
    }

    p = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_persist_t));
    if (p == NULL) {
        return NULL;
    }

    p->zone = zone;
    p->cycle = cf->cycle;
    ngx_str_set(&p->sync_name, "1s");

    conf = &p->life.conf;
    conf->sync_name = (char *) p->sync_name.data;
    conf->interval = 1000;
    conf->snapshot = NGX_HTTP_URLSTORE_SNAPSHOT;
    conf->scrub = NGX_HTTP_URLSTORE_SCRUB;

    zone->persist = p;

    return p;
}


ngx_int_t
ngx_http_urlstore_opt_path(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len == 0) {
        return NGX_ERROR;
    }

#if !(NGX_THREADS)

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"path\" needs an nginx built with threads");
    return NGX_ERROR;

#else

    p->pool = ngx_thread_pool_add(cf, NULL);
    if (p->pool == NULL) {
        return NGX_ERROR;
    }

#endif

    p->path = *value;

    if (ngx_conf_full_name(cf->cycle, &p->path, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    p->life.conf.path = (char *) p->path.data;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_sync(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char                       *name;
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len > 15) {
        return NGX_ERROR;
    }

    name = ngx_pnalloc(cf->pool, value->len + 1);
    if (name == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(name, value->data, value->len + 1);

    p->sync_name.data = name;
    p->sync_name.len = value->len;
    p->life.conf.sync_name = (char *) name;

    if (ngx_strcmp(name, "always") == 0) {
        p->life.conf.sync = US_SYNC_ALWAYS;
        return NGX_OK;
    }

    if (ngx_strcmp(name, "off") == 0) {
        p->life.conf.sync = US_SYNC_OFF;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->life.conf.interval = ms;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_mode(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  lookup;

    if (ngx_http_urlstore_opt_either(value, "store", "lookup", &lookup)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->conf.lookup = lookup;

    return NGX_OK;
}


/* the least growth of the journal between two snapshots, or off */

ngx_int_t
ngx_http_urlstore_opt_snapshot(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    off_t                         size;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->life.conf.snapshot = 0;
        return NGX_OK;
    }

    size = ngx_parse_offset(value);

    if (size <= 0) {
        return NGX_ERROR;
    }

    p->life.conf.snapshot = size;

    return NGX_OK;
}


/* the time between two scrubs, or off */

ngx_int_t
ngx_http_urlstore_opt_scrub(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->life.conf.scrub = 0;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->life.conf.scrub = ms;

    return NGX_OK;
}


/* after all options: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_persist_conf(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {

        if (zone->conf.lookup) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "urlstore_zone \"%V\": mode=lookup needs a "
                               "\"path\"", &zone->name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (ngx_http_urlstore_path_free(cf, zone, &p->path) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->conf.lookup) {
        return NGX_OK;
    }

    zone->conf.ring = us_store_ring(size);

    return NGX_OK;
}


/* two zones would each wait for the other one to leave the directory */

ngx_int_t
ngx_http_urlstore_path_free(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *path)
{
    size_t                           len;
    ngx_str_t                       *other;
    ngx_uint_t                       i;
    ngx_http_urlstore_zone_t       **zp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    zp = umcf->zones.elts;

    for (i = 0; i < umcf->zones.nelts; i++) {

        other = zp[i]->persist ? &zp[i]->persist->path
                : zp[i]->filter ? &zp[i]->filter->path : NULL;

        if (zp[i] == zone || other == NULL) {
            continue;
        }

        /* with a slash at the end or without */

        len = ngx_min(other->len, path->len);

        if (len && ngx_strncmp(other->data, path->data, len) == 0
            && (other->len == len || ngx_strcmp(other->data + len, "/") == 0)
            && (path->len == len || ngx_strcmp(path->data + len, "/") == 0))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "path=%V of \"%V\" is used by \"%V\" already",
                               path, &zone->name, &zp[i]->name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* what of the options cannot change at a reload, or NULL */

const char *
ngx_http_urlstore_persist_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_persist_t  *a, *b;

    a = zone->persist;
    b = old->persist;

    if ((a == NULL) != (b == NULL)) {
        return "path";
    }

    if (a == NULL) {
        return NULL;
    }

    if (a->path.len != b->path.len
        || ngx_memcmp(a->path.data, b->path.data, a->path.len) != 0)
    {
        return "path";
    }

    if (a->life.conf.sync != b->life.conf.sync
        || a->life.conf.interval != b->life.conf.interval)
    {
        return "sync";
    }

    return NULL;
}
