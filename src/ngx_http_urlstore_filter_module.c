
/*
 * Filter zones: /add and /seen without ids, in one to two bytes a URL.  A
 * stated share of new URLs is answered as seen.
 *
 *     urlstore_filter NAME SIZE capacity=N error=RATE
 *                     [path=DIR [unclean=refuse|accept]] [profile=P] [www=W];
 *
 *     without path       with path
 *     nginx zone: SIZE   nginx zone: small      DIR/filter: SIZE
 *     +---------------+  +----------+           +---------------+
 *     | sh, tally     |  | sh, tally|           | us_filter     |
 *     | us_filter     |  +----------+           +---------------+
 *     +---------------+                         mapped by the master; its
 *                                               workers inherit the mapping
 *
 * A filter zone is a zone of this kind, without zone->store.  It has a name, a
 * normalizer, rules and counters as every zone.
 *
 * The master opens a file with the first configuration that names it and keeps
 * it to its own end, even if a reload leaves it out.  At its end, when it has
 * no worker any more, it writes the file out and marks it clean, unless
 * another master uses the file.  In a binary upgrade (USR2) the new master
 * maps the same file, so that each side sees what the other adds, and the
 * master that ends last marks it.
 */


#include "http/ngx_http_urlstore_batch.h"
#include "filter/us_filter.h"


/* bytes of shared memory for a zone whose filter is a file */
#define NGX_HTTP_URLSTORE_FILTER_ZONE  (192 * 1024)


/* zone->own */

typedef struct {
    us_filter_t                    *set;
    us_filter_plan_t                plan;
    uint64_t                        capacity;
    double                          error;
    unsigned                        accept;   /* unclean=accept */
    ngx_str_t                       path;     /* the next three: of the zone */
    us_profile_t                    profile;
    us_www_t                        www;
    ngx_uint_t                      warned;   /* of one worker */
} ngx_http_urlstore_filter_t;


/* a file that the master has open */

typedef struct ngx_http_urlstore_file_s  ngx_http_urlstore_file_t;

struct ngx_http_urlstore_file_s {
    ngx_http_urlstore_file_t       *next;
    u_char                         *path;
    us_filter_file_t                file;
};


