
/*
 * urlstore_quota KEY RATE [burst=N] [zone=NAME:SIZE];
 *
 * How many *new* URLs a client may add: a leaky bucket for each value of KEY.
 *
 *     zone   | 8 slots | 8 slots | ...     row = hash of the key
 *     slot   tag     the hash; 0: free
 *            excess  what the client has added and the bucket has not yet
 *                    drained, in thousandths of a URL; RATE drains it
 *            last    when it was drained last, ms
 *
 * A request is refused with 429 if the bucket holds more than burst when it
 * begins; what was really new is charged when it ends, so one batch may
 * overdraw, and the client waits for longer then.  A full row forgets the
 * client that was idle for the longest time: it starts anew.
 *
 * There are no pointers: a worker killed under the lock leaves one client
 * with a wrong figure, and nothing else.  Tags are keyed (SipHash), so that
 * nobody can be made to share a slot.
 */


#include "ngx_http_urlstore.h"
#include "../store/us_hash.h"

#include <sys/random.h>


#define NGX_HTTP_URLSTORE_ROW   8


typedef struct {
    uint64_t                        tag;
    uint64_t                        excess;
    uint64_t                        last;
    uint64_t                        spare;
} ngx_http_urlstore_client_t;


typedef struct {
    uint8_t                         key[16];
    ngx_uint_t                      rows;
    ngx_http_urlstore_client_t     *clients;
} ngx_http_urlstore_quota_sh_t;


struct ngx_http_urlstore_quota_s {
    ngx_http_complex_value_t        key;
    ngx_shm_zone_t                 *shm_zone;
    uint64_t                        rate;     /* URLs * 1000 a second */
    uint64_t                        burst;    /* URLs * 1000 */
};


typedef struct {
    ngx_slab_pool_t                *shpool;
    ngx_http_urlstore_quota_sh_t   *sh;
} ngx_http_urlstore_quota_zone_t;


static ngx_shm_zone_t *ngx_http_urlstore_quota_zone(ngx_conf_t *cf,
    ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_quota_rate(ngx_str_t *value,
    uint64_t *rate);
static ngx_int_t ngx_http_urlstore_quota_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_urlstore_quota_tag_of(ngx_http_request_t *r,
    ngx_http_urlstore_quota_t *quota, uint64_t *tag);
static ngx_http_urlstore_client_t *ngx_http_urlstore_quota_find(
    ngx_http_urlstore_quota_t *quota, uint64_t tag, ngx_uint_t create);


/* its address is the tag of quota zones */
static ngx_uint_t  ngx_http_urlstore_quota_tag;


char *
ngx_http_urlstore_quota(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    ngx_int_t                          n;
    ngx_str_t                         *value, zone;
    ngx_uint_t                         i;
    ngx_http_urlstore_quota_t         *quota;
    ngx_http_compile_complex_value_t   ccv;

    if (ulcf->quota != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        ulcf->quota = NULL;
        return NGX_CONF_OK;
    }

    if (cf->args->nelts < 3) {
        return "needs KEY and RATE, or \"off\"";
    }

    quota = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_quota_t));
    if (quota == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &quota->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_quota_rate(&value[2], &quota->rate) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid rate \"%V\" of urlstore_quota, such as "
                           "100/s, 5000/m or 100000/h was expected",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&zone, "urlstore_quota:1m");

    for (i = 3; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "burst=", 6) == 0) {
            n = ngx_atoi(value[i].data + 6, value[i].len - 6);

            if (n == NGX_ERROR) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid burst \"%V\" of urlstore_quota",
                                   &value[i]);
                return NGX_CONF_ERROR;
            }

            quota->burst = (uint64_t) n * 1000;
            continue;
        }

        if (ngx_strncmp(value[i].data, "zone=", 5) == 0) {
            zone.data = value[i].data + 5;
            zone.len = value[i].len - 5;
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of urlstore_quota",
                           &value[i]);
        return NGX_CONF_ERROR;
    }

    quota->shm_zone = ngx_http_urlstore_quota_zone(cf, &zone);
    if (quota->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    ulcf->quota = quota;

    return NGX_CONF_OK;
}


