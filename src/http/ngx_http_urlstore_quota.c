
/*
 * urlstore_quota KEY RATE [burst=N] [zone=NAME:SIZE];
 *
 * Limits how many *new* URLs a client may add: a leaky bucket for each value
 * of KEY.  As in limit_req, KEY and RATE belong to the zone that holds the
 * buckets, and burst belongs to the directive.  Without zone=, directives of
 * the same KEY and RATE share a zone.
 *
 *     zone      | row of 8 buckets | row of 8 buckets | ...
 *     bucket    tag      keyed hash of KEY's value; 0: free
 *               level    new URLs that have not drained yet, in units
 *               drained  the time up to which RATE has drained it, ms
 *
 * A tag belongs to one row.  A unit is the 3,600,000th part of a URL: N/h
 * drains N units a millisecond, N/m 60 N, N/s 3600 N, all of them exactly.
 *
 * A request is refused with 429 if the bucket holds more than burst when the
 * request begins.  The URLs that were new are charged when it ends: a batch
 * may overdraw the bucket, and the client waits the longer.  If a row is full,
 * the bucket with the lowest level is forgotten, so that a client cannot get
 * rid of its debt by naming many others.
 *
 * A worker that is killed while it holds the lock leaves one bucket with a
 * wrong level and nothing else.  Tags are keyed (SipHash), so that nobody can
 * choose the client with which to share a row.
 */


#include "ngx_http_urlstore_request.h"
#include "../us_hash.h"

#include <sys/random.h>


#define NGX_HTTP_URLSTORE_ROW          8
#define NGX_HTTP_URLSTORE_UNITS        3600000          /* a URL */

/* the greatest number of a directive */
#define NGX_HTTP_URLSTORE_QUOTA_MAX    1000000000

/* of zones: the default in bytes, the least in pages of memory */
#define NGX_HTTP_URLSTORE_QUOTA_SIZE   (1024 * 1024)
#define NGX_HTTP_URLSTORE_QUOTA_PAGES  8


typedef struct {
    uint64_t                        tag;
    uint64_t                        level;
    uint64_t                        drained;
} ngx_http_urlstore_bucket_t;


typedef struct {
    uint8_t                         key[16];  /* of the tags */
    ngx_uint_t                      rows;
    ngx_http_urlstore_bucket_t     *buckets;
} ngx_http_urlstore_quota_sh_t;


typedef struct {
    ngx_slab_pool_t                *shpool;
    ngx_http_urlstore_quota_sh_t   *sh;
    ngx_http_complex_value_t        key;
    uint64_t                        rate;     /* units a millisecond */
    ngx_str_t                       rate_text;
} ngx_http_urlstore_quota_zone_t;


/* one directive */

struct ngx_http_urlstore_quota_s {
    ngx_shm_zone_t                 *shm_zone;
    uint64_t                        burst;    /* units */
};


static ngx_int_t ngx_http_urlstore_quota_args(ngx_conf_t *cf,
    ngx_str_t *burst, ngx_str_t *zone);
static char *ngx_http_urlstore_quota_invalid(ngx_conf_t *cf,
    const char *what, ngx_str_t *value, const char *allowed);
static ngx_int_t ngx_http_urlstore_quota_rate(ngx_str_t *value,
    uint64_t *rate);
static ngx_int_t ngx_http_urlstore_quota_burst(ngx_str_t *value,
    uint64_t *burst);
static ngx_int_t ngx_http_urlstore_quota_named(ngx_str_t *zone, size_t *size);
static ngx_int_t ngx_http_urlstore_quota_own(ngx_conf_t *cf, uint64_t rate,
    ngx_str_t *zone);
static ngx_shm_zone_t *ngx_http_urlstore_quota_zone(ngx_conf_t *cf,
    ngx_str_t *name, size_t size, uint64_t rate);
static ngx_int_t ngx_http_urlstore_quota_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_urlstore_quota_create(ngx_shm_zone_t *shm_zone);
static ngx_int_t ngx_http_urlstore_quota_refuse(ngx_http_request_t *r,
    ngx_http_urlstore_quota_t *quota, uint64_t level);
static ngx_int_t ngx_http_urlstore_quota_client(ngx_http_request_t *r,
    ngx_http_urlstore_quota_zone_t *zone, uint64_t *tag);
static ngx_http_urlstore_bucket_t *ngx_http_urlstore_quota_find_locked(
    ngx_http_urlstore_quota_zone_t *zone, uint64_t tag, ngx_uint_t create);
