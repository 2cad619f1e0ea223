
/*
 * The directive of a zone.
 *
 *     urlstore_zone  NAME SIZE [OPTION=VALUE ...];
 *
 * Name, size and options are read here, for urlstore_filter as well, and the
 * zone gets its normalizer and its shared memory.  At a reload, options that
 * the stored data depend on cannot change.  Another size is refused here,
 * because nginx would silently create an empty zone.  Other changes are refused
 * in ngx_http_urlstore_zone_same(), which can read the old zone.
 */


#include "ngx_http_urlstore.h"


/* the longest name of a zone: /metrics and /stats have room for it in a line */
#define NGX_HTTP_URLSTORE_NAME  255


static ngx_http_urlstore_option_t *ngx_http_urlstore_option(ngx_conf_t *cf,
    ngx_str_t *arg, ngx_http_urlstore_option_t *options);
static ngx_uint_t ngx_http_urlstore_word(u_char c);
static void ngx_http_urlstore_zone_cleanup(void *data);

static ngx_int_t ngx_http_urlstore_opt_schemes(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_marks(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_sites(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_huge(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);


static ngx_http_urlstore_option_t  ngx_http_urlstore_options[] = {

    { ngx_string("profile"), ngx_http_urlstore_opt_profile, 0,
      NGX_HTTP_URLSTORE_ALLOWED_PROFILE },

    { ngx_string("www"), ngx_http_urlstore_opt_www, 0,
      NGX_HTTP_URLSTORE_ALLOWED_WWW },

    { ngx_string("schemes"), ngx_http_urlstore_opt_schemes, 0,
      "keep or first" },

    { ngx_string("marks"), ngx_http_urlstore_opt_marks, 0,
      "at most 16 different names of at most 32 letters, digits, - and _, "
      "with commas between them," },

    { ngx_string("sites"), ngx_http_urlstore_opt_sites, 0,
      "on or off" },

    { ngx_string("huge"), ngx_http_urlstore_opt_huge, 0,
      "on or off" },

    { ngx_string("path"), ngx_http_urlstore_opt_path, 1,
      NGX_HTTP_URLSTORE_ALLOWED_PATH },

    { ngx_string("sync"), ngx_http_urlstore_opt_sync, 1,
      "always, off or a time such as 1s" },

    { ngx_string("mode"), ngx_http_urlstore_opt_mode, 0,
      "store or lookup" },

    { ngx_string("snapshot"), ngx_http_urlstore_opt_snapshot, 1,
      "off or a size such as 64m" },

    { ngx_string("scrub"), ngx_http_urlstore_opt_scrub, 1,
      "off or a time such as 1h" },

    { ngx_null_string, NULL, 0, NULL }
};


/* urlstore_zone NAME SIZE [OPTION=VALUE ...]; */

char *
ngx_http_urlstore_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                     size;
    ngx_str_t                 *value;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;

    zone = ngx_http_urlstore_zone_declare(cf, &size);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_zone_options(cf, zone, ngx_http_urlstore_options)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_persist_conf(cf, zone, size) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (size < us_store_min_size(&zone->conf)
               + (NGX_HTTP_URLSTORE_SPARE + 8) * ngx_pagesize)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\" is too small: %uz bytes, "
                           "at least %uz are needed", &value[1], size,
                           us_store_min_size(&zone->conf)
                           + (NGX_HTTP_URLSTORE_SPARE + 8) * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_zone_resized(cf, &value[1], size) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_urlstore_zone_add(cf, zone, size,
                                      ngx_http_urlstore_zone_init);
}


/* NAME and SIZE, the first two arguments of a directive that makes a zone */

ngx_http_urlstore_zone_t *
ngx_http_urlstore_zone_declare(ngx_conf_t *cf, size_t *size)
{
    off_t                      n;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;

    /* the name becomes a label in /metrics and a string in /stats */

    for (i = 0; i < value[1].len; i++) {
        if (!ngx_http_urlstore_word(value[1].data[i])) {
            break;
        }
    }

    if (i == 0 || i < value[1].len || i > NGX_HTTP_URLSTORE_NAME) {
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

        if (opt->parse(cf, zone, &v) != NGX_OK) {
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
    u_char                      *p, names[256];
    ngx_str_t                   *value;
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

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" of %V \"%V\": allowed are %*s",
                       arg, &value[0], &value[1], (size_t) (p - names), names);

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
                           "%uz while nginx runs, its URLs would be lost; "
                           "stop nginx and start it again",
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


static ngx_int_t
ngx_http_urlstore_opt_schemes(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  first;

    if (ngx_http_urlstore_opt_either(value, "keep", "first", &first)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->conf.schemes_first = first;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_urlstore_word(u_char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}


/* marks=A,B,...: words of letters, digits, - and _ */

static ngx_int_t
ngx_http_urlstore_opt_marks(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char      c, *p, *start, *last;
    us_str_t    name;
    ngx_uint_t  i;

    start = value->data;
    last = value->data + value->len;

    for (p = start; p <= last; p++) {

        c = p < last ? *p : ',';

        if (c != ',') {
            if (!ngx_http_urlstore_word(c)) {
                return NGX_ERROR;
            }

            continue;
        }

        name.data = start;
        name.len = p - start;

        if (name.len == 0 || name.len > US_STORE_MARK_LEN
            || zone->conf.nmarks == US_STORE_MARKS)
        {
            return NGX_ERROR;
        }

        for (i = 0; i < zone->conf.nmarks; i++) {
            if (zone->conf.marks[i].len == name.len
                && ngx_memcmp(zone->conf.marks[i].data, name.data, name.len)
                   == 0)
            {
                return NGX_ERROR;
            }
        }

        zone->conf.marks[zone->conf.nmarks++] = name;
        start = p + 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_sites(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  on;

    if (ngx_http_urlstore_opt_either(value, "off", "on", &on) != NGX_OK) {
        return NGX_ERROR;
    }

    zone->conf.sites = on;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_huge(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    return ngx_http_urlstore_opt_either(value, "off", "on", &zone->huge);
}


/* *on is 0 for the first of two words, 1 for the second */

ngx_int_t
ngx_http_urlstore_opt_either(ngx_str_t *value, const char *no,
    const char *yes, ngx_uint_t *on)
{
    *on = (ngx_strcmp(value->data, yes) == 0);

    return *on || ngx_strcmp(value->data, no) == 0 ? NGX_OK : NGX_ERROR;
}