static char *ngx_http_urlstore_filter(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

static void ngx_http_urlstore_filter_exit(ngx_cycle_t *cycle);


static ngx_command_t  ngx_http_urlstore_filter_commands[] = {

    { ngx_string("urlstore_filter"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_urlstore_filter,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_urlstore_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_urlstore_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_urlstore_filter_module_ctx,  /* module context */
    ngx_http_urlstore_filter_commands,     /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    ngx_http_urlstore_filter_exit,         /* exit master */
    NGX_MODULE_V1_PADDING
};


/* the master's files; workers inherit the list and do not use it */

static ngx_http_urlstore_file_t  *ngx_http_urlstore_files;


static ngx_int_t
ngx_http_urlstore_filter_create(ngx_http_urlstore_zone_t *zone)
{
    u_char                       key[16];
    ngx_time_t                  *tp;
    ngx_http_urlstore_sh_t      *sh;
    ngx_http_urlstore_filter_t  *f;

    f = zone->own;

    sh = zone->sh;

    if (zone->path.len) {
        return NGX_OK;
    }

    /* each start begins with an empty filter, hence with a new epoch */

    tp = ngx_timeofday();
    zone->conf.epoch = (uint64_t) tp->sec * 1000 + tp->msec;

    sh->size = f->plan.size;
    sh->mem = ngx_slab_alloc(zone->shpool, sh->size);

    if (sh->mem == NULL) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "no memory for urlstore_filter \"%V\"", &zone->name);
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_random(zone->shm_zone->shm.log, key, 16) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* fresh pages of a mapping: they are zero, and take memory when touched */

    (void) us_filter_format(sh->mem, &f->plan, key, zone->conf.norm);

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_filter_refuse(ngx_http_urlstore_zone_t *zone, int rc,
    const us_disk_error_t *e)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_filter \"%V\" path=%V: %s%s", &zone->name,
                  &zone->path, e->text,
                  rc == US_FILTER_UNCLEAN ? " (unclean=accept)" : "");

    return NGX_ERROR;
}


/* opens the file; at a reload it is open already, and its mapping stays */

static ngx_int_t
ngx_http_urlstore_filter_file(ngx_http_urlstore_zone_t *zone)
{
    int                          rc;
    ngx_log_t                   *log;
    us_disk_error_t              e;
    us_filter_info_t             info;
    ngx_http_urlstore_file_t    *file;
    ngx_http_urlstore_filter_t  *f;

    f = zone->own;
    log = zone->shm_zone->shm.log;

    /* "nginx -t" changes nothing and refuses what a start would refuse */

    if (ngx_test_config) {
        rc = us_filter_file_check((char *) zone->path.data, &f->plan,
                                  zone->conf.norm, f->accept, &e);

        return rc == 0 ? NGX_OK
               : ngx_http_urlstore_filter_refuse(zone, rc, &e);
    }

    for (file = ngx_http_urlstore_files; file; file = file->next) {
        if (ngx_strcmp(file->path, zone->path.data) == 0) {

            if (us_filter_file_match(&file->file, &f->plan, zone->conf.norm,
                                     &e)
                != 0)
            {
                return ngx_http_urlstore_filter_refuse(zone, -1, &e);
            }

            f->set = file->file.filter;
            return NGX_OK;
        }
    }

    /* outlives the cycle: malloc(), not its pool */

    file = ngx_calloc(sizeof(ngx_http_urlstore_file_t) + zone->path.len + 1,
                      log);
    if (file == NULL) {
        return NGX_ERROR;
    }

    file->path = (u_char *) &file[1];
    ngx_memcpy(file->path, zone->path.data, zone->path.len);

    rc = us_filter_file_open(&file->file, (char *) file->path, &f->plan,
                             zone->conf.norm, f->accept, &e);

    if (rc != 0) {
        ngx_free(file);
        return ngx_http_urlstore_filter_refuse(zone, rc, &e);
    }

    us_filter_info(file->file.filter, &info);

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "urlstore_filter \"%V\" path=%V: %s with %uL URLs of %uL",
                  &zone->name, &zone->path,
                  file->file.created ? "created" : "opened", info.urls,
                  info.capacity);

    if (file->file.doubtful) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "urlstore_filter \"%V\": bits may be missing since a "
                      "power failure: some URLs that were seen will be new",
                      &zone->name);
    }

    file->next = ngx_http_urlstore_files;
    ngx_http_urlstore_files = file;

    f->set = file->file.filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_filter_attach(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_filter_t  *f, *had;

    f = zone->own;

    if (old) {
        if (ngx_http_urlstore_zone_same(zone, old) != NGX_OK) {
            return NGX_ERROR;
        }

        had = old->own;

        if (f->capacity != had->capacity || f->error != had->error
            || f->plan.size != had->plan.size)
        {
            ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                          "urlstore_filter \"%V\": its size, \"capacity\" "
                          "and \"error\" cannot change while nginx runs; stop "
                          "nginx and start it again", &zone->name);
            return NGX_ERROR;
        }

        zone->conf.epoch = old->conf.epoch;
    }

    if (zone->path.len) {
        return ngx_http_urlstore_filter_file(zone);
    }

    f->set = zone->sh ? zone->sh->mem : NULL;

    return NGX_OK;
}


/* at the master's end, when no worker is left that could set a bit */

static void
ngx_http_urlstore_filter_exit(ngx_cycle_t *cycle)
{
    ngx_http_urlstore_file_t  *file;

    while (ngx_http_urlstore_files) {
        file = ngx_http_urlstore_files;
        ngx_http_urlstore_files = file->next;

        if (us_filter_file_close(&file->file) != 0) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "writing \"%s/filter\" failed: it is not marked "
                          "clean", file->path);
        }

        ngx_free(file);
    }
}


/* functions of the kind: see ngx_http_urlstore_kind_t */

static ngx_int_t
ngx_http_urlstore_filter_claims(ngx_http_urlstore_ctx_t *ctx, const char *what,
    uint64_t *least, uint64_t *most)
{
    return ngx_http_urlstore_bad(ctx, "\"%s\" is not allowed: a filter keeps "
                                 "no claims", what);
}


static ngx_int_t
ngx_http_urlstore_filter_batch(ngx_http_urlstore_batch_t *batch)
{
    if (batch->answers.set) {
        return ngx_http_urlstore_bad(batch->ctx, "\"set\" is not allowed: a "
                                     "filter has no ids");
    }

    return batch->answers.sites
           ? ngx_http_urlstore_bad(batch->ctx, "\"sites\" is not allowed: a "
                                   "filter keeps no sites")
           : NGX_DECLINED;
}


/* each worker logs once at nine tenths of the capacity, and once when full */

