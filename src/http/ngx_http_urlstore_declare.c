
/*
 * What the directives of zones have in common.
 *
 *     urlstore_zone    NAME SIZE [OPTION=VALUE ...];
 *     urlstore_filter  NAME SIZE [OPTION=VALUE ...];
 *
 * Name, size and options are read here, and the zone gets its normalizer and
 * its shared memory.  Another size at a reload is refused here, because nginx
 * would silently create an empty zone.
 */


#include "ngx_http_urlstore_zone.h"

#include <sys/random.h>


/* the longest name of a zone: /metrics and /stats have room for it in a line */
#define NGX_HTTP_URLSTORE_NAME  255


static ngx_http_urlstore_option_t *ngx_http_urlstore_option(ngx_conf_t *cf,
    ngx_str_t *arg, ngx_http_urlstore_option_t *options);
static void ngx_http_urlstore_zone_cleanup(void *data);


/* NAME and SIZE, the first two arguments of a directive that makes a zone */

ngx_http_urlstore_zone_t *
ngx_http_urlstore_zone_declare(ngx_conf_t *cf, size_t *size)
{
    off_t                      n;
    ngx_str_t                 *value;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;

    /* the name becomes a label in /metrics and a string in /stats */

    if (!us_conf_is_name((us_str_t) { value[1].len, value[1].data },
                         NGX_HTTP_URLSTORE_NAME))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"%V\" of %V: at most %ui "
                           "letters, digits, - and _", &value[1], &value[0],
                           (ngx_uint_t) NGX_HTTP_URLSTORE_NAME);
        return NULL;
    }

    zone = ngx_http_urlstore_zone_find(cf, &value[1]);
    if (zone == NULL) {
        return NULL;
    }

    if (zone->shm_zone) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate %V \"%V\"", &value[0], &value[1]);
        return NULL;
    }

    n = ngx_parse_offset(&value[2]);             /* unlike _size, takes "g" */

    if (n == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of %V \"%V\": a size such "
                           "as 512m or 4g is expected",
                           &value[2], &value[0], &value[1]);
        return NULL;
    }

    *size = ngx_align((size_t) n, ngx_pagesize);

    return zone;
}


/* reads the arguments from the third on */

ngx_int_t
ngx_http_urlstore_zone_options(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_option_t *options)
{
    ngx_int_t                    rc;
    ngx_str_t                   *value, v;
    ngx_uint_t                   i, bit, seen, path;
    ngx_http_urlstore_option_t  *opt, *on_disk;

    value = cf->args->elts;
    seen = 0;
    path = 0;
    on_disk = NULL;

    for (i = 3; i < cf->args->nelts; i++) {

        opt = ngx_http_urlstore_option(cf, &value[i], options);

        if (opt == NULL) {
            return NGX_ERROR;
        }

        bit = (ngx_uint_t) 1 << (opt - options);

        if (seen & bit) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\" of %V \"%V\"",
                               &opt->name, &value[0], &value[1]);
            return NGX_ERROR;
        }

        seen |= bit;

        v.data = value[i].data + opt->name.len + 1;
        v.len = value[i].len - opt->name.len - 1;

        rc = opt->parse(cf, zone, &v);

        if (rc == NGX_ABORT) {
            return NGX_ERROR;
        }

        if (rc != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" of parameter \"%V\" "
                               "of %V \"%V\": %s is expected", &v, &opt->name,
                               &value[0], &value[1], opt->allowed);
            return NGX_ERROR;
        }

        if (ngx_strcmp(opt->name.data, "path") == 0) {
            path = 1;

        } else if (opt->on_disk) {
            on_disk = opt;
        }
    }

    if (on_disk && !path) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%V \"%V\": its \"%V\" needs a \"path\"",
                           &value[0], &value[1], &on_disk->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* the option of an argument NAME=VALUE; NULL: an error has been logged */

static ngx_http_urlstore_option_t *
ngx_http_urlstore_option(ngx_conf_t *cf, ngx_str_t *arg,
    ngx_http_urlstore_option_t *options)
{
    u_char                      *p, *secret, names[256];
    ngx_str_t                    shown, *value;
    ngx_http_urlstore_option_t  *opt;

    p = names;

    for (opt = options; opt->name.len; opt++) {

        if (arg->len > opt->name.len && arg->data[opt->name.len] == '='
            && ngx_strncmp(arg->data, opt->name.data, opt->name.len) == 0)
        {
            return opt;
        }

        p = ngx_slprintf(p, names + sizeof(names), "%s%V",
                         p == names ? "" : ", ", &opt->name);
    }

    value = cf->args->elts;
    shown = *arg;
    secret = ngx_strlchr(arg->data, arg->data + arg->len, '=');

    /* of a connection string that has no quotes around it */

    if (secret && ngx_strlcasestrn(arg->data, secret, (u_char *) "pass", 4 - 1))
    {
        shown.len = secret + 1 - arg->data;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V%s\" of %V \"%V\": allowed are "
                       "%*s", &shown, shown.len < arg->len ? "..." : "",
                       &value[0], &value[1], (size_t) (p - names), names);

    return NULL;
}


