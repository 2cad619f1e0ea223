
/*
 * See ngx_http_urlstore_route.h: the directive, the zone of a router, and what
 * nginx -t refuses.
 *
 *     location / { urlstore_route crawl; }
 *
 * stands for the endpoints of the cluster and for these stock directives:
 *
 *     proxy_pass http://$urlstore_node$urlstore_call;
 *     ...
 *
 * so nginx does the talking to shards.  $urlstore_node is the name of the
 * upstream of a node in the map, and the variables have values in the
 * subrequests of ngx_http_urlstore_call.c only.
 */


#include "ngx_http_urlstore_route.h"
#include "../cluster/us_map_tag.h"


/* the proxy's part; %V: connect and timeout */

#define NGX_HTTP_URLSTORE_ROUTE_PASS                                          \
    "proxy_pass http://$urlstore_node$urlstore_call;"                         \
    "proxy_method $urlstore_method;"                                          \
    "proxy_http_version 1.1;"                                                 \
    "proxy_set_header Host $urlstore_node;"                                   \
    "proxy_set_header Connection '';"                                         \
    "proxy_set_header Accept $urlstore_accept;"                               \
    "proxy_set_header Urlstore-Map $urlstore_map;"                            \
    "proxy_pass_request_headers off;"                                         \
    "proxy_pass_request_body on;"                                             \
    "proxy_next_upstream off;"                                                \
    "proxy_ignore_client_abort on;"                                           \
    "proxy_ignore_headers X-Accel-Redirect X-Accel-Buffering "                \
        "X-Accel-Limit-Rate X-Accel-Expires X-Accel-Charset;"                 \
    "proxy_intercept_errors off;"                                             \
    "proxy_redirect off;"                                                     \
    "proxy_cache off;"                                                        \
    "proxy_store off;"                                                        \
    "proxy_buffering off;"                                                    \
    "proxy_buffer_size 64k;"                                                  \
    "proxy_buffers 4 64k;"                                                    \
    "proxy_busy_buffers_size 64k;"                                            \
    "proxy_connect_timeout %V;"                                               \
    "proxy_send_timeout %V;"                                                  \
    "proxy_read_timeout %V;"

/* bytes of shared memory of a router: counters */
#define NGX_HTTP_URLSTORE_ROUTE_ZONE   (448 * 1024)


typedef enum {
    NGX_HTTP_URLSTORE_V_NODE = 0,
    NGX_HTTP_URLSTORE_V_CALL,
    NGX_HTTP_URLSTORE_V_METHOD,
    NGX_HTTP_URLSTORE_V_ACCEPT,
    NGX_HTTP_URLSTORE_V_MAP
} ngx_http_urlstore_call_variable_t;


static ngx_int_t ngx_http_urlstore_route_pass(ngx_conf_t *cf,
    ngx_str_t *connect, ngx_str_t *timeout);
static ngx_int_t ngx_http_urlstore_route_options(ngx_conf_t *cf,
    ngx_str_t *endpoint, ngx_str_t *connect, ngx_str_t *timeout);