static void ngx_http_urlstore_quota_drain_locked(
    ngx_http_urlstore_quota_zone_t *zone, ngx_http_urlstore_bucket_t *bucket);


/* its address is the tag of quota zones */
static ngx_uint_t  ngx_http_urlstore_quota_tag;


char *
ngx_http_urlstore_quota(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    size_t                      size;
    uint64_t                    rate;
    ngx_str_t                  *value, burst, zone;
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

    quota = ngx_palloc(cf->pool, sizeof(ngx_http_urlstore_quota_t));
    if (quota == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&burst, "0");
    ngx_str_null(&zone);

    if (ngx_http_urlstore_quota_args(cf, &burst, &zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_quota_rate(&value[2], &rate) != NGX_OK) {
        return ngx_http_urlstore_quota_invalid(cf, "rate", &value[2],
                   "a number of 1 to 1000000000, then \"/s\", \"/m\" or "
                   "\"/h\"");
    }

    if (ngx_http_urlstore_quota_burst(&burst, &quota->burst) != NGX_OK) {
        return ngx_http_urlstore_quota_invalid(cf, "burst", &burst,
                   "a number of 0 to 1000000000");
    }

    if (zone.data == NULL) {
        size = NGX_HTTP_URLSTORE_QUOTA_SIZE;

        if (ngx_http_urlstore_quota_own(cf, rate, &zone) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

    } else if (ngx_http_urlstore_quota_named(&zone, &size) != NGX_OK) {
        return ngx_http_urlstore_quota_invalid(cf, "zone", &zone,
                   "NAME, or NAME:SIZE with at least 8 pages (32k)");
    }

    quota->shm_zone = ngx_http_urlstore_quota_zone(cf, &zone, size, rate);
    if (quota->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    ulcf->quota = quota;

    return NGX_CONF_OK;
}


/* burst=N and zone=NAME:SIZE, each once */

static ngx_int_t
ngx_http_urlstore_quota_args(ngx_conf_t *cf, ngx_str_t *burst,
    ngx_str_t *zone)
{
    size_t       len;
    ngx_str_t   *value, *v;
    ngx_uint_t   i, seen, bit;

    value = cf->args->elts;
    seen = 0;

    for (i = 3; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "burst=", 6) == 0) {
            v = burst;
            len = 6;
            bit = 1;

        } else if (ngx_strncmp(value[i].data, "zone=", 5) == 0) {
            v = zone;
            len = 5;
            bit = 2;

        } else {
            (void) ngx_http_urlstore_quota_invalid(cf, "parameter", &value[i],
                                             "burst=N or zone=NAME:SIZE");
            return NGX_ERROR;
        }

        if (seen & bit) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%*s\" of "
                               "urlstore_quota", len - 1, value[i].data);
            return NGX_ERROR;
        }

        seen |= bit;

        v->data = value[i].data + len;
        v->len = value[i].len - len;
    }

    return NGX_OK;
}


static char *
ngx_http_urlstore_quota_invalid(ngx_conf_t *cf, const char *what,
    ngx_str_t *value, const char *allowed)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid %s \"%V\" of urlstore_quota: %s is expected",
                       what, value, allowed);

    return NGX_CONF_ERROR;
}


/* N/s, N/m or N/h, also with an r before the slash; in units a millisecond */

static ngx_int_t
ngx_http_urlstore_quota_rate(ngx_str_t *value, uint64_t *rate)
{
    size_t     len;
    ngx_int_t  n, seconds;

    len = value->len;

    if (len < 3 || value->data[len - 2] != '/') {
        return NGX_ERROR;
    }

    switch (value->data[len - 1]) {
    case 's':
        seconds = 1;
        break;
    case 'm':
        seconds = 60;
        break;
    case 'h':
        seconds = 3600;
        break;
    default:
        return NGX_ERROR;
    }

    len -= 2;

    if (value->data[len - 1] == 'r') {
        len--;
    }

    n = ngx_atoi(value->data, len);

    if (n == NGX_ERROR || n == 0 || n > NGX_HTTP_URLSTORE_QUOTA_MAX) {
        return NGX_ERROR;
    }

    *rate = (uint64_t) n * (NGX_HTTP_URLSTORE_UNITS / 1000 / seconds);

    return NGX_OK;
}


/* in units */

