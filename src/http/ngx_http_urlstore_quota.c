
/*
 * urlstore_quota KEY RATE [burst=N] [zone=NAME:SIZE];
 *
 * Limits how many *new* URLs a client may add: a leaky bucket for each value
 * of KEY (api/us_quota.h).  As in limit_req, KEY and RATE belong to the zone
 * that holds the buckets, and burst belongs to the directive.  Without zone=,
 * directives of the same KEY and RATE share a zone.
 *
 * A request is refused with 429 if the bucket holds more than burst when the
 * request begins, or when its first URLs are added: others of the client may
 * have been added meanwhile.  The URLs that were new are charged group by group
 * as they are added.  A batch may overdraw the bucket, and the client waits the
 * longer; of many batches at once, one for each worker may.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_quota.h"


/* of zones: the default in bytes, the least in pages of memory */
#define NGX_HTTP_URLSTORE_QUOTA_SIZE   (1024 * 1024)
#define NGX_HTTP_URLSTORE_QUOTA_PAGES  8

/* Retry-After is a day at most */
#define NGX_HTTP_URLSTORE_QUOTA_WAIT   86400


typedef struct {
    ngx_slab_pool_t                *shpool;
    us_quota_t                     *sh;
    ngx_http_complex_value_t        key;
    uint64_t                        rate;     /* units a millisecond */
    ngx_str_t                       rate_text;
} ngx_http_urlstore_quota_zone_t;


/* one directive */

struct ngx_http_urlstore_quota_s {
    ngx_shm_zone_t                 *shm_zone;
    uint64_t                        burst;    /* units */
    ngx_str_t                       name;     /* of zone=, or empty */
    size_t                          size;     /* 0: another directive has it */
};


/* its address is the tag of quota zones */
static ngx_uint_t  ngx_http_urlstore_quota_tag;


static ngx_int_t
ngx_http_urlstore_quota_burst(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_quota_t *quota = conf;

    return us_quota_burst(ngx_http_urlstore_str(value), &quota->burst) == 0
           ? NGX_OK : NGX_ERROR;
}


/* NAME[:SIZE] */

static ngx_int_t
ngx_http_urlstore_quota_name(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_quota_t *quota = conf;

    off_t       n;
    u_char     *p, *last;
    ngx_str_t   size;

    quota->name = *value;
    quota->size = 0;

    last = value->data + value->len;
    p = ngx_strlchr(value->data, last, ':');

    if (p) {
        quota->name.len = p - value->data;
        size.data = p + 1;
        size.len = last - size.data;

        n = ngx_parse_offset(&size);

        if (n < (off_t) opt->least * (off_t) ngx_pagesize) {
            return NGX_ERROR;
        }

        quota->size = n;
    }

    return quota->name.len ? NGX_OK : NGX_ERROR;
}


static ngx_http_urlstore_option_t  ngx_http_urlstore_quota_options[] = {
    { ngx_string("burst"), ngx_http_urlstore_quota_burst,
      0, 0, 0, NULL, NULL, "a number of 0 to 1000000000" },
    { ngx_string("zone"), ngx_http_urlstore_quota_name,
      0, NGX_HTTP_URLSTORE_QUOTA_PAGES, 0, NULL, NULL,
      "NAME, or NAME:SIZE with at least 8 pages (32k)" },
    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


static ngx_int_t
ngx_http_urlstore_quota_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_quota_zone_t *old = data;

    size_t                           size;
    void                            *buckets;
    us_quota_t                      *sh;
    ngx_slab_pool_t                 *shpool;
    ngx_http_urlstore_quota_zone_t  *zone;

    zone = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->shpool = shpool;

    if (old) {
        if (!ngx_http_urlstore_same(&zone->key.value, &old->key.value)) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "urlstore_quota zone \"%V\" uses the key \"%V\", "
                          "but used \"%V\" before: give it another name",
                          &shm_zone->shm.name, &zone->key.value,
                          &old->key.value);
            return NGX_ERROR;
        }

        zone->sh = old->sh;
        return NGX_OK;
    }

    /* "nginx -t" touches no memory that it does not need */

    if (ngx_test_config) {
        return NGX_OK;
    }

    sh = ngx_slab_calloc(shpool, sizeof(us_quota_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    /* two pages are left to the slab allocator */

    size = (shpool->pfree - 2) * ngx_pagesize;

    buckets = ngx_slab_calloc(shpool, size);
    if (buckets == NULL) {
        return NGX_ERROR;
    }

    us_quota_init(sh, buckets, size);

    if (ngx_http_urlstore_random(shm_zone->shm.log, sh->key, sizeof(sh->key))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->sh = sh;
    shpool->data = sh;

    return NGX_OK;
}


/* the first directive that names a zone decides on its key and its rate */

static ngx_shm_zone_t *
ngx_http_urlstore_quota_zone(ngx_conf_t *cf, ngx_str_t *name, size_t size,
    uint64_t rate)
{
    ngx_str_t                         *value;
    ngx_shm_zone_t                    *shm_zone;
    ngx_http_urlstore_quota_zone_t    *zone;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    shm_zone = ngx_shared_memory_add(cf, name, size,
                                     &ngx_http_urlstore_quota_tag);
    if (shm_zone == NULL) {
        return NULL;
    }

    zone = shm_zone->data;

    if (zone == NULL) {
        zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_quota_zone_t));
        if (zone == NULL) {
            return NULL;
        }

        ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

        ccv.cf = cf;
        ccv.value = &value[1];
        ccv.complex_value = &zone->key;

        if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
            return NULL;
        }

        zone->rate = rate;
        zone->rate_text = value[2];

        shm_zone->init = ngx_http_urlstore_quota_init;
        shm_zone->data = zone;

        return shm_zone;
    }

    if (!ngx_http_urlstore_same(&zone->key.value, &value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_quota zone \"%V\" has the key \"%V\", "
                           "not \"%V\"", name, &zone->key.value, &value[1]);
        return NULL;
    }

    if (zone->rate != rate) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_quota zone \"%V\" has the rate \"%V\", "
                           "not \"%V\"", name, &zone->rate_text, &value[2]);
        return NULL;
    }

    return shm_zone;
}