static ngx_int_t ngx_http_urlstore_route_init(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_urlstore_route_norm(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map);
static ngx_int_t ngx_http_urlstore_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static ngx_http_variable_t  ngx_http_urlstore_route_vars[] = {

    { ngx_string("urlstore_node"), NULL, ngx_http_urlstore_route_variable,
      NGX_HTTP_URLSTORE_V_NODE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_call"), NULL, ngx_http_urlstore_route_variable,
      NGX_HTTP_URLSTORE_V_CALL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_method"), NULL, ngx_http_urlstore_route_variable,
      NGX_HTTP_URLSTORE_V_METHOD, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_accept"), NULL, ngx_http_urlstore_route_variable,
      NGX_HTTP_URLSTORE_V_ACCEPT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_map"), NULL, ngx_http_urlstore_route_variable,
      NGX_HTTP_URLSTORE_V_MAP, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


/* urlstore_route NAME [endpoint=E] [connect=TIME] [timeout=TIME]; */

char *
ngx_http_urlstore_route(ngx_conf_t *cf, ngx_http_urlstore_loc_conf_t *ulcf,
    ngx_str_t *endpoint)
{
    ngx_str_t                    *value, connect, timeout;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_urlstore_cluster_t  *cluster;

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

    if (ngx_http_urlstore_route_options(cf, endpoint, &connect, &timeout)
        != NGX_OK
        || ngx_http_urlstore_route_pass(cf, &connect, &timeout) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ulcf->pass = clcf->handler;
    ulcf->zone = ngx_http_urlstore_route_zone(cf, cluster);

    return ulcf->zone ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_urlstore_route_options(ngx_conf_t *cf, ngx_str_t *endpoint,
    ngx_str_t *connect, ngx_str_t *timeout)
{
    size_t       len;
    ngx_str_t   *value, *time;
    ngx_uint_t   i;

    ngx_str_null(endpoint);

    ngx_str_set(connect, "1s");
    ngx_str_set(timeout, "15s");

    value = cf->args->elts;

    for (i = 2; i < cf->args->nelts; i++) {
        time = NULL;
        len = 0;

        if (ngx_strncmp(value[i].data, "endpoint=", 9) == 0) {
            endpoint->data = value[i].data + 9;
            endpoint->len = value[i].len - 9;

            if (endpoint->len) {
                continue;
            }

        } else if (ngx_strncmp(value[i].data, "connect=", 8) == 0) {
            time = connect;
            len = 8;

        } else if (ngx_strncmp(value[i].data, "timeout=", 8) == 0) {
            time = timeout;
            len = 8;
        }

        if (time) {
            time->data = value[i].data + len;
            time->len = value[i].len - len;

            if (ngx_parse_time(time, 0) != (ngx_int_t) NGX_ERROR) {
                continue;
            }
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of %V \"%V\": "
                           "allowed are endpoint=NAME, connect=TIME and "
                           "timeout=TIME", &value[i], &value[0], &value[1]);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * The stock directives, read as if they stood in the location, in the way of
 * ngx_conf_param(): from memory.
 */

static ngx_int_t
ngx_http_urlstore_route_pass(ngx_conf_t *cf, ngx_str_t *connect,
    ngx_str_t *timeout)
{
    size_t           size;
    ngx_buf_t        b;
    ngx_conf_t       pass;
    ngx_conf_file_t  file;

    size = sizeof(NGX_HTTP_URLSTORE_ROUTE_PASS) + connect->len
           + 2 * timeout->len;

    ngx_memzero(&file, sizeof(ngx_conf_file_t));
    ngx_memzero(&b, sizeof(ngx_buf_t));

    pass = *cf;
    pass.conf_file = &file;
    pass.args = ngx_array_create(cf->pool, 10, sizeof(ngx_str_t));

    b.start = ngx_pnalloc(cf->pool, size);

    if (pass.args == NULL || b.start == NULL) {
        return NGX_ERROR;
    }

    b.pos = b.start;
    b.last = ngx_sprintf(b.start, NGX_HTTP_URLSTORE_ROUTE_PASS, connect,
                         timeout, timeout);
    b.end = b.last;
    b.temporary = 1;

    file.file.fd = NGX_INVALID_FILE;
    file.buffer = &b;
    file.line = 1;

    return ngx_conf_parse(&pass, NULL) == NGX_CONF_OK ? NGX_OK : NGX_ERROR;
}


ngx_http_urlstore_zone_t *
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

    zone->route = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_route_t));
    if (zone->route == NULL) {
        return NULL;
    }

    zone->route->cluster = cluster;

    if (cluster->map) {
        ngx_http_urlstore_route_norm(zone, cluster->map->map);
    }

    if (ngx_http_urlstore_zone_add(cf, zone, NGX_HTTP_URLSTORE_ROUTE_ZONE,
                                   ngx_http_urlstore_route_init)
        != NGX_CONF_OK)
    {
        return NULL;
    }

    cluster->zone = zone;

    return zone;
}


/* "PROFILE/1 unicode=... www=W"; what is not known is found by the check */

static void
ngx_http_urlstore_route_norm(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map)
{
    int            profile;
    size_t         i;
    us_str_t       name;
    const u_char  *p;

    static const struct {
        us_str_t   end;
        us_www_t   www;
    } www[] = {
        { us_string(" www=first"), US_WWW_FIRST },
        { us_string(" www=keep"), US_WWW_KEEP },
        { us_string(" www=strip"), US_WWW_STRIP }
    };

    p = memchr(map->norm.data, '/', map->norm.len);

    if (p == NULL) {
        return;
    }

    name.data = map->norm.data;
    name.len = p - name.data;

    profile = us_profile_parse(name);

    if (profile != -1) {
        zone->profile = profile;
    }

    for (i = 0; i < sizeof(www) / sizeof(www[0]); i++) {
        if (map->norm.len >= www[i].end.len
            && ngx_memcmp(map->norm.data + map->norm.len - www[i].end.len,
                          www[i].end.data, www[i].end.len)
               == 0)
        {
            zone->www = www[i].www;
        }
    }
}


static ngx_int_t
ngx_http_urlstore_route_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_zone_t *old = data;

    ngx_http_urlstore_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->conf.norm = us_norm_signature(zone->norm);

    if (old) {
        if (old->route == NULL) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "\"%V\" was a zone and is a cluster now: give it "
                          "another name, or stop nginx and start it again",
                          &zone->name);
            return NGX_ERROR;
        }

        zone->sh = old->sh;
        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        zone->sh = zone->shpool->data;
        return NGX_OK;
    }

    if (ngx_test_config) {
        return NGX_OK;
    }

    zone->sh = ngx_http_urlstore_zone_share(zone);

    if (zone->sh == NULL) {
        return NGX_ERROR;
    }

    zone->sh->calls = ngx_slab_calloc(zone->shpool, US_SHARDS
                                          * sizeof(ngx_http_urlstore_calls_t));

    return zone->sh->calls ? NGX_OK : NGX_ERROR;
}


/* all clusters that are routed here, when everything has been read */

ngx_int_t
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

        map = cp[i]->map->map;
        norm = us_norm_signature(cp[i]->zone->norm);

        if (us_str_compare(norm, map->norm) != 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "urlstore_cluster \"%V\": its map is for URLs "
                          "normalized as \"%*s\", this nginx can make \"%*s\"",
                          &cp[i]->name, map->norm.len, map->norm.data,
                          norm.len, norm.data);
            return NGX_ERROR;
        }

        if (ngx_http_urlstore_cluster_nodes(
                ngx_http_conf_get_module_main_conf(cf,
                                                   ngx_http_upstream_module),
                map, err)
            != NGX_OK)
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "urlstore_cluster \"%V\": %s", &cp[i]->name, err);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