static ngx_int_t
ngx_http_urlstore_quota_burst(ngx_str_t *value, uint64_t *burst)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n == NGX_ERROR || n > NGX_HTTP_URLSTORE_QUOTA_MAX) {
        return NGX_ERROR;
    }

    *burst = (uint64_t) n * NGX_HTTP_URLSTORE_UNITS;

    return NGX_OK;
}


/* NAME:SIZE becomes NAME; size is 0 if another directive has it */

static ngx_int_t
ngx_http_urlstore_quota_named(ngx_str_t *zone, size_t *size)
{
    u_char     *p, *last;
    ssize_t     n;
    ngx_str_t   s;

    *size = 0;

    last = zone->data + zone->len;
    p = ngx_strlchr(zone->data, last, ':');

    if (p == NULL) {
        return zone->len ? NGX_OK : NGX_ERROR;
    }

    s.data = p + 1;
    s.len = last - s.data;

    n = ngx_parse_size(&s);

    if (p == zone->data
        || n < (ssize_t) (NGX_HTTP_URLSTORE_QUOTA_PAGES * ngx_pagesize))
    {
        return NGX_ERROR;
    }

    zone->len = p - zone->data;
    *size = n;

    return NGX_OK;
}


/* the zone of all directives of this KEY and RATE that name none */

