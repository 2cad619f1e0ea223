
/*
 * The front door: directives, configuration, and what happens when a process
 * starts and ends.  Where to find the rest is in http/ngx_http_urlstore.h.
 */


#include "http/ngx_http_urlstore_batch.h"
#include "http/ngx_http_urlstore_cluster.h"
#include "us_wipe.h"


static void *ngx_http_urlstore_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_urlstore_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_urlstore_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_urlstore_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_urlstore_postconfiguration(ngx_conf_t *cf);
static ngx_http_urlstore_zone_t **ngx_http_urlstore_zones(ngx_cycle_t *cycle,
    ngx_uint_t *n);
static ngx_int_t ngx_http_urlstore_init_process(ngx_cycle_t *cycle);
static void ngx_http_urlstore_exit_process(ngx_cycle_t *cycle);
static void ngx_http_urlstore_exit_master(ngx_cycle_t *cycle);
static char *ngx_http_urlstore_check_size(ngx_conf_t *cf, void *post,
    void *data);
static char *ngx_http_urlstore_check_hot(ngx_conf_t *cf, void *post,
    void *data);
static char *ngx_http_urlstore_api(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_conf_num_bounds_t  ngx_http_urlstore_url_bounds = {
    ngx_conf_check_num_bounds, 1, US_URL_MAX
};

static ngx_conf_num_bounds_t  ngx_http_urlstore_batch_bounds = {
    ngx_conf_check_num_bounds, 1, -1
};

static ngx_conf_post_t  ngx_http_urlstore_size_post = {
    ngx_http_urlstore_check_size
};

static ngx_conf_post_t  ngx_http_urlstore_hot_post = {
    ngx_http_urlstore_check_hot
};


/* endpoints whose path is not the name of their directive */

static ngx_str_t  ngx_http_urlstore_page_path = ngx_string("");
static ngx_str_t  ngx_http_urlstore_openapi_path = ngx_string("openapi.yaml");


#define ngx_http_urlstore_endpoint_command(name, path)                        \
    { ngx_string("urlstore_" name),                                           \
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,                                       \
      ngx_http_urlstore_api,                                                  \
      NGX_HTTP_LOC_CONF_OFFSET,                                               \
      0,                                                                      \
      path }


static ngx_command_t  ngx_http_urlstore_commands[] = {

    { ngx_string("urlstore_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_urlstore_zone,
      0,
      0,
      NULL },

    { ngx_string("urlstore_rewrite"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE3|NGX_CONF_TAKE4|NGX_CONF_TAKE5,
      ngx_http_urlstore_rule,
      0,
      0,
      NULL },

    { ngx_string("urlstore_reject"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_urlstore_rule,
      0,
      0,
      NULL },

    { ngx_string("urlstore_accept"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_urlstore_rule,
      0,
      0,
      NULL },

    { ngx_string("urlstore_strip_args"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_urlstore_rule_words,
      0,
      0,
      NULL },

    { ngx_string("urlstore_www_except"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_urlstore_rule_words,
      0,
      0,
      NULL },

    { ngx_string("urlstore_max_depth"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_urlstore_limit,
      0,
      0,
      NULL },

    { ngx_string("urlstore_max_args"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_urlstore_limit,
      0,
      0,
      NULL },

    { ngx_string("urlstore_max_repeat"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_urlstore_limit,
      0,
      0,
      NULL },

    { ngx_string("urlstore_hot"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_urlstore_main_conf_t, hot_size),
      &ngx_http_urlstore_hot_post },

    { ngx_string("urlstore_idempotency"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_urlstore_idempotency,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("urlstore_cluster"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_urlstore_cluster,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("urlstore_cluster_admin"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_urlstore_cluster_admin,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    ngx_http_urlstore_endpoint_command("api", NULL),
    ngx_http_urlstore_endpoint_command("add", NULL),
    ngx_http_urlstore_endpoint_command("seen", NULL),
    ngx_http_urlstore_endpoint_command("url", NULL),
    ngx_http_urlstore_endpoint_command("urls", NULL),
    ngx_http_urlstore_endpoint_command("prefix", NULL),
    ngx_http_urlstore_endpoint_command("log", NULL),
    ngx_http_urlstore_endpoint_command("site", NULL),
    ngx_http_urlstore_endpoint_command("set", NULL),
    ngx_http_urlstore_endpoint_command("mark", NULL),
    ngx_http_urlstore_endpoint_command("claim", NULL),
    ngx_http_urlstore_endpoint_command("erase", NULL),
    ngx_http_urlstore_endpoint_command("normalize", NULL),
    ngx_http_urlstore_endpoint_command("health", NULL),
    ngx_http_urlstore_endpoint_command("stats", NULL),
    ngx_http_urlstore_endpoint_command("metrics", NULL),
    ngx_http_urlstore_endpoint_command("page", &ngx_http_urlstore_page_path),
    ngx_http_urlstore_endpoint_command("openapi",
                                       &ngx_http_urlstore_openapi_path),

    { ngx_string("urlstore_quota"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_urlstore_quota,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("urlstore_allow_origin"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_urlstore_allow_origin,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("urlstore_max_url"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_urlstore_loc_conf_t, max_url),
      &ngx_http_urlstore_url_bounds },

    { ngx_string("urlstore_max_batch"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_urlstore_loc_conf_t, max_batch),
      &ngx_http_urlstore_batch_bounds },

    { ngx_string("urlstore_max_body"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_urlstore_loc_conf_t, max_body),
      &ngx_http_urlstore_size_post },

    { ngx_string("urlstore_max_reply"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_urlstore_loc_conf_t, max_reply),
      &ngx_http_urlstore_size_post },

    { ngx_string("urlstore_max_age"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_urlstore_loc_conf_t, max_age),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_urlstore_module_ctx = {
    ngx_http_urlstore_add_variables,       /* preconfiguration */
    ngx_http_urlstore_postconfiguration,   /* postconfiguration */

    ngx_http_urlstore_create_main_conf,    /* create main configuration */
    ngx_http_urlstore_init_main_conf,      /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_urlstore_create_loc_conf,     /* create location configuration */
    ngx_http_urlstore_merge_loc_conf       /* merge location configuration */
};


ngx_module_t  ngx_http_urlstore_module = {
    NGX_MODULE_V1,
    &ngx_http_urlstore_module_ctx,         /* module context */
    ngx_http_urlstore_commands,            /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_urlstore_init_process,        /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_urlstore_exit_process,        /* exit process */
    ngx_http_urlstore_exit_master,         /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_urlstore_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_urlstore_main_conf_t  *umcf;

    umcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_main_conf_t));
    if (umcf == NULL) {
        return NULL;
    }

    umcf->hot_size = NGX_CONF_UNSET_SIZE;
    umcf->keys_size = NGX_CONF_UNSET_SIZE;
    umcf->keys_keep = NGX_CONF_UNSET_MSEC;
    umcf->endpoints = ngx_http_urlstore_endpoints;
    umcf->store = &ngx_http_urlstore_store_kind;

    if (ngx_array_init(&umcf->zones, cf->pool, 2,
                       sizeof(ngx_http_urlstore_zone_t *))
        != NGX_OK
        || ngx_array_init(&umcf->clusters, cf->pool, 2,
                          sizeof(ngx_http_urlstore_cluster_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return umcf;
}


static char *
ngx_http_urlstore_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_urlstore_main_conf_t *umcf = conf;

    ngx_uint_t                  i;
    ngx_http_urlstore_zone_t  **zp;

    ngx_conf_init_size_value(umcf->hot_size, 16 * 1024 * 1024);
    ngx_conf_init_size_value(umcf->keys_size, 16 * 1024 * 1024);
    ngx_conf_init_msec_value(umcf->keys_keep, 300000);

    zp = umcf->zones.elts;

    for (i = 0; i < umcf->zones.nelts; i++) {

        if (zp[i]->shm_zone == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "no urlstore_zone \"%V\" is declared",
                               &zp[i]->name);
            return NGX_CONF_ERROR;
        }

        zp[i]->conf.keys = umcf->keys_size;

        /* times are in whole seconds: the first of them may end at once */

        zp[i]->keys_keep = umcf->keys_size ? umcf->keys_keep / 1000 + 1 : 0;
    }

    return NGX_CONF_OK;
}


static void *
ngx_http_urlstore_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_loc_conf_t));
    if (ulcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     ulcf->zone = NULL;
     *     ulcf->endpoint = NULL;
     */

    ulcf->quota = NGX_CONF_UNSET_PTR;
    ulcf->origins = NGX_CONF_UNSET_PTR;
    ulcf->max_url = NGX_CONF_UNSET_UINT;
    ulcf->max_body = NGX_CONF_UNSET_SIZE;
    ulcf->max_batch = NGX_CONF_UNSET_UINT;
    ulcf->max_reply = NGX_CONF_UNSET_SIZE;
    ulcf->max_age = NGX_CONF_UNSET;

    return ulcf;
}


/*
 * A location inherits limits, but no endpoint: the content handler, too, is
 * for its own location only.
 */

static char *
ngx_http_urlstore_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_urlstore_loc_conf_t *prev = parent;
    ngx_http_urlstore_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_ptr_value(conf->quota, prev->quota, NULL);
    ngx_conf_merge_ptr_value(conf->origins, prev->origins, NULL);
    ngx_conf_merge_uint_value(conf->max_url, prev->max_url, US_URL_MAX);
    ngx_conf_merge_size_value(conf->max_body, prev->max_body,
                              8 * 1024 * 1024);
    ngx_conf_merge_uint_value(conf->max_batch, prev->max_batch, 10000);
    ngx_conf_merge_size_value(conf->max_reply, prev->max_reply,
                              16 * 1024 * 1024);
    ngx_conf_merge_sec_value(conf->max_age, prev->max_age, 60);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (conf->handler && clcf->handler != conf->handler) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "location \"%V\" has another handler beside that "
                           "of urlstore", &conf->name);
        return NGX_CONF_ERROR;
    }

    /* an if { } block, or limit_except */

    if (conf->handler == NULL && prev->handler && clcf->noname
        && clcf->handler == NULL)
    {
        conf->zone = prev->zone;
        conf->admin = prev->admin;
        conf->endpoint = prev->endpoint;
        conf->name = prev->name;
        conf->regex = prev->regex;
        conf->handler = prev->handler;
        clcf->handler = prev->handler;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_urlstore_postconfiguration(ngx_conf_t *cf)
{
    return ngx_http_urlstore_origin_init(cf) == NGX_OK
           ? ngx_http_urlstore_problem_init(cf) : NGX_ERROR;
}


/* all n of them; there may be no http { } */

static ngx_http_urlstore_zone_t **
ngx_http_urlstore_zones(ngx_cycle_t *cycle, ngx_uint_t *n)
{
    ngx_http_urlstore_main_conf_t  *umcf;

    umcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_urlstore_module);

    *n = umcf ? umcf->zones.nelts : 0;

    return umcf ? umcf->zones.elts : NULL;
}


static ngx_int_t
ngx_http_urlstore_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                      i, n;
    ngx_http_urlstore_zone_t      **zp;
    ngx_http_urlstore_main_conf_t  *umcf;

    /* the cache manager runs this as well */

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    zp = ngx_http_urlstore_zones(cycle, &n);

    if (n) {
        umcf = ngx_http_cycle_get_module_main_conf(cycle,
                                                   ngx_http_urlstore_module);
        ngx_http_urlstore_hot_init(umcf->hot_size, cycle->log);
        us_wipe_init();
    }

    for (i = 0; i < n; i++) {
        if (ngx_http_urlstore_zone_open(zp[i], cycle->log) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_urlstore_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i, n;
    ngx_http_urlstore_zone_t  **zp;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    zp = ngx_http_urlstore_zones(cycle, &n);

    for (i = 0; i < n; i++) {
        ngx_http_urlstore_zone_close(zp[i]);
    }

    ngx_http_urlstore_hot_exit();
    ngx_http_urlstore_out_exit();
}


static void
ngx_http_urlstore_exit_master(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i, n;
    ngx_http_urlstore_zone_t  **zp;

    zp = ngx_http_urlstore_zones(cycle, &n);

    for (i = 0; i < n; i++) {
        ngx_http_urlstore_zone_exit(zp[i]);
    }
}


/* unlike client_max_body_size, 0 is not "no limit": it would refuse all */

static char *
ngx_http_urlstore_check_size(ngx_conf_t *cf, void *post, void *data)
{
    size_t *size = data;

    return *size ? NGX_CONF_OK : "must be at least 1";
}


static char *
ngx_http_urlstore_check_hot(ngx_conf_t *cf, void *post, void *data)
{
    size_t *size = data;

    return *size == 0 || *size >= US_HOT_MIN ? NGX_CONF_OK
                                             : "must be 0, or at least 64k";
}


/* urlstore_api NAME; and one directive for each endpoint: urlstore_add NAME; */

static char *
ngx_http_urlstore_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    ngx_str_t  *value, name;

    if (ulcf->handler) {
        return "is duplicate: a location has one endpoint, or urlstore_api";
    }

    value = cf->args->elts;

    ulcf->zone = ngx_http_urlstore_zone_find(cf, &value[1]);
    if (ulcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    name.data = cmd->name.data + sizeof("urlstore_") - 1;
    name.len = cmd->name.len - (sizeof("urlstore_") - 1);

    if (ngx_strcmp(name.data, "api") != 0) {
        ulcf->endpoint = ngx_http_urlstore_endpoint(cmd->post ? cmd->post
                                                              : &name);
    }

    return ngx_http_urlstore_location(cf, ulcf);
}
