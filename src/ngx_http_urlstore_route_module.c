
/*
 * Routers: their directive, the kind of zone, and what nginx -t refuses.  Their
 * requests are in src/route.
 *
 *     location / { urlstore_route crawl; }
 *
 * stands for the endpoints of the cluster.
 */


#include "route/ngx_http_urlstore_route.h"


/* bytes of shared memory of a router: counters */
#define NGX_HTTP_URLSTORE_ROUTE_ZONE   (448 * 1024)


static char *ngx_http_urlstore_route(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static void *ngx_http_urlstore_route_create_conf(ngx_conf_t *cf);
static char *ngx_http_urlstore_route_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_urlstore_route_begin(ngx_conf_t *cf);
static ngx_int_t ngx_http_urlstore_route_check(ngx_conf_t *cf);


/* functions of the kind: see ngx_http_urlstore_kind_t */

static ngx_int_t
ngx_http_urlstore_route_leads(ngx_http_urlstore_ctx_t *ctx)
{
    /* a node that leads to a router: a request could go round for ever */

    return ngx_http_urlstore_header_in(ctx->r, "urlstore-map")
           ? ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_MISDIRECTED,
                                       NULL, "this is a router and not a shard")
           : NGX_DECLINED;
}


/* the shards know; by the shortest unit that they can have, and the longest */

