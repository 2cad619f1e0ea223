
/*
 * The directives that make zones, and their options.
 *
 *     urlstore_zone    NAME SIZE [OPTION=VALUE ...];
 *     urlstore_filter  NAME SIZE [OPTION=VALUE ...];
 *
 * An option of these, and of other directives, is a row of a table: its name,
 * the function that reads values of its type, the place of the value, its
 * bounds, the option without which it has no meaning, and what is allowed, for
 * the message.  An option that is no plain value has a function of its own.
 * What else the options need of one another is in
 * ngx_http_urlstore_zone_check().
 *
 * Another size at a reload is refused here, because nginx would silently create
 * an empty zone.
 *
 * The primary of follow= is resolved when the configuration is read, as of
 * proxy_pass.  The log of replicate= is a module of its own, so that this one
 * links no library that a single node does not need.  It is found by its name.
 * Its spare_hook0 is the table of functions.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../api/us_time.h"
#include "../life/us_replicate.h"
#include "../us_version.h"


/* the longest name of a zone: /metrics and /stats have room for it in a line */
#define NGX_HTTP_URLSTORE_NAME  255

/* bytes of the file that replicate=KIND:@FILE names */
#define NGX_HTTP_URLSTORE_CONNECTION  4096

/* presets of snapshot=, bytes, and of sync=, scrub=, lease= and stale=, ms */
#define NGX_HTTP_URLSTORE_SNAPSHOT    (12 * 1024 * 1024)
#define NGX_HTTP_URLSTORE_SYNC        1000
#define NGX_HTTP_URLSTORE_SCRUB       (3600 * 1000)
#define NGX_HTTP_URLSTORE_LEASE       2000
#define NGX_HTTP_URLSTORE_STALE       NGX_HTTP_URLSTORE_DAY

/* preset of sets= */
#define NGX_HTTP_URLSTORE_SETS        64

/* preset of erase_within=, ms */
#define NGX_HTTP_URLSTORE_ERASE       (3600 * 1000)

/* ms */
#define NGX_HTTP_URLSTORE_DAY         ((uint64_t) 24 * 60 * 60 * 1000)
#define NGX_HTTP_URLSTORE_MONTH       (30 * NGX_HTTP_URLSTORE_DAY)


/*
 * Types of options.  NGX_ERROR: the value is not allowed.  NGX_ABORT: it has
 * been logged why, and the value may be a secret.
 */

/* one of opt->words */

ngx_int_t
ngx_http_urlstore_opt_word(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    int  n;

    n = us_word_number(opt->words, ngx_http_urlstore_str(value));

    *(unsigned *) ((u_char *) conf + opt->offset) = n;

    return n != -1 ? NGX_OK : NGX_ERROR;
}


/* a path, relative to nginx's prefix */

ngx_int_t
ngx_http_urlstore_opt_path(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_str_t  *path;

    path = (ngx_str_t *) ((u_char *) conf + opt->offset);
    *path = *value;

    return value->len ? ngx_conf_full_name(cf->cycle, path, 0) : NGX_ERROR;
}


/* a text of so many bytes */

ngx_int_t
ngx_http_urlstore_opt_text(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    *(ngx_str_t *) ((u_char *) conf + opt->offset) = *value;

    return value->len >= opt->least && value->len <= opt->most ? NGX_OK
                                                               : NGX_ERROR;
}


/* within what is allowed; NGX_ERROR is not, and a word is 0: "off" */