const us_map_t *
ngx_http_urlstore_route_map(ngx_http_request_t *r, ngx_int_t *rc)
{
    us_str_t                      norm;
    const us_map_t               *map;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_cluster_t  *cluster;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    cluster = ctx->zone->route->cluster;

    map = ngx_http_urlstore_cluster_hold(cluster, r->pool);

    if (map == NULL) {
        *rc = ngx_http_urlstore_route_absent(r, NULL, "the cluster has no "
                                             "map so far");
        return NULL;
    }

    norm = us_norm_signature(ctx->zone->norm);

    if (us_str_compare(norm, map->norm) != 0) {
        *rc = ngx_http_urlstore_route_absent(r, NULL, "the cluster's map is "
                                             "for URLs normalized as "
                                             "\"%*s\", this router makes "
                                             "\"%*s\": reload it",
                                             map->norm.len, map->norm.data,
                                             norm.len, norm.data);
        return NULL;
    }

    return map;
}


ngx_int_t
ngx_http_urlstore_route_sites(ngx_http_request_t *r, const char *what)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST,
                                     "\"reason\":\"key\"",
                                     "\"%s\" is not allowed: the cluster "
                                     "divides URLs and not sites (its key is "
                                     "\"url\")", what);
}


ngx_int_t
ngx_http_urlstore_route_absent(ngx_http_request_t *r, const char *members,
    const char *fmt, ...)
{
    size_t                    len;
    u_char                    detail[NGX_MAX_ERROR_STR];
    va_list                   args;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    us_tally_add(ctx->zone->tally, US_N_UNREADY, 1);

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    va_start(args, fmt);
    len = ngx_vslprintf(detail, detail + sizeof(detail), fmt, args) - detail;
    va_end(args);

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, members,
                                     "%*s", len, detail);
}


ngx_int_t
ngx_http_urlstore_route_silent(ngx_http_request_t *r, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "%s\"reason\":\"shard:%ui\"%Z",
                r->method == NGX_HTTP_POST ? "\"processed\":0," : "", number);

    return ngx_http_urlstore_route_absent(r, (char *) members,
                                          "shard %ui does not answer", number);
}


ngx_int_t
ngx_http_urlstore_route_unknown(ngx_http_request_t *r, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "\"reason\":\"unknown:%ui\"%Z", number);

    return ngx_http_urlstore_retry_after(r, 1) != NGX_OK
           ? NGX_HTTP_INTERNAL_SERVER_ERROR
           : ngx_http_urlstore_problem(r, NGX_HTTP_GATEWAY_TIME_OUT,
                                       (char *) members, "shard %ui was asked "
                                       "and has not answered: whether it has "
                                       "done it is not known", number);
}


ngx_int_t
ngx_http_urlstore_route_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_urlstore_route_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* of the subrequest of a call */

static ngx_int_t
ngx_http_urlstore_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p;
    us_map_tag_t               tag;
    const us_str_t            *node;
    const us_shard_t          *shard;
    ngx_http_urlstore_call_t  *call;

    call = ngx_http_urlstore_call_of(r);

    if (call == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->not_found = 0;
    v->no_cacheable = 0;

    shard = &call->map->shards[call->shard];

    switch (data) {

    case NGX_HTTP_URLSTORE_V_NODE:
        node = &shard->nodes[call->node];
        v->data = (u_char *) node->data;
        v->len = node->len;
        break;

    case NGX_HTTP_URLSTORE_V_CALL:
        v->data = call->path.data;
        v->len = call->path.len;
        break;

    case NGX_HTTP_URLSTORE_V_METHOD:

        /* $request_method is that of the main request */

        v->data = r->method_name.data;
        v->len = r->method_name.len;
        break;

    case NGX_HTTP_URLSTORE_V_ACCEPT:
        v->data = call->accept.data;
        v->len = call->accept.len;
        break;

    default: /* NGX_HTTP_URLSTORE_V_MAP */

        p = ngx_pnalloc(r->pool, US_MAP_TAG_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }

        tag = us_map_tag(call->map, shard->number);

        v->data = p;
        v->len = us_map_tag_put(p, &tag) - p;
        break;
    }

    return NGX_OK;
}