/* N/s, N/m or N/h, also with an r before the slash */

static ngx_int_t
ngx_http_urlstore_quota_rate(ngx_str_t *value, uint64_t *rate)
{
    size_t     len;
    u_char    *unit;
    ngx_int_t  n, seconds;

    len = value->len;

    if (len < 3 || value->data[len - 2] != '/') {
        return NGX_ERROR;
    }

    unit = value->data + len - 1;
    seconds = (*unit == 's') ? 1 : (*unit == 'm') ? 60
                             : (*unit == 'h') ? 3600 : 0;
    len -= 2;

    if (len && value->data[len - 1] == 'r') {
        len--;
    }

    n = ngx_atoi(value->data, len);

    if (seconds == 0 || n == NGX_ERROR || n == 0 || n > 1000000000) {
        return NGX_ERROR;
    }

    *rate = ngx_max((uint64_t) n * 1000 / seconds, 1);

    return NGX_OK;
}


static ngx_shm_zone_t *
ngx_http_urlstore_quota_zone(ngx_conf_t *cf, ngx_str_t *value)
{
    u_char                          *p;
    ssize_t                          size;
    ngx_str_t                        name, s;
    ngx_shm_zone_t                  *shm_zone;
    ngx_http_urlstore_quota_zone_t  *zone;

    size = 0;
    name = *value;

    p = ngx_strlchr(value->data, value->data + value->len, ':');

    if (p) {
        name.len = p - value->data;
        s.data = p + 1;
        s.len = value->data + value->len - s.data;

        size = ngx_parse_size(&s);
    }

    if (name.len == 0 || size == NGX_ERROR
        || (p && size < (ssize_t) (8 * ngx_pagesize)))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone \"%V\" of urlstore_quota", value);
        return NULL;
    }

    shm_zone = ngx_shared_memory_add(cf, &name, size,
                                     &ngx_http_urlstore_quota_tag);
    if (shm_zone == NULL) {
        return NULL;
    }

    if (shm_zone->data == NULL) {
        zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_quota_zone_t));
        if (zone == NULL) {
            return NULL;
        }

        shm_zone->init = ngx_http_urlstore_quota_init;
        shm_zone->data = zone;
    }

    return shm_zone;
}