static ngx_int_t
ngx_http_urlstore_opt_put(void *conf, const ngx_http_urlstore_option_t *opt,
    ngx_str_t *value, off_t n)
{
    if (opt->words && ngx_strcmp(value->data, opt->words) == 0) {
        n = 0;

    } else if (n == NGX_ERROR || (uint64_t) n < opt->least
               || (uint64_t) n > opt->most)
    {
        return NGX_ERROR;
    }

    *(uint64_t *) ((u_char *) conf + opt->offset) = n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_number(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    return ngx_http_urlstore_opt_put(conf, opt, value,
                                     ngx_atoi(value->data, value->len));
}


/* ms */

ngx_int_t
ngx_http_urlstore_opt_time(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    return ngx_http_urlstore_opt_put(conf, opt, value,
                                     ngx_parse_time(value, 0));
}


static ngx_int_t
ngx_http_urlstore_opt_size(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    return ngx_http_urlstore_opt_put(conf, opt, value, ngx_parse_offset(value));
}


/* options that are no plain value */

/* A,B,...: words of letters, digits, - and _ */

static ngx_int_t
ngx_http_urlstore_opt_marks(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    return us_conf_marks(&zone->conf, ngx_http_urlstore_str(value)) == 0
           ? NGX_OK : NGX_ERROR;
}


/* the unit of claims: a duration as in requests */

static ngx_int_t
ngx_http_urlstore_opt_revisit(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    uint64_t  s;

    if (us_time_duration(ngx_http_urlstore_str(value), &s) == -1
        || s < opt->least || s > opt->most)
    {
        return NGX_ERROR;
    }

    zone->conf.revisit = (uint32_t) s;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_sync(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    us_life_conf_t  *life;

    life = &zone->life.conf;

    /* /stats has room for so much */

    if (value->len > 15) {
        return NGX_ERROR;
    }

    life->sync_name = (char *) value->data;

    if (ngx_strcmp(value->data, "always") == 0) {
        life->sync = US_SYNC_ALWAYS;
        return NGX_OK;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        life->sync = US_SYNC_OFF;
        return NGX_OK;
    }

    return ngx_http_urlstore_opt_time(cf, zone, opt, value);
}


static ngx_int_t
ngx_http_urlstore_opt_cluster(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    zone->cluster = ngx_http_urlstore_cluster_find(cf, value);

    return zone->cluster ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_opt_follow(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    u_char                  *path, *host;
    ngx_url_t                u;
    socklen_t               *lens;
    ngx_uint_t               i;
    us_primary_t            *primary;
    const struct sockaddr  **addrs;

    if (value->len <= 7
        || ngx_strncasecmp(value->data, (u_char *) "http://", 7) != 0)
    {
        return NGX_ERROR;
    }

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url.data = value->data + 7;
    u.url.len = value->len - 7;
    u.default_port = 80;
    u.uri_part = 1;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%s in \"follow=%V\" of urlstore_zone \"%V\"",
                           u.err ? u.err : "an error", value, &zone->name);
        return NGX_ERROR;
    }

    if (u.naddrs == 0 || u.host.len == 0
        || (u.uri.len
            && u.uri.len != strcspn((char *) u.uri.data, " ?#")))
    {
        return NGX_ERROR;
    }

    primary = ngx_pcalloc(cf->pool, sizeof(us_primary_t));
    path = ngx_pnalloc(cf->pool, u.uri.len + 1);
    host = ngx_pnalloc(cf->pool, u.host.len + sizeof("[]:65535"));
    addrs = ngx_pcalloc(cf->pool, u.naddrs * sizeof(struct sockaddr *));
    lens = ngx_pcalloc(cf->pool, u.naddrs * sizeof(socklen_t));

    if (primary == NULL || path == NULL || host == NULL || addrs == NULL
        || lens == NULL)
    {
        return NGX_ERROR;
    }

    /* without slashes at the end */

    (void) ngx_cpystrn(path, u.uri.data, u.uri.len + 1);

    while (u.uri.len && path[u.uri.len - 1] == '/') {
        path[--u.uri.len] = '\0';
    }

    /* the brackets of an IPv6 address are a part of u.host */

    if (u.no_port) {
        (void) ngx_sprintf(host, "%V%Z", &u.host);

    } else {
        (void) ngx_sprintf(host, "%V:%ui%Z", &u.host, (ngx_uint_t) u.port);
    }

    for (i = 0; i < u.naddrs; i++) {
        addrs[i] = u.addrs[i].sockaddr;
        lens[i] = u.addrs[i].socklen;
    }

    primary->name = (char *) value->data;
    primary->path = (char *) path;
    primary->host = (char *) host;
    primary->addrs = addrs;
    primary->lens = lens;
    primary->naddrs = u.naddrs;

    zone->life.conf.follow = primary;

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


static ngx_int_t
ngx_http_urlstore_opt_replicate(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_zone_t *zone = conf;

    char                  err[NGX_MAX_ERROR_STR];
    u_char               *p;
    ngx_str_t             kind, text;
    us_replicate_conf_t  *repl;

    p = ngx_strlchr(value->data, value->data + value->len, ':');

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

    repl = &zone->replicate;
    repl->ops = ngx_http_urlstore_replicate_ops(cf, zone, &kind);

    if (repl->ops == NULL
        || (text.len && text.data[0] == '@'
            && ngx_http_urlstore_replicate_file(cf, zone, &text) != NGX_OK))
    {
        return NGX_ABORT;
    }

    if (repl->ops->check((char *) text.data, err, sizeof(err)) == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\", \"replicate\": %s",
                           &zone->name, err);
        return NGX_ABORT;
    }

    repl->conninfo = (char *) text.data;
    zone->life.conf.replicate = repl;

    return NGX_OK;
}


#define AT(field)  offsetof(ngx_http_urlstore_zone_t, field)

static ngx_http_urlstore_option_t  ngx_http_urlstore_options[] = {

    { ngx_string("profile"), ngx_http_urlstore_opt_word,
      AT(profile), 0, 0, NGX_HTTP_URLSTORE_PROFILES, NULL, NULL },

    { ngx_string("www"), ngx_http_urlstore_opt_word,
      AT(www), 0, 0, NGX_HTTP_URLSTORE_WWW, NULL, NULL },

    { ngx_string("schemes"), ngx_http_urlstore_opt_word,
      AT(conf.schemes_first), 0, 0, "keep first", NULL, NULL },

    { ngx_string("marks"), ngx_http_urlstore_opt_marks,
      AT(conf), 0, 0, NULL, NULL,
      "at most 16 different names of at most 32 letters, digits, - and _, "
      "with commas between them," },

    { ngx_string("sets"), ngx_http_urlstore_opt_number,
      AT(sets), 0, US_STORE_SETS, NULL, NULL, "a number up to 65535" },

    { ngx_string("sets_create"), ngx_http_urlstore_opt_word,
      AT(sets_auto), 0, 0, "put auto", NULL, NULL },

    { ngx_string("sites"), ngx_http_urlstore_opt_word,
      AT(conf.sites), 0, 0, "off on", NULL, "on or off" },

    { ngx_string("revisit"), ngx_http_urlstore_opt_revisit,
      AT(conf), US_STORE_REVISIT_MIN, US_STORE_REVISIT_MAX, NULL, NULL,
      "a time from 1m to 1d, such as 1h," },

    { ngx_string("erase_within"), ngx_http_urlstore_opt_time,
      AT(life.conf.erase_within), 1000, NGX_HTTP_URLSTORE_MONTH, NULL, NULL,
      "a time from 1s to 30d" },

    { ngx_string("huge"), ngx_http_urlstore_opt_word,
      AT(huge), 0, 0, "off on", NULL, "on or off" },

    { ngx_string("path"), ngx_http_urlstore_opt_path,
      AT(path), 0, 0, NULL, NULL, "a directory" },

    { ngx_string("sync"), ngx_http_urlstore_opt_sync,
      AT(life.conf.interval), 1, NGX_HTTP_URLSTORE_DAY, NULL, "path",
      "always, off or a time up to 1d such as 1s" },

    { ngx_string("follow"), ngx_http_urlstore_opt_follow,
      AT(life.conf.follow), 0, 0, NULL, NULL, "http://HOST[:PORT][/PREFIX]" },

    { ngx_string("replicate"), ngx_http_urlstore_opt_replicate,
      AT(replicate), 0, 0, NULL, NULL,
      "postgres:CONNECTION or postgres:@FILE" },

    { ngx_string("replicas"), ngx_http_urlstore_opt_word,
      AT(replicate.single), 0, 0, "1 0", "replicate",
      "1, or 0 for a log on one server alone," },

    { ngx_string("lease"), ngx_http_urlstore_opt_time,
      AT(replicate.lease), 2 * US_APPENDER_BEAT, NGX_HTTP_URLSTORE_DAY, NULL,
      "replicate", "a time from 1s to 1d" },

    { ngx_string("takeover"), ngx_http_urlstore_opt_time,
      AT(replicate.takeover), 2 * US_APPENDER_BEAT, NGX_HTTP_URLSTORE_DAY,
      "off", "replicate", "off or a time from 1s to 1d" },

    { ngx_string("stale"), ngx_http_urlstore_opt_time,
      AT(replicate.stale), 2 * US_APPENDER_BEAT, 365 * NGX_HTTP_URLSTORE_DAY,
      "off", "replicate", "off or a time from 1s to 365d" },

    /* opened by a worker, when there is no log */

    { ngx_string("base"), ngx_http_urlstore_opt_path,
      AT(base), 0, 0, NULL, "replicate", "a directory" },

    { ngx_string("mode"), ngx_http_urlstore_opt_word,
      AT(conf.lookup), 0, 0, "store lookup", NULL, NULL },

    /* the least growth of the journal between two of them */

    { ngx_string("snapshot"), ngx_http_urlstore_opt_size,
      AT(life.conf.snapshot), 1, NGX_MAX_OFF_T_VALUE, "off",
      "path", "off or a size such as 64m" },

    /* the time between two of them */

    { ngx_string("scrub"), ngx_http_urlstore_opt_time,
      AT(life.conf.scrub), 1, 365 * NGX_HTTP_URLSTORE_DAY,
      "off", "path", "off or a time up to 365d such as 1h" },

    { ngx_string("cluster"), ngx_http_urlstore_opt_cluster,
      AT(cluster), 0, 0, NULL, NULL,
      "the name of an urlstore_cluster above" },

    { ngx_string("shard"), ngx_http_urlstore_opt_number,
      AT(shard), 0, US_SHARDS - 1, NULL, NULL, "a number up to 4095" },

    { ngx_string("node"), ngx_http_urlstore_opt_text,
      AT(node), 1, US_MAP_NODE_LEN, NULL, NULL,
      "a name of at most 63 bytes" },

    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


/* what the options need of one another: NGX_ERROR has been logged */

static ngx_int_t
ngx_http_urlstore_zone_check(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    const char      *lacks, *excludes;
    us_life_conf_t  *life;

    zone->conf.sets = (zone->sets != 0);
    zone->conf.erases = 1;

    life = &zone->life.conf;
    life->path = (char *) zone->path.data;
    life->memory = !life->path && !life->follow && !life->replicate;

    if (zone->shard != NGX_CONF_UNSET) {
        zone->conf.is_shard = 1;
        zone->conf.shard = (uint32_t) zone->shard;
        zone->first_id = us_cluster_id(zone->conf.shard, 0);
    }

    excludes = zone->conf.nmarks ? "marks"
               : zone->conf.revisit ? "revisit"
               : zone->conf.lookup ? "mode=lookup" : NULL;

    if (life->follow && excludes) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": a zone with \"follow\" has "
                           "no \"%s\": it has what its primary has",
                           &zone->name, excludes);
        return NGX_ERROR;
    }

    lacks = zone->cluster == NULL ? "cluster"
            : !zone->conf.is_shard ? "shard"
            : zone->node.len == 0 ? "node" : NULL;

    if (life->replicate) {
        excludes = life->follow ? "follow"
                   : zone->conf.lookup ? "mode=lookup" : NULL;

        if (excludes || lacks) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "urlstore_zone \"%V\": a zone with "
                               "\"replicate\" %s \"%s\"", &zone->name,
                               excludes ? "has no" : "needs a",
                               excludes ? excludes : lacks);
            return NGX_ERROR;
        }

        zone->replicate.node = (char *) zone->node.data;
        zone->replicate.shard = zone->conf.shard;
        zone->replicate.base = (char *) zone->base.data;

        /* a reply waits for the log, always */

        life->sync_name = "always";
        life->sync = US_SYNC_ALWAYS;
    }

    if (lacks == NULL && life->memory) {
        lacks = "path";
    }

    if (lacks && (zone->cluster || zone->conf.is_shard || zone->node.len)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": a shard needs \"cluster\", "
                           "\"shard\", \"node\" and \"path\"; it has no "
                           "\"%s\"", &zone->name, lacks);
        return NGX_ERROR;
    }

    if (life->memory) {

        if (zone->conf.lookup) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "urlstore_zone \"%V\": mode=lookup needs a "
                               "\"path\"", &zone->name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (ngx_http_urlstore_zone_threads(cf, zone) != NGX_OK) {
        return NGX_ERROR;
    }

    /* nothing is changed before it is loaded, and nothing ever in a replica */

    zone->conf.fenced = 1;

    /* a replica, and a zone for look-ups, have no journal of their own */

    if (!zone->conf.lookup && !life->follow) {
        zone->conf.ring = us_store_ring(size);
    }

    return NGX_OK;
}