char *
ngx_http_urlstore_quota(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    uint64_t                    rate;
    ngx_str_t                  *value, *name;
    ngx_http_urlstore_quota_t  *quota;

    if (ulcf->quota != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        if (cf->args->nelts > 2) {
            return "is wrong: \"off\" allows no other parameter";
        }

        ulcf->quota = NULL;
        return NGX_CONF_OK;
    }

    if (cf->args->nelts < 3) {
        return "needs KEY and RATE, or \"off\"";
    }

    if (value[1].len == 0) {
        return "is wrong: KEY is empty";
    }

    quota = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_quota_t));
    if (quota == NULL) {
        return NGX_CONF_ERROR;
    }

    quota->size = NGX_HTTP_URLSTORE_QUOTA_SIZE;

    if (ngx_http_urlstore_options_read(cf, quota, 3,
                                       ngx_http_urlstore_quota_options)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (us_quota_rate(ngx_http_urlstore_str(&value[2]), &rate) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid rate \"%V\" of urlstore_quota: a number of "
                           "1 to 1000000000, then \"/s\", \"/m\" or \"/h\" is "
                           "expected", &value[2]);
        return NGX_CONF_ERROR;
    }

    name = &quota->name;

    if (name->len == 0) {

        /* that of all directives of this KEY and RATE that name none */

        name->data = ngx_pnalloc(cf->pool, sizeof("urlstore_quota  ")
                                           + value[1].len + NGX_INT64_LEN);
        if (name->data == NULL) {
            return NGX_CONF_ERROR;
        }

        name->len = ngx_sprintf(name->data, "urlstore_quota %V %uL", &value[1],
                                rate)
                    - name->data;
    }

    quota->shm_zone = ngx_http_urlstore_quota_zone(cf, name, quota->size, rate);
    if (quota->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    ulcf->quota = quota;

    return NGX_CONF_OK;
}


/* an empty key has no quota, as in limit_req */

ngx_int_t
ngx_http_urlstore_quota_key(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *key)
{
    ngx_http_urlstore_quota_zone_t  *zone;

    ngx_str_null(key);

    if (ctx->conf->quota == NULL) {
        return NGX_OK;
    }

    zone = ctx->conf->quota->shm_zone->data;

    return ngx_http_complex_value(ctx->r, &zone->key, key);
}


/*
 * NGX_DECLINED: the request may add; else a status.  With 429 the header
 * Retry-After is set, and ctx->fault.
 */

ngx_int_t
ngx_http_urlstore_quota_test(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                         level, tag, seconds;
    ngx_str_t                        key;
    ngx_http_urlstore_quota_t       *quota;
    ngx_http_urlstore_quota_zone_t  *zone;

    quota = ctx->conf->quota;
    zone = quota->shm_zone->data;

    if (ngx_http_urlstore_quota_key(ctx, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (key.len == 0) {
        return NGX_DECLINED;
    }

    tag = us_quota_tag(zone->sh, ngx_http_urlstore_str(&key));

    ngx_shmtx_lock(&zone->shpool->mutex);

    level = us_quota_level_locked(zone->sh, zone->rate, tag,
                                  ngx_current_msec);

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (level <= quota->burst) {
        return NGX_DECLINED;
    }

    /* Retry-After: the time after which the bucket holds no more than burst */

    us_tally_add(ctx->zone->tally, US_N_QUOTA, 1);

    seconds = ngx_min(us_quota_wait(level, quota->burst, zone->rate),
                      NGX_HTTP_URLSTORE_QUOTA_WAIT);

    ngx_http_urlstore_retry_after(ctx, seconds);

    return ngx_http_urlstore_fault(ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                   "over the quota of new URLs: the client's "
                                   "bucket holds %uL, drains at %V and admits "
                                   "requests at %uL or less; retry in %uL "
                                   "seconds",
                                   us_quota_urls(level), &zone->rate_text,
                                   us_quota_urls(quota->burst), seconds);
}


void
ngx_http_urlstore_quota_charge(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t n)
{
    uint64_t                         tag;
    ngx_str_t                        key;
    ngx_http_urlstore_quota_zone_t  *zone;

    zone = ctx->conf->quota->shm_zone->data;

    if (n == 0 || ngx_http_urlstore_quota_key(ctx, &key) != NGX_OK
        || key.len == 0)
    {
        return;
    }

    tag = us_quota_tag(zone->sh, ngx_http_urlstore_str(&key));

    ngx_shmtx_lock(&zone->shpool->mutex);

    us_quota_charge_locked(zone->sh, zone->rate, tag, ngx_current_msec, n);

    ngx_shmtx_unlock(&zone->shpool->mutex);
}
