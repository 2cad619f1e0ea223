
/*
 * replicate=: a zone whose journal is a log that other nodes read as well
 * (life/us_replicate.h).
 *
 *     urlstore_zone NAME SIZE cluster=.. shard=.. node=..
 *         replicate=KIND:CONNECTION | replicate=KIND:@FILE [path=DIR]
 *         [replicas=0] [lease=TIME] [takeover=TIME] [stale=TIME] [base=DIR];
 *
 * A log of a kind is a module of its own, so that this one links no library
 * that a single node does not need.  It is found by its name.  Its spare_hook0
 * is the table of functions.
 */


#include "ngx_http_urlstore_persist.h"
#include "../life/us_replicate.h"
#include "../us_version.h"


#define NGX_HTTP_URLSTORE_CONNECTION  4096      /* bytes */


static const us_replog_ops_t *ngx_http_urlstore_replicate_ops(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *kind);
static ngx_int_t ngx_http_urlstore_replicate_file(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);


ngx_int_t
ngx_http_urlstore_opt_replicate(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value)
{
    u_char                       *p;
    char                          err[NGX_MAX_ERROR_STR];
    ngx_str_t                     kind, text;
    us_replicate_conf_t          *conf;
    ngx_http_urlstore_persist_t  *persist;

    persist = ngx_http_urlstore_persist_of(cf, zone);
    p = ngx_strlchr(value->data, value->data + value->len, ':');

    if (persist == NULL) {
        return NGX_ABORT;
    }

    kind.data = value->data;
    kind.len = p ? p - value->data : 0;

    /* what it is instead may be a password */

    if (!us_conf_is_name(ngx_http_urlstore_str(&kind), NGX_MAX_ERROR_STR)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value of parameter \"replicate\" of "
                           "urlstore_zone \"%V\": postgres:CONNECTION or "
                           "postgres:@FILE is expected", &zone->name);
        return NGX_ABORT;
    }

    text.data = p + 1;
    text.len = value->data + value->len - text.data;

    conf = &persist->replicate;
    conf->ops = ngx_http_urlstore_replicate_ops(cf, zone, &kind);

    if (conf->ops == NULL
        || (text.len && text.data[0] == '@'
            && ngx_http_urlstore_replicate_file(cf, zone, &text) != NGX_OK))
    {
        return NGX_ABORT;
    }

    if (conf->ops->check((char *) text.data, err, sizeof(err)) == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\", \"replicate\": %s",
                           &zone->name, err);
        return NGX_ABORT;
    }

    conf->conninfo = (char *) text.data;
    persist->life.conf.replicate = conf;

    return NGX_OK;
}


/* NULL: it has been logged why */

static const us_replog_ops_t *
ngx_http_urlstore_replicate_ops(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *kind)
{
    size_t                  len;
    u_char                  name[128];
    ngx_uint_t              i;
    ngx_module_t          **modules;
    const us_replog_ops_t  *ops;

    modules = cf->cycle->modules;

    len = ngx_slprintf(name, name + sizeof(name),
                       "ngx_http_urlstore_%V_module", kind)
          - name;

    for (i = 0; modules[i]; i++) {

        if (ngx_strlen(modules[i]->name) != len
            || ngx_memcmp(modules[i]->name, name, len) != 0)
        {
            continue;
        }

        ops = (const us_replog_ops_t *) modules[i]->spare_hook0;

        if (ops && ngx_strcmp(ops->version, US_VERSION) == 0) {
            return ops;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": \"%*s\" is of version %s, "
                           "this module of " US_VERSION, &zone->name, len,
                           name, ops ? ops->version : "?");
        return NULL;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "urlstore_zone \"%V\": \"replicate=%V:\" needs "
                       "\"load_module modules/%*s.so;\"",
                       &zone->name, kind, len, name);
    return NULL;
}


/* the text of @FILE, without the newline at its end */