/* urlstore_zone NAME SIZE [OPTION=VALUE ...]; */

char *
ngx_http_urlstore_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                     size, least;
    ngx_http_urlstore_zone_t  *zone;

    zone = ngx_http_urlstore_zone_declare(cf, &size);

    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    /* how much it is to have is known at the end of http { } */

    zone->conf.keys = NGX_MAX_SIZE_T_VALUE;
    zone->sets = NGX_HTTP_URLSTORE_SETS;

    if (ngx_http_urlstore_options_read(cf, zone, 3, ngx_http_urlstore_options)
        != NGX_OK
        || ngx_http_urlstore_zone_check(cf, zone, size) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    least = us_store_min_size(&zone->conf)
            + (NGX_HTTP_URLSTORE_SPARE + 8) * ngx_pagesize;

    if (size < least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\" is too small: %uz bytes, "
                           "at least %uz are needed", &zone->name, size,
                           least);
        return NGX_CONF_ERROR;
    }

    return ngx_http_urlstore_zone_add(cf, zone, size);
}


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


ngx_int_t
ngx_http_urlstore_options_read(ngx_conf_t *cf, void *conf, ngx_uint_t from,
    ngx_http_urlstore_option_t *options)
{
    u_char                      *p, *secret, words[256];
    us_str_t                     rest, word;
    ngx_int_t                    rc;
    ngx_str_t                   *value, *arg, v;
    ngx_uint_t                   i, bit, seen;
    ngx_http_urlstore_option_t  *opt, *other;

    value = cf->args->elts;
    seen = 0;

    for (i = from; i < cf->args->nelts; i++) {

        arg = &value[i];
        p = words;

        for (opt = options; opt->name.len; opt++) {

            if (arg->len > opt->name.len && arg->data[opt->name.len] == '='
                && ngx_strncmp(arg->data, opt->name.data, opt->name.len) == 0)
            {
                break;
            }

            p = ngx_slprintf(p, words + sizeof(words), "%s%V",
                             p == words ? "" : ", ", &opt->name);
        }

        if (opt->name.len == 0) {
            v = *arg;
            secret = ngx_strlchr(arg->data, arg->data + arg->len, '=');

            /* of a connection string that has no quotes around it */

            if (secret
                && ngx_strlcasestrn(arg->data, secret, (u_char *) "pass",
                                    4 - 1))
            {
                v.len = secret + 1 - arg->data;
            }

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V%s\" of %V \"%V\": "
                               "allowed are %*s", &v,
                               v.len < arg->len ? "..." : "", &value[0],
                               &value[1], (size_t) (p - words), words);
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

        v.data = arg->data + opt->name.len + 1;
        v.len = arg->len - opt->name.len - 1;

        rc = opt->set(cf, conf, opt, &v);

        if (rc == NGX_OK) {
            continue;
        }

        if (rc == NGX_ABORT) {
            return NGX_ERROR;
        }

        /* "first, keep or strip" */

        p = ngx_slprintf(words, words + sizeof(words), "%s",
                         opt->allowed ? opt->allowed : "");
        rest = us_str_of(opt->allowed ? "" : opt->words);

        while (rest.len) {
            (void) us_str_cut(&rest, ' ', &word);

            p = ngx_slprintf(p, words + sizeof(words), "%s%*s",
                             p == words ? "" : rest.len ? ", " : " or ",
                             word.len, word.data);
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" of parameter \"%V\" of %V "
                           "\"%V\": %*s is expected", &v, &opt->name,
                           &value[0], &value[1], (size_t) (p - words), words);
        return NGX_ERROR;
    }

    for (opt = options; opt->name.len; opt++) {

        if (opt->needs == NULL || (seen >> (opt - options) & 1) == 0) {
            continue;
        }

        other = options;

        while (ngx_strcmp(other->name.data, opt->needs) != 0) {
            other++;
        }

        if ((seen >> (other - options) & 1) == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%V \"%V\": its \"%V\" needs a \"%s\"",
                               &value[0], &value[1], &opt->name, opt->needs);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* runs when the configuration's pool goes: the mapping may be gone already */

static void
ngx_http_urlstore_zone_cleanup(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    us_norm_destroy(zone->norm);
    zone->norm = NULL;
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
        if (ngx_http_urlstore_same(&zp[i]->name, name)) {
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
    zone->cycle = cf->cycle;
    zone->shard = NGX_CONF_UNSET;
    zone->pace.left = US_SHIP_GRACE;
    zone->replicate.lease = NGX_HTTP_URLSTORE_LEASE;
    zone->life.conf.erase_within = NGX_HTTP_URLSTORE_ERASE;
    zone->replicate.stale = NGX_HTTP_URLSTORE_STALE;

    /* for a filter and a router, this is all */

    zone->life.conf.memory = 1;
    zone->life.conf.sync_name = "1s";
    zone->life.conf.interval = NGX_HTTP_URLSTORE_SYNC;
    zone->life.conf.snapshot = NGX_HTTP_URLSTORE_SNAPSHOT;
    zone->life.conf.scrub = NGX_HTTP_URLSTORE_SCRUB;

    zp = ngx_array_push(&umcf->zones);
    if (zp == NULL) {
        return NULL;
    }

    *zp = zone;

    return zone;
}


/* two zones would each wait for the other one to leave the directory */

static ngx_int_t
ngx_http_urlstore_path_free(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
    size_t                           len;
    ngx_str_t                       *path, *other;
    ngx_uint_t                       i;
    ngx_http_urlstore_zone_t       **zp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    zp = umcf->zones.elts;
    path = &zone->path;

    for (i = 0; i < umcf->zones.nelts; i++) {

        other = &zp[i]->path;

        if (zp[i] == zone) {
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


/* if only SIZE changed, nginx would create a new and empty zone at a reload */

static ngx_int_t
ngx_http_urlstore_zone_resized(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    ngx_str_t        *value, *name;
    ngx_uint_t        i;
    ngx_cycle_t      *old;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *shm_zone;

    value = cf->args->elts;
    name = &zone->name;
    old = cf->cycle->old_cycle;

    if (old == NULL || ngx_is_init_cycle(old)) {
        return NGX_OK;
    }

    for (part = &old->shared_memory.part; part; part = part->next) {
        shm_zone = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (shm_zone[i].tag != &ngx_http_urlstore_module
                || !ngx_http_urlstore_same(&shm_zone[i].shm.name, name)
                || shm_zone[i].shm.size == size)
            {
                continue;
            }

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%V \"%V\": its size cannot change from %uz to "
                               "%uz while nginx runs; restart nginx, which "
                               "loads the URLs again if the zone has a path",
                               &value[0], name, shm_zone[i].shm.size, size);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


char *
ngx_http_urlstore_zone_add(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    if (ngx_http_urlstore_path_free(cf, zone) != NGX_OK
        || ngx_http_urlstore_zone_resized(cf, zone, size) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* a router has one already, that of its map */

    if (zone->norm == NULL) {
        zone->norm = us_norm_create(zone->profile);

        if (zone->norm == NULL) {
            return NGX_CONF_ERROR;
        }

        us_norm_set_www(zone->norm, zone->www);
    }

    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size,
                                           &ngx_http_urlstore_module);
    if (zone->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->shm_zone->init = ngx_http_urlstore_zone_init;
    zone->shm_zone->data = zone;

    return NGX_CONF_OK;
}