static ngx_int_t
ngx_http_urlstore_quota_own(ngx_conf_t *cf, uint64_t rate, ngx_str_t *zone)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    zone->data = ngx_pnalloc(cf->pool, sizeof("urlstore_quota  ")
                                       + value[1].len + NGX_INT64_LEN);
    if (zone->data == NULL) {
        return NGX_ERROR;
    }

    zone->len = ngx_sprintf(zone->data, "urlstore_quota %V %uL", &value[1],
                            rate)
                - zone->data;

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

    if (zone->key.value.len != value[1].len
        || ngx_strncmp(zone->key.value.data, value[1].data, value[1].len)
           != 0)
    {
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


static ngx_int_t
ngx_http_urlstore_quota_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_quota_zone_t *old = data;

    ngx_http_urlstore_quota_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (old) {
        if (zone->key.value.len != old->key.value.len
            || ngx_strncmp(zone->key.value.data, old->key.value.data,
                           zone->key.value.len)
               != 0)
        {
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

    if (shm_zone->shm.exists) {
        zone->sh = zone->shpool->data;
        return NGX_OK;
    }

    return ngx_http_urlstore_quota_create(shm_zone);
}


static ngx_int_t
ngx_http_urlstore_quota_create(ngx_shm_zone_t *shm_zone)
{
    size_t                           len, size;
    ngx_slab_pool_t                 *shpool;
    ngx_http_urlstore_quota_sh_t    *sh;
    ngx_http_urlstore_quota_zone_t  *zone;

    zone = shm_zone->data;
    shpool = zone->shpool;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_quota_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    len = sizeof(" in urlstore_quota zone \"\"") + shm_zone->shm.name.len;

    shpool->log_ctx = ngx_slab_alloc(shpool, len);
    if (shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(shpool->log_ctx, " in urlstore_quota zone \"%V\"%Z",
                &shm_zone->shm.name);

    /* two pages are left to the slab allocator */

    size = (shpool->pfree - 2) * ngx_pagesize;

    sh->rows = size / sizeof(ngx_http_urlstore_bucket_t)
               / NGX_HTTP_URLSTORE_ROW;

    sh->buckets = ngx_slab_calloc(shpool, size);
    if (sh->buckets == NULL) {
        return NGX_ERROR;
    }

    if (getrandom(sh->key, sizeof(sh->key), 0) != sizeof(sh->key)) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, ngx_errno,
                      "getrandom() failed");
        return NGX_ERROR;
    }

    zone->sh = sh;
    shpool->data = sh;

    return NGX_OK;
}


/* NGX_DECLINED: the request may add; else the reply has been sent */

ngx_int_t
ngx_http_urlstore_quota_test(ngx_http_request_t *r)
{
    uint64_t                         level, tag;
    ngx_int_t                        rc;
    ngx_http_urlstore_quota_t       *quota;
    ngx_http_urlstore_bucket_t      *bucket;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_quota_zone_t  *zone;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    quota = ulcf->quota;

    if (quota == NULL) {
        return NGX_DECLINED;
    }

    zone = quota->shm_zone->data;

    rc = ngx_http_urlstore_quota_client(r, zone, &tag);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_shmtx_lock(&zone->shpool->mutex);

    bucket = ngx_http_urlstore_quota_find_locked(zone, tag, 0);
    level = bucket ? bucket->level : 0;

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (level <= quota->burst) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_quota_refuse(r, quota, level);
}


/* 429, with the time after which the bucket holds no more than burst */

static ngx_int_t
ngx_http_urlstore_quota_refuse(ngx_http_request_t *r,
    ngx_http_urlstore_quota_t *quota, uint64_t level)
{
    uint64_t                         seconds;
    ngx_str_t                        value;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_quota_zone_t  *zone;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    zone = quota->shm_zone->data;

    ngx_http_urlstore_count(ulcf->zone, NGX_HTTP_URLSTORE_N_QUOTA, 1);

    seconds = (level - quota->burst - 1) / (zone->rate * 1000) + 1;

    value.data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%uL", seconds) - value.data;

    if (ngx_http_urlstore_header(r, "Retry-After", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                     "over the quota of new URLs: the "
                                     "client's bucket holds %uL, drains at "
                                     "%V and admits requests at %uL or "
                                     "less; retry in %uL seconds",
                                     (level + NGX_HTTP_URLSTORE_UNITS - 1)
                                     / NGX_HTTP_URLSTORE_UNITS,
                                     &zone->rate_text,
                                     quota->burst / NGX_HTTP_URLSTORE_UNITS,
                                     seconds);
}


/* charges n URLs that were new */

void
ngx_http_urlstore_quota_charge(ngx_http_request_t *r, ngx_uint_t n)
{
    uint64_t                         tag;
    ngx_http_urlstore_quota_t       *quota;
    ngx_http_urlstore_bucket_t      *bucket;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_quota_zone_t  *zone;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    quota = ulcf->quota;

    if (quota == NULL || n == 0) {
        return;
    }

    zone = quota->shm_zone->data;

    if (ngx_http_urlstore_quota_client(r, zone, &tag) != NGX_OK) {
        return;
    }

    /* 2 ^ 64 units are 5,000 times the greatest burst */

    n = ngx_min(n, NGX_HTTP_URLSTORE_QUOTA_MAX);

    ngx_shmtx_lock(&zone->shpool->mutex);

    bucket = ngx_http_urlstore_quota_find_locked(zone, tag, 1);

    if (bucket->level < (uint64_t) 1 << 63) {
        bucket->level += (uint64_t) n * NGX_HTTP_URLSTORE_UNITS;
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


/* NGX_DECLINED: an empty key has no quota, as in limit_req */

static ngx_int_t
ngx_http_urlstore_quota_client(ngx_http_request_t *r,
    ngx_http_urlstore_quota_zone_t *zone, uint64_t *tag)
{
    ngx_str_t  key;

    if (ngx_http_complex_value(r, &zone->key, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    if (key.len == 0) {
        return NGX_DECLINED;
    }

    *tag = us_hash(zone->sh->key, 0, key.data, key.len) | 1;

    return NGX_OK;
}


/* the client's bucket, drained to now; NULL: it has none, and create is 0 */

static ngx_http_urlstore_bucket_t *
ngx_http_urlstore_quota_find_locked(ngx_http_urlstore_quota_zone_t *zone,
    uint64_t tag, ngx_uint_t create)
{
    ngx_uint_t                   i;
    ngx_http_urlstore_bucket_t  *row, *bucket, *lowest;

    row = &zone->sh->buckets[(tag >> 1) % zone->sh->rows
                             * NGX_HTTP_URLSTORE_ROW];
    lowest = row;

    for (i = 0; i < NGX_HTTP_URLSTORE_ROW; i++) {
        bucket = &row[i];

        ngx_http_urlstore_quota_drain_locked(zone, bucket);

        if (bucket->tag == tag) {
            return bucket;
        }

        if (bucket->level < lowest->level) {
            lowest = bucket;
        }
    }

    if (!create) {
        return NULL;
    }

    lowest->level = 0;
    lowest->tag = tag;

    return lowest;
}


static void
ngx_http_urlstore_quota_drain_locked(ngx_http_urlstore_quota_zone_t *zone,
    ngx_http_urlstore_bucket_t *bucket)
{
    uint64_t  now, elapsed;

    /* the cached time of another worker may be later than ours */

    now = ngx_current_msec;

    if (now <= bucket->drained) {
        return;
    }

    elapsed = now - bucket->drained;
    bucket->drained = now;

    if (elapsed > bucket->level / zone->rate) {
        bucket->level = 0;

    } else {
        bucket->level -= elapsed * zone->rate;
    }
}