static ngx_int_t
ngx_http_urlstore_quota_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_quota_zone_t *old = data;

    size_t                           len, size;
    ngx_http_urlstore_quota_sh_t    *sh;
    ngx_http_urlstore_quota_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (old) {
        zone->sh = old->sh;
        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        zone->sh = zone->shpool->data;
        return NGX_OK;
    }

    sh = ngx_slab_calloc(zone->shpool, sizeof(ngx_http_urlstore_quota_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    len = sizeof(" in urlstore_quota zone \"\"") + shm_zone->shm.name.len;

    zone->shpool->log_ctx = ngx_slab_alloc(zone->shpool, len);
    if (zone->shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(zone->shpool->log_ctx, " in urlstore_quota zone \"%V\"%Z",
                &shm_zone->shm.name);

    size = (zone->shpool->pfree - 2) * ngx_pagesize;

    sh->rows = size / sizeof(ngx_http_urlstore_client_t)
               / NGX_HTTP_URLSTORE_ROW;

    sh->clients = ngx_slab_calloc(zone->shpool, size);
    if (sh->clients == NULL) {
        return NGX_ERROR;
    }

    if (getrandom(sh->key, 16, 0) != 16) {
        return NGX_ERROR;
    }

    zone->sh = sh;
    zone->shpool->data = sh;

    return NGX_OK;
}


/* NGX_DECLINED: it may add; else the reply has been sent */

ngx_int_t
ngx_http_urlstore_quota_test(ngx_http_request_t *r)
{
    uint64_t                         excess, tag;
    ngx_int_t                        rc;
    ngx_str_t                        value;
    ngx_http_urlstore_ctx_t         *ctx;
    ngx_http_urlstore_quota_t       *quota;
    ngx_http_urlstore_client_t      *client;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_quota_zone_t  *zone;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    quota = ulcf->quota;

    if (quota == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_quota_tag_of(r, quota, &tag);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    zone = quota->shm_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    client = ngx_http_urlstore_quota_find(quota, tag, 0);
    excess = client ? client->excess : 0;

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (excess <= quota->burst) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_count(ctx->zone, NGX_HTTP_URLSTORE_N_QUOTA, 1);

    excess = (excess - quota->burst + quota->rate - 1) / quota->rate;

    value.data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%uL", excess) - value.data;

    if (ngx_http_urlstore_header(r, "Retry-After", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                                     "the quota of new URLs is used up, for "
                                     "%V seconds", &value);
}


/* n URLs were new */

void
ngx_http_urlstore_quota_charge(ngx_http_request_t *r, ngx_uint_t n)
{
    uint64_t                         tag;
    ngx_http_urlstore_quota_t       *quota;
    ngx_http_urlstore_client_t      *client;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_quota_zone_t  *zone;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    quota = ulcf->quota;

    if (quota == NULL || n == 0
        || ngx_http_urlstore_quota_tag_of(r, quota, &tag) != NGX_OK)
    {
        return;
    }

    zone = quota->shm_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    client = ngx_http_urlstore_quota_find(quota, tag, 1);
    client->excess += (uint64_t) n * 1000;

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


/* NGX_DECLINED: an empty key has no quota, as in limit_req */

static ngx_int_t
ngx_http_urlstore_quota_tag_of(ngx_http_request_t *r,
    ngx_http_urlstore_quota_t *quota, uint64_t *tag)
{
    ngx_str_t                        key;
    ngx_http_urlstore_quota_zone_t  *zone;

    if (ngx_http_complex_value(r, &quota->key, &key) != NGX_OK) {
        return NGX_ERROR;
    }

    if (key.len == 0) {
        return NGX_DECLINED;
    }

    zone = quota->shm_zone->data;

    *tag = us_hash(zone->sh->key, 0, key.data, key.len) | 1;

    return NGX_OK;
}


/*
 * The client's slot, drained to now; NULL if it has none and create is 0.
 * Under the lock.
 */

static ngx_http_urlstore_client_t *
ngx_http_urlstore_quota_find(ngx_http_urlstore_quota_t *quota, uint64_t tag,
    ngx_uint_t create)
{
    uint64_t                         now, drained;
    ngx_uint_t                       i;
    ngx_http_urlstore_client_t      *row, *oldest, *client;
    ngx_http_urlstore_quota_zone_t  *zone;

    zone = quota->shm_zone->data;
    now = ngx_current_msec;

    row = &zone->sh->clients[(tag >> 1) % zone->sh->rows
                             * NGX_HTTP_URLSTORE_ROW];
    oldest = row;
    client = row;

    for (i = 0; i < NGX_HTTP_URLSTORE_ROW; i++) {
        client = &row[i];

        if (client->tag == tag) {
            break;
        }

        if (client->last < oldest->last) {
            oldest = client;
        }
    }

    if (i == NGX_HTTP_URLSTORE_ROW) {

        if (!create) {
            return NULL;
        }

        client = oldest;
        client->excess = 0;
        client->last = now;
        client->tag = tag;
    }

    /* another worker's clock may be ahead, and a fraction is kept for later */

    drained = now > client->last ? quota->rate * (now - client->last) / 1000
                                 : 0;

    if (drained) {
        client->excess -= ngx_min(drained, client->excess);
        client->last = now;
    }

    return client;
}