static ngx_int_t
ngx_http_urlstore_route_claims(ngx_http_urlstore_ctx_t *ctx, const char *what,
    uint64_t *least, uint64_t *most)
{
    *least = 60;
    *most = (uint64_t) US_STORE_OLDER_MAX * 24 * 60 * 60;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_urlstore_route_create(ngx_http_urlstore_zone_t *zone)
{
    zone->sh->calls = ngx_slab_calloc(zone->shpool, US_SHARDS
                                          * sizeof(ngx_http_urlstore_calls_t));

    return zone->sh->calls ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_route_cluster(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_cluster_show(ctx,
               ngx_http_urlstore_cluster_map(ctx->zone->own,
                                             ctx->r->connection->log));
}


static const ngx_http_urlstore_kind_t  ngx_http_urlstore_route_kind = {

    .name = "router",

    .handlers = {
        [NGX_HTTP_URLSTORE_E_ADD] = ngx_http_urlstore_add_handler,
        [NGX_HTTP_URLSTORE_E_SEEN] = ngx_http_urlstore_seen_handler,
        [NGX_HTTP_URLSTORE_E_URL] = ngx_http_urlstore_route_url,
        [NGX_HTTP_URLSTORE_E_URLS] = ngx_http_urlstore_route_urls,
        [NGX_HTTP_URLSTORE_E_PREFIX] = ngx_http_urlstore_route_prefix,
        [NGX_HTTP_URLSTORE_E_SITE] = ngx_http_urlstore_route_site,
        [NGX_HTTP_URLSTORE_E_SET] = ngx_http_urlstore_route_set,
        [NGX_HTTP_URLSTORE_E_MARK] = ngx_http_urlstore_set_batch,
        [NGX_HTTP_URLSTORE_E_CLAIM] = ngx_http_urlstore_claim_handler,
        [NGX_HTTP_URLSTORE_E_ERASE] = ngx_http_urlstore_route_erase,
        [NGX_HTTP_URLSTORE_E_CLUSTER] = ngx_http_urlstore_route_cluster,
        [NGX_HTTP_URLSTORE_E_NORMALIZE] = ngx_http_urlstore_normalize_handler,
        [NGX_HTTP_URLSTORE_E_HEALTH] = ngx_http_urlstore_survey,
        [NGX_HTTP_URLSTORE_E_STATS] = ngx_http_urlstore_survey,
        [NGX_HTTP_URLSTORE_E_METRICS] = ngx_http_urlstore_survey,
        [NGX_HTTP_URLSTORE_E_PAGE] = ngx_http_urlstore_page_handler,
        [NGX_HTTP_URLSTORE_E_OPENAPI] = ngx_http_urlstore_openapi_handler
    },

    .lacks = "a router has no /%V, which belongs to a shard: that is to be "
             "asked",
    .status = NGX_HTTP_NOT_IMPLEMENTED,
    .begin = ngx_http_urlstore_route_leads,
    .create = ngx_http_urlstore_route_create,
    .normalize = us_normalize_text,            /* it spells no URL */
    .claims = ngx_http_urlstore_route_claims,
    .batch = ngx_http_urlstore_scatter_begin,
    .group = ngx_http_urlstore_scatter_group,
    .end = ngx_http_urlstore_scatter
};


static ngx_command_t  ngx_http_urlstore_route_commands[] = {

    { ngx_string("urlstore_route"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_urlstore_route,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_urlstore_route_module_ctx = {
    ngx_http_urlstore_route_begin,         /* preconfiguration */
    ngx_http_urlstore_route_check,         /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_urlstore_route_create_conf,   /* create location configuration */
    ngx_http_urlstore_route_merge_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_urlstore_route_module = {
    NGX_MODULE_V1,
    &ngx_http_urlstore_route_module_ctx,   /* module context */
    ngx_http_urlstore_route_commands,      /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* the zone of a cluster that is routed here; NULL: an error has been logged */

static ngx_http_urlstore_zone_t *
ngx_http_urlstore_route_zone(ngx_conf_t *cf,
    ngx_http_urlstore_cluster_t *cluster)
{
    ngx_http_urlstore_zone_t  *zone;

    if (cluster->zone) {
        return cluster->zone;
    }

    zone = ngx_http_urlstore_zone_find(cf, &cluster->name);
    if (zone == NULL) {
        return NULL;
    }

    if (zone->shm_zone) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the cluster \"%V\", which is routed here, needs "
                           "another name than a zone", &cluster->name);
        return NULL;
    }

    zone->kind = &ngx_http_urlstore_route_kind;
    zone->own = cluster;

    /* a signature that is not known is found by the check */

    if (cluster->map) {
        zone->norm = us_norm_of(cluster->map->norm);
    }

    if (ngx_http_urlstore_zone_add(cf, zone, NGX_HTTP_URLSTORE_ROUTE_ZONE)
        != NGX_CONF_OK)
    {
        return NULL;
    }

    cluster->zone = zone;

    return zone;
}


static ngx_http_urlstore_option_t  ngx_http_urlstore_route_options[] = {
    { ngx_string("endpoint"), ngx_http_urlstore_opt_text,
      offsetof(ngx_http_urlstore_route_loc_conf_t, endpoint), 1,
      NGX_MAX_SIZE_T_VALUE, NULL, NULL, "the name of an endpoint" },
    { ngx_string("connect"), ngx_http_urlstore_opt_time,
      offsetof(ngx_http_urlstore_route_loc_conf_t, upstream.connect_timeout),
      1, NGX_MAX_OFF_T_VALUE, NULL, NULL, "a time such as 1s" },
    { ngx_string("timeout"), ngx_http_urlstore_opt_time,
      offsetof(ngx_http_urlstore_route_loc_conf_t, upstream.read_timeout),
      1, NGX_MAX_OFF_T_VALUE, NULL, NULL, "a time such as 15s" },
    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


/* urlstore_route NAME [endpoint=E] [connect=TIME] [timeout=TIME]; */

static char *
ngx_http_urlstore_route(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_route_loc_conf_t *rlcf = conf;

    ngx_str_t                     *value;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_urlstore_cluster_t   *cluster;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_urlstore_module);

    if (ulcf->handler) {
        return "is duplicate: a location has one endpoint, or urlstore_api";
    }

    value = cf->args->elts;
    cluster = ngx_http_urlstore_cluster_find(cf, &value[1]);

    if (cluster == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_cluster \"%V\" must be declared above "
                           "this directive", &value[1]);
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler) {
        return "cannot be in a location that has another handler";
    }

    rlcf->upstream.connect_timeout = 1000;
    rlcf->upstream.read_timeout = 15000;

    if (ngx_http_urlstore_options_read(cf, rlcf, 2,
                                       ngx_http_urlstore_route_options)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    rlcf->upstream.send_timeout = rlcf->upstream.read_timeout;

    /* shorter limits: /health and /metrics answer while a node hangs */

    rlcf->probe = rlcf->upstream;
    rlcf->probe.connect_timeout = ngx_min(rlcf->probe.connect_timeout,
                                          NGX_HTTP_URLSTORE_CALL_PROBE);
    rlcf->probe.read_timeout = ngx_min(rlcf->probe.read_timeout,
                                       NGX_HTTP_URLSTORE_CALL_PROBE);
    rlcf->probe.send_timeout = rlcf->probe.read_timeout;

    ulcf->zone = ngx_http_urlstore_route_zone(cf, cluster);

    if (ulcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (rlcf->endpoint.len) {
        ulcf->endpoint = ngx_http_urlstore_endpoint(&rlcf->endpoint);

        if (ulcf->endpoint == NULL) {
            return "has an unknown endpoint";
        }

        if (ngx_http_urlstore_route_kind.handlers[ulcf->endpoint
                                               - ngx_http_urlstore_endpoints]
            == NULL)
        {
            return "has an endpoint that a router does not have";
        }
    }

    return ngx_http_urlstore_location(cf, ulcf);
}


static void *
ngx_http_urlstore_route_create_conf(ngx_conf_t *cf)
{
    ngx_http_urlstore_route_loc_conf_t  *rlcf;

    rlcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_route_loc_conf_t));
    if (rlcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc(): no buffering, no cache, no store, no local address;
     * what is not here is not used without them
     */

    rlcf->upstream.connect_timeout = NGX_CONF_UNSET_MSEC;
    rlcf->upstream.next_upstream = NGX_CONF_BITMASK_SET
                                   |NGX_HTTP_UPSTREAM_FT_OFF;
    rlcf->upstream.ignore_client_abort = 1;

    return rlcf;
}


/* an if { } block, or limit_except, has that of its location */

static char *
ngx_http_urlstore_route_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_urlstore_route_loc_conf_t *prev = parent;
    ngx_http_urlstore_route_loc_conf_t *conf = child;

    if (conf->upstream.connect_timeout == NGX_CONF_UNSET_MSEC) {
        conf->upstream = prev->upstream;
        conf->probe = prev->probe;
    }

    return NGX_CONF_OK;
}


/* the rules of a cluster make its zone as well */

static ngx_int_t
ngx_http_urlstore_route_begin(ngx_conf_t *cf)
{
    ngx_http_urlstore_main_conf_t  *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);
    umcf->route = ngx_http_urlstore_route_zone;

    return NGX_OK;
}


/* all clusters that are routed here, when everything has been read */

static ngx_int_t
ngx_http_urlstore_route_check(ngx_conf_t *cf)
{
    char                             err[NGX_MAX_ERROR_STR];
    us_str_t                         norm;
    ngx_uint_t                       i;
    const us_map_t                  *map;
    ngx_http_urlstore_cluster_t    **cp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);
    cp = umcf->clusters.elts;

    for (i = 0; i < umcf->clusters.nelts; i++) {

        if (cp[i]->zone == NULL) {
            continue;
        }

        if (cp[i]->map == NULL) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "urlstore_cluster \"%V\" has no map so far: there "
                          "is no file \"%V\"", &cp[i]->name, &cp[i]->path);
            continue;
        }

        map = cp[i]->map;
        norm = us_norm_signature(cp[i]->zone->norm);

        if (!us_norm_same(norm, map->norm)) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "urlstore_cluster \"%V\": its map is for URLs "
                          "normalized as \"%*s\", this nginx can make \"%*s\"",
                          &cp[i]->name, map->norm.len, map->norm.data,
                          norm.len, norm.data);
            return NGX_ERROR;
        }

        if (ngx_http_urlstore_cluster_nodes(cf, map, err) != NGX_OK) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "urlstore_cluster \"%V\": %s", &cp[i]->name, err);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