static void
ngx_http_urlstore_filter_warn(ngx_http_urlstore_zone_t *zone)
{
    ngx_uint_t                   level;
    us_filter_info_t             info;
    ngx_http_urlstore_filter_t  *f;

    f = zone->own;
    level = us_filter_full(f->set) ? 2 : us_filter_nearly_full(f->set);

    if (level <= f->warned) {
        return;
    }

    f->warned = level;
    us_filter_info(f->set, &info);

    if (level == 2) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "urlstore_filter \"%V\" is full: %uL URLs, expected "
                      "error %.6f", &zone->name, info.urls, info.expected);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "urlstore_filter \"%V\" is nearly full: %uL of %uL URLs, "
                  "expected error %.6f", &zone->name, info.urls,
                  info.capacity, info.expected);
}


/* answers a group as the store does, without ids and sites */

static ngx_int_t
ngx_http_urlstore_filter_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    u_char                       answers[US_STORE_GROUP];
    uint64_t                     hashes[US_STORE_GROUP];
    ngx_uint_t                   i, add;
    us_filter_t                 *set;
    us_store_item_t             *item;
    ngx_http_urlstore_filter_t  *f;

    f = batch->ctx->zone->own;
    set = f->set;

    if (g->done == g->urls) {
        return NGX_OK;
    }

    for (i = 0; i < g->urls; i++) {
        item = &g->items[i];
        us_store_item_split(item);

        hashes[i] = us_filter_hash(set, item->spelling & US_SPELLING_HTTPS,
                                   item->rest);
    }

    add = (batch->action == NGX_HTTP_URLSTORE_ADD);

    if (add && !us_filter_full(set)) {
        us_filter_add_many(set, hashes, g->urls, answers);

        for (i = 0; i < g->urls; i++) {
            g->items[i].status = answers[i] ? US_NEW : US_SEEN;
        }

        ngx_http_urlstore_filter_warn(batch->ctx->zone);

    } else {
        us_filter_seen_many(set, hashes, g->urls, answers);

        for (i = 0; i < g->urls; i++) {
            g->items[i].status = answers[i] ? US_SEEN
                                            : add ? US_FULL : US_UNSEEN;
        }
    }

    g->done = g->urls;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_filter_look(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_zone_t *zone, us_store_item_t *item)
{
    u_char                       answer;
    uint64_t                     h;
    us_filter_t                 *set;
    ngx_http_urlstore_filter_t  *f;

    f = zone->own;
    set = f->set;

    us_store_item_split(item);

    h = us_filter_hash(set, item->spelling & US_SPELLING_HTTPS, item->rest);
    us_filter_seen_many(set, &h, 1, &answer);

    item->status = answer ? US_SEEN : US_UNSEEN;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_urlstore_filter_full(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_filter_t  *f;

    f = zone->own;

    return us_filter_full(f->set);
}


static void
ngx_http_urlstore_filter_figures(ngx_http_urlstore_zone_t *zone,
    us_figures_t *f)
{
    ngx_http_urlstore_filter_t  *own;

    own = zone->own;

    f->kind = US_FIGURES_FILTER;
    us_figures_filter(f, own->set);
}


/* "50000000", "50m": decimal millions */

static ngx_int_t
ngx_http_urlstore_filter_capacity(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_filter_t *f = conf;

    off_t       n;
    ngx_str_t   digits;
    ngx_uint_t  unit;

    digits = *value;
    unit = 1;

    if (digits.len > 1) {
        switch (digits.data[digits.len - 1]) {
        case 'k': case 'K':
            unit = 1000;
            digits.len--;
            break;
        case 'm': case 'M':
            unit = 1000000;
            digits.len--;
            break;
        }
    }

    n = ngx_atoof(digits.data, digits.len);

    if (n < 1 || n > ((off_t) 1 << 40) / (off_t) unit) {
        return NGX_ERROR;
    }

    f->capacity = (uint64_t) n * unit;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_filter_error(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    ngx_http_urlstore_filter_t *f = conf;

    char    *end;
    double   error;

    /* strtod() has more than decimals: "inf", "0x1p-3" */

    if (strspn((char *) value->data, "0123456789.eE-") != value->len) {
        return NGX_ERROR;
    }

    /* a word of the configuration ends with a zero */

    error = strtod((char *) value->data, &end);

    if (*end != '\0' || end == (char *) value->data
        || !(error >= US_FILTER_ERROR_MIN && error <= US_FILTER_ERROR_MAX))
    {
        return NGX_ERROR;
    }

    f->error = error;

    return NGX_OK;
}


#define AT(field)  offsetof(ngx_http_urlstore_filter_t, field)

static ngx_http_urlstore_option_t  ngx_http_urlstore_filter_options[] = {

    { ngx_string("capacity"), ngx_http_urlstore_filter_capacity,
      0, 0, 0, NULL, NULL, "a number of URLs such as 500000, 500k or 50m" },

    { ngx_string("error"), ngx_http_urlstore_filter_error,
      0, 0, 0, NULL, NULL, "a share of 0.000001 to 0.5" },

    { ngx_string("path"), ngx_http_urlstore_opt_path,
      AT(path), 0, 0, NULL, NULL, "a directory" },

    { ngx_string("unclean"), ngx_http_urlstore_opt_word,
      AT(accept), 0, 0, "refuse accept", "path", NULL },

    { ngx_string("profile"), ngx_http_urlstore_opt_word,
      AT(profile), 0, 0, NGX_HTTP_URLSTORE_PROFILES, NULL, NULL },

    { ngx_string("www"), ngx_http_urlstore_opt_word,
      AT(www), 0, 0, NGX_HTTP_URLSTORE_WWW, NULL, NULL },

    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


static const ngx_http_urlstore_kind_t  ngx_http_urlstore_filter_kind = {

    .name = "filter",

    .handlers = {
        [NGX_HTTP_URLSTORE_E_ADD] = ngx_http_urlstore_add_handler,
        [NGX_HTTP_URLSTORE_E_SEEN] = ngx_http_urlstore_seen_handler,
        [NGX_HTTP_URLSTORE_E_NORMALIZE] = ngx_http_urlstore_normalize_handler,
        [NGX_HTTP_URLSTORE_E_HEALTH] = ngx_http_urlstore_health_handler,
        [NGX_HTTP_URLSTORE_E_STATS] = ngx_http_urlstore_stats_handler,
        [NGX_HTTP_URLSTORE_E_METRICS] = ngx_http_urlstore_metrics_handler,
        [NGX_HTTP_URLSTORE_E_PAGE] = ngx_http_urlstore_page_handler,
        [NGX_HTTP_URLSTORE_E_OPENAPI] = ngx_http_urlstore_openapi_handler
    },

    .lacks = "a filter has no /%V: it keeps neither ids nor URLs",
    .status = NGX_HTTP_NOT_FOUND,
    .create = ngx_http_urlstore_filter_create,
    .attach = ngx_http_urlstore_filter_attach,
    .normalize = us_normalize,
    .claims = ngx_http_urlstore_filter_claims,
    .batch = ngx_http_urlstore_filter_batch,
    .group = ngx_http_urlstore_filter_group,
    .end = ngx_http_urlstore_batch_end,
    .look = ngx_http_urlstore_filter_look,
    .full = ngx_http_urlstore_filter_full,
    .figures = ngx_http_urlstore_filter_figures
};


static char *
ngx_http_urlstore_filter(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                       size, spare;
    ngx_http_urlstore_zone_t    *zone;
    ngx_http_urlstore_filter_t  *f;

    zone = ngx_http_urlstore_zone_declare(cf, &size);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    f = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_filter_t));
    if (f == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->kind = &ngx_http_urlstore_filter_kind;
    zone->own = f;

    if (ngx_http_urlstore_options_read(cf, f, 3,
                                       ngx_http_urlstore_filter_options)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    zone->path = f->path;
    zone->profile = f->profile;
    zone->www = f->www;

    if (f->capacity == 0 || f->error == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_filter \"%V\" needs \"capacity\" and "
                           "\"error\"", &zone->name);
        return NGX_CONF_ERROR;
    }

    /* nginx keeps 24 bytes for each page of a zone */

    spare = zone->path.len ? 0 : NGX_HTTP_URLSTORE_FILTER_ZONE + size / 128;

    if (us_filter_plan(f->capacity, f->error, size > spare ? size - spare : 1,
                       &f->plan)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_filter \"%V\" is too small: %uz bytes, "
                           "at least %uz are needed for capacity=%uL "
                           "error=%.6f", &zone->name, size,
                           ngx_align(f->plan.size + spare + f->plan.size / 64,
                                     ngx_pagesize),
                           f->capacity, f->error);
        return NGX_CONF_ERROR;
    }

    if (zone->path.len) {
        size = NGX_HTTP_URLSTORE_FILTER_ZONE;
    }

    return ngx_http_urlstore_zone_add(cf, zone, size);
}