static ngx_int_t
ngx_http_urlstore_replicate_file(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value)
{
    u_char     *text;
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_str_t   name;

    name.data = value->data + 1;
    name.len = value->len - 1;

    text = ngx_pnalloc(cf->pool, NGX_HTTP_URLSTORE_CONNECTION + 1);

    if (text == NULL
        || ngx_conf_full_name(cf->cycle, &name, 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    fd = ngx_open_file(name.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "urlstore_zone \"%V\": " ngx_open_file_n
                           " \"%V\" failed", &zone->name, &name);
        return NGX_ERROR;
    }

    n = ngx_read_fd(fd, text, NGX_HTTP_URLSTORE_CONNECTION + 1);

    (void) ngx_close_file(fd);

    if (n < 0 || n > NGX_HTTP_URLSTORE_CONNECTION) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, n < 0 ? ngx_errno : 0,
                           "urlstore_zone \"%V\": \"%V\" cannot be read, or "
                           "has more than %d bytes", &zone->name, &name,
                           NGX_HTTP_URLSTORE_CONNECTION);
        return NGX_ERROR;
    }

    while (n && (text[n - 1] == LF || text[n - 1] == CR)) {
        n--;
    }

    text[n] = '\0';
    value->data = text;
    value->len = n;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_replicas(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t                    some;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL
        || ngx_http_urlstore_opt_either(value, "0", "1", &some) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p->replicate.single = !some;
    p->replicated = "replicas";

    return NGX_OK;
}


/* a time in the configuration, at this offset; off: it may be "off", 0 */

static ngx_int_t
ngx_http_urlstore_replicate_time(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value, const char *name, size_t offset, ngx_uint_t off)
{
    uint64_t                     *ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    ms = (uint64_t *) ((u_char *) &p->replicate + offset);
    p->replicated = name;

    if (off && ngx_strcmp(value->data, "off") == 0) {
        *ms = 0;
        return NGX_OK;
    }

    return ngx_http_urlstore_opt_time(value, ms) == NGX_OK
           && *ms >= 2 * US_APPENDER_BEAT
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_urlstore_opt_lease(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    return ngx_http_urlstore_replicate_time(cf, zone, value, "lease",
               offsetof(us_replicate_conf_t, lease), 0);
}


ngx_int_t
ngx_http_urlstore_opt_takeover(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    return ngx_http_urlstore_replicate_time(cf, zone, value, "takeover",
               offsetof(us_replicate_conf_t, takeover), 1);
}


ngx_int_t
ngx_http_urlstore_opt_stale(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    return ngx_http_urlstore_replicate_time(cf, zone, value, "stale",
               offsetof(us_replicate_conf_t, stale), 1);
}


/* a directory that the workers open, when there is no log */

ngx_int_t
ngx_http_urlstore_opt_base(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_str_t                     path;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);
    path = *value;

    if (p == NULL || path.len == 0
        || ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p->replicate.base = (char *) path.data;
    p->replicated = "base";

    return NGX_OK;
}


/* after all options, before those of a shard: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_replicate_conf(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone)
{
    const char                   *lacks, *excludes;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->life.conf.replicate == NULL) {

        if (p == NULL || p->replicated == NULL) {
            return NGX_OK;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": its \"%s\" needs a "
                           "\"replicate\"", &zone->name, p->replicated);
        return NGX_ERROR;
    }

    excludes = p->life.conf.follow ? "follow"
               : zone->conf.lookup ? "mode=lookup" : NULL;

    lacks = zone->cluster == NULL ? "cluster"
            : !zone->conf.is_shard ? "shard"
            : zone->node.len == 0 ? "node" : NULL;

    if (excludes || lacks) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": a zone with \"replicate\" "
                           "%s \"%s\"", &zone->name,
                           excludes ? "has no" : "needs a",
                           excludes ? excludes : lacks);
        return NGX_ERROR;
    }

    p->replicate.node = (char *) zone->node.data;
    p->replicate.shard = zone->conf.shard;

    /* a reply waits for the log, always */

    ngx_str_set(&p->sync_name, "always");
    p->life.conf.sync_name = (char *) p->sync_name.data;
    p->life.conf.sync = US_SYNC_ALWAYS;

    return NGX_OK;
}