/* creates the zone's normalizer and declares its shared memory */

char *
ngx_http_urlstore_zone_add(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size, ngx_shm_zone_init_pt init)
{
    zone->norm = us_norm_create(zone->profile);
    if (zone->norm == NULL) {
        return NGX_CONF_ERROR;
    }

    us_norm_set_www(zone->norm, zone->www);

    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size,
                                           &ngx_http_urlstore_module);
    if (zone->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->shm_zone->init = init;
    zone->shm_zone->data = zone;

    return NGX_CONF_OK;
}


/* returns the zone of this name, which may be declared further down */

ngx_http_urlstore_zone_t *
ngx_http_urlstore_zone_find(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                       i;
    ngx_pool_cleanup_t              *cln;
    ngx_http_urlstore_zone_t        *zone, **zp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    zp = umcf->zones.elts;

    for (i = 0; i < umcf->zones.nelts; i++) {
        if (zp[i]->name.len == name->len
            && ngx_strncmp(zp[i]->name.data, name->data, name->len) == 0)
        {
            return zp[i];
        }
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_urlstore_zone_t));
    if (cln == NULL) {
        return NULL;
    }

    zone = cln->data;
    ngx_memzero(zone, sizeof(ngx_http_urlstore_zone_t));

    cln->handler = ngx_http_urlstore_zone_cleanup;

    zone->name = *name;
    zone->kind = umcf->store;
    zone->profile = US_PROFILE_CRAWLER;
    zone->www = US_WWW_FIRST;

    zp = ngx_array_push(&umcf->zones);
    if (zp == NULL) {
        return NULL;
    }

    *zp = zone;

    return zone;
}


/* runs when the configuration's pool goes: the mapping may be gone already */

static void
ngx_http_urlstore_zone_cleanup(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    if (zone->norm) {
        us_norm_destroy(zone->norm);
        zone->norm = NULL;
    }
}


/* if only SIZE changed, nginx would create a new and empty zone at a reload */

ngx_int_t
ngx_http_urlstore_zone_resized(ngx_conf_t *cf, ngx_str_t *name, size_t size)
{
    ngx_str_t        *value;
    ngx_uint_t        i;
    ngx_cycle_t      *old;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *shm_zone;

    value = cf->args->elts;
    old = cf->cycle->old_cycle;

    if (old == NULL || ngx_is_init_cycle(old)) {
        return NGX_OK;
    }

    part = &old->shared_memory.part;
    shm_zone = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            shm_zone = part->elts;
            i = 0;
        }

        if (shm_zone[i].tag != &ngx_http_urlstore_module
            || shm_zone[i].shm.name.len != name->len
            || ngx_strncmp(shm_zone[i].shm.name.data, name->data, name->len)
               != 0)
        {
            continue;
        }

        if (shm_zone[i].shm.size == size) {
            return NGX_OK;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%V \"%V\": its size cannot change from %uz to "
                           "%uz while nginx runs; restart nginx, which "
                           "loads the URLs again if the zone has a path",
                           &value[0], name, shm_zone[i].shm.size, size);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_profile(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    int       profile;
    us_str_t  name;

    name.data = value->data;
    name.len = value->len;

    profile = us_profile_parse(name);

    if (profile == -1) {
        return NGX_ERROR;
    }

    zone->profile = profile;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_www(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "first") == 0) {
        zone->www = US_WWW_FIRST;

    } else if (ngx_strcmp(value->data, "keep") == 0) {
        zone->www = US_WWW_KEEP;

    } else if (ngx_strcmp(value->data, "strip") == 0) {
        zone->www = US_WWW_STRIP;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* *on is 0 for the first of two words, 1 for the second */

ngx_int_t
ngx_http_urlstore_opt_either(ngx_str_t *value, const char *no,
    const char *yes, ngx_uint_t *on)
{
    *on = (ngx_strcmp(value->data, yes) == 0);

    return *on || ngx_strcmp(value->data, no) == 0 ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_urlstore_random(ngx_log_t *log, void *p, size_t len)
{
    if (getrandom(p, len, 0) == (ssize_t) len) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");

    return NGX_ERROR;
}


ngx_int_t
ngx_http_urlstore_pool_name(ngx_slab_pool_t *shpool, const char *kind,
    ngx_str_t *name)
{
    size_t  len;

    len = sizeof(" in  \"\"") + ngx_strlen(kind) + name->len;

    shpool->log_ctx = ngx_slab_alloc(shpool, len);
    if (shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(shpool->log_ctx, " in %s \"%V\"%Z", kind, name);

    return NGX_OK;
}
