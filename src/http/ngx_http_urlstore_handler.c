/*
 * Which endpoint a request is for, and whether it may be answered now.
 *
 *     location /store/ { urlstore_api pages; }     /store/url/7
 *                                                  ^^^^^^^^---- name "url"
 *     location /ids/   { urlstore_url pages; }     /ids/7      `- tail "7"
 *
 * An endpoint has one spelling below its location: access rules for it are
 * other locations, such as "location = /store/add", and another spelling would
 * pass them by.  So there is no endpoint at /store/add/ nor at /store//add.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_cluster.h"


#define GET          (NGX_HTTP_GET|NGX_HTTP_HEAD)

#define LISTS        NGX_HTTP_URLSTORE_LISTS
#define OF_SET       NGX_HTTP_URLSTORE_OF_SET
#define OF_MARK      NGX_HTTP_URLSTORE_OF_MARK
#define LISTS_SITES  8     /* LISTS, where the zone has an index of sites */
#define BY_ID        16    /* which mode=lookup can do */
#define ALWAYS       32    /* answers while loading */
#define ALONE        64    /* not of urlstore_api: the journal, with its key */
#define OF_ALL       128   /* its arguments are of NAME; NAME/... has none */

/* of NAME/..., each node answers for itself; a router asks for the shard */
#define OF_NODE      256


/*
 * rows: name, its methods, those with a tail, those that change the store, what
 * else it is; its query arguments
 */

const ngx_http_urlstore_endpoint_t
    ngx_http_urlstore_endpoints[NGX_HTTP_URLSTORE_ENDPOINTS] =
{
    { ngx_string("add"), NGX_HTTP_POST, 0, NGX_HTTP_POST, 0,
      "url base brief summary sites only older times same set stored" },

    { ngx_string("seen"), GET|NGX_HTTP_POST, 0, 0, 0,
      "url base brief summary sites only older times same set stored" },

    { ngx_string("url"), GET|NGX_HTTP_POST|NGX_HTTP_DELETE,
      GET|NGX_HTTP_DELETE, NGX_HTTP_DELETE, BY_ID,
      "redirect times erase reason" },

    { ngx_string("urls"), GET, 0, 0, BY_ID|LISTS,
      "from cursor limit site prefix set mark older new_sites deleted times "
      "summary" },

    { ngx_string("prefix"), GET, 0, 0, 0, "url base" },

    { ngx_string("site"), GET, GET, 0, LISTS_SITES, "" },

    { ngx_string("mark"), NGX_HTTP_POST|NGX_HTTP_DELETE,
      NGX_HTTP_POST|NGX_HTTP_DELETE, NGX_HTTP_POST|NGX_HTTP_DELETE,
      OF_SET|OF_MARK, "url id base brief summary clear" },

    { ngx_string("log"), GET, 0, 0, ALONE,
      "from at replica erased keeps" },

    { ngx_string("claim"), NGX_HTTP_POST, 0, NGX_HTTP_POST, 0,
      "url id base brief summary at clear" },

    { ngx_string("cluster"), GET, 0, 0, BY_ID, "" },

    { ngx_string("normalize"), GET, 0, 0, 0, "url base profile explain" },

    { ngx_string("health"), GET, 0, 0, ALWAYS, "write" },

    { ngx_string("stats"), GET, 0, 0, ALWAYS, "" },

    { ngx_string("metrics"), GET, 0, 0, ALWAYS, "" },

    { ngx_string(""), GET, 0, 0, ALWAYS, "q" },

    { ngx_string("openapi.yaml"), GET, 0, 0, ALWAYS, "" },

    { ngx_string("set"), GET, GET|NGX_HTTP_PUT|NGX_HTTP_POST|NGX_HTTP_DELETE,
      NGX_HTTP_PUT|NGX_HTTP_POST|NGX_HTTP_DELETE, LISTS|OF_SET,
      "url id base brief summary remove" },

    { ngx_string("erase"), GET|NGX_HTTP_POST, GET|NGX_HTTP_DELETE,
      NGX_HTTP_POST|NGX_HTTP_DELETE, LISTS|OF_ALL|OF_NODE,
      "url id base brief summary site reason from limit cursor" }
};

_Static_assert((int) NGX_HTTP_URLSTORE_ENDPOINTS <= (int) US_N_ENDPOINTS,
               "each endpoint has a counter");


/*
 * Of the kind: whether the store can answer now, by the request's map, and by
 * the data as they are now, which the request remembers.  NGX_DECLINED: it can;
 * else the problem has been sent.
 */

static ngx_int_t
ngx_http_urlstore_store_begin(ngx_http_urlstore_ctx_t *ctx)
{
    unsigned                   wants;
    ngx_uint_t                 flags;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;
    flags = ctx->endpoint->flags;

    if ((flags & OF_NODE) && ctx->tail.len
        && !ngx_http_urlstore_header_in(ctx->r, "urlstore-map"))
    {
        flags &= ~(LISTS|LISTS_SITES);
    }

    ngx_http_urlstore_refresh(zone);

    wants = (ctx->writes ? US_WANTS_CHANGE : 0)
            | (flags & BY_ID ? US_WANTS_BY_ID : 0)
            | (flags & (zone->conf.sites ? LISTS|LISTS_SITES : LISTS)
               ? US_WANTS_ALL : 0);

    if ((flags & ALWAYS) || us_life_admits(&zone->life, wants)) {
        us_life_view(&zone->life, &ctx->view);

        if (zone->cluster && !(flags & ALWAYS)) {
            return ngx_http_urlstore_shard_begin(ctx);
        }

        /* by whatever map a router asks for them */
        ctx->tagged = (zone->cluster && zone->store
                       && ngx_http_urlstore_header_in(ctx->r, "urlstore-map"));
        return NGX_DECLINED;
    }

    if ((wants & US_WANTS_CHANGE) && zone->life.conf.follow) {
        if (ngx_http_urlstore_header_in(ctx->r, "urlstore-map")) {
            ngx_http_urlstore_untouched(ctx);
        }

        return ngx_http_urlstore_follow_problem(ctx,
                   NGX_HTTP_URLSTORE_MISDIRECTED, NULL,
                   "this zone is a replica, which is only read");
    }

    us_tally_add(zone->tally, US_N_UNREADY, 1);

    if (zone->cluster) {
        ngx_http_urlstore_untouched(ctx);
    }

    return ngx_http_urlstore_unready(ctx, NULL);
}


const ngx_http_urlstore_kind_t  ngx_http_urlstore_store_kind = {

    .name = "store",

    .handlers = {
        ngx_http_urlstore_add_handler,
        ngx_http_urlstore_seen_handler,
        ngx_http_urlstore_url_handler,
        ngx_http_urlstore_urls_handler,
        ngx_http_urlstore_prefix_handler,
        ngx_http_urlstore_site_handler,
        ngx_http_urlstore_set_handler,
        ngx_http_urlstore_log_handler,
        ngx_http_urlstore_claim_handler,
        ngx_http_urlstore_cluster_handler,
        ngx_http_urlstore_normalize_handler,
        ngx_http_urlstore_health_handler,
        ngx_http_urlstore_stats_handler,
        ngx_http_urlstore_metrics_handler,
        ngx_http_urlstore_page_handler,
        ngx_http_urlstore_openapi_handler,
        ngx_http_urlstore_set_handler,
        ngx_http_urlstore_erase_handler
    },

    .begin = ngx_http_urlstore_store_begin,
    .create = ngx_http_urlstore_store_create,
    .attach = ngx_http_urlstore_store_attach,
    .open = ngx_http_urlstore_store_open,
    .normalize = us_normalize,
    .claims = ngx_http_urlstore_claims,
    .group = ngx_http_urlstore_store_group,
    .end = ngx_http_urlstore_batch_end,
    .look = ngx_http_urlstore_store_look,
    .full = ngx_http_urlstore_store_full,
    .figures = ngx_http_urlstore_store_figures
};


/*
 * The endpoint is what follows the location in the URI; in a location by a
 * regular expression, the last segment.  NULL: there is none, or "location
 * /store" got /storehouse, or /store/.
 */

static const ngx_http_urlstore_endpoint_t *
ngx_http_urlstore_find(ngx_http_request_t *r,
    ngx_http_urlstore_loc_conf_t *ulcf, ngx_str_t *tail)
{
    u_char                              *p, *last;
    ngx_str_t                            name;
    const ngx_http_urlstore_endpoint_t  *ep;

    name = ulcf->name;
    last = r->uri.data + r->uri.len;

    if (ulcf->regex) {
        for (p = last; p > r->uri.data && p[-1] != '/'; p--) { /* void */ }

        if (p == last) {
            return NULL;
        }

    } else {
        p = r->uri.data + ngx_min(name.len, r->uri.len);

        if (p < last && (name.len == 0 || name.data[name.len - 1] != '/')) {

            /*
             * The page's links are relative: it is sent from /store to /store/,
             * which is the only path with a slash too many.
             */

            if (*p++ != '/' || (p == last && ulcf->endpoint)) {
                return NULL;
            }
        }
    }

    ep = ulcf->endpoint;

    if (ep == NULL) {
        name.data = p;
        p = ngx_strlchr(p, last, '/');
        name.len = (p ? p : last) - name.data;

        ep = ngx_http_urlstore_endpoint(&name);

        p = p ? p + 1 : last;

        if (p == last && name.data + name.len < last) {
            return NULL;
        }
    }

    tail->data = p;
    tail->len = last - p;

    /* of a regular expression, the last segment may be the endpoint's name */

    if (ep && ulcf->regex && !(ep->tail & r->method)) {
        tail->len = 0;
    }

    return ep && !ep->tail && tail->len ? NULL : ep;
}


/* NGX_DECLINED: the endpoint takes it; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_method(ngx_http_urlstore_ctx_t *ctx)
{
    u_char                              *p;
    ngx_uint_t                           i, methods;
    const ngx_http_urlstore_endpoint_t  *ep;
    u_char                               buf[sizeof("GET, HEAD, PUT, POST, "
                                                    "DELETE")];

    static const struct {
        ngx_uint_t   method;
        const char  *name;
    } names[] = {
        { NGX_HTTP_GET, "GET" },
        { NGX_HTTP_HEAD, "HEAD" },
        { NGX_HTTP_PUT, "PUT" },
        { NGX_HTTP_POST, "POST" },
        { NGX_HTTP_DELETE, "DELETE" }
    };

    ep = ctx->endpoint;
    methods = ctx->tail.len ? ep->tail : ep->methods;

    if (ctx->r->method & methods) {
        return NGX_DECLINED;
    }

    p = buf;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].method & methods) {
            p = ngx_sprintf(p, "%s%s", p == buf ? "" : ", ", names[i].name);
        }
    }

    ngx_http_urlstore_header_printf(ctx, "Allow", sizeof(buf), "%*s",
                                    (size_t) (p - buf), buf);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_ALLOWED, NULL,
                                     "the method is not allowed; /%V%s allows "
                                     "%*s",
                                     &ep->name, ctx->tail.len ? "/..." : "",
                                     (size_t) (p - buf), buf);
}


static ngx_int_t
ngx_http_urlstore_handler(ngx_http_request_t *r)
{
    ngx_int_t                             rc;
    ngx_http_urlstore_ctx_t              *ctx;
    ngx_http_urlstore_zone_t             *zone;
    const ngx_http_urlstore_endpoint_t   *ep;

    ctx = ngx_http_urlstore_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    zone = ctx->zone;

    ep = ngx_http_urlstore_find(r, ctx->conf, &ctx->tail);

    if (ep == NULL) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "there is no such endpoint");
    }

    ctx->endpoint = ep;
    ctx->handler = zone->kind->handlers[ep - ngx_http_urlstore_endpoints];

    if (ctx->handler == NULL) {
        return ngx_http_urlstore_problem(ctx, zone->kind->status, NULL,
                                         zone->kind->lacks, &ep->name);
    }

    if (ep->flags & ALONE && ctx->conf->endpoint == NULL) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "/%V is no part of urlstore_api: it "
                                         "has a directive of its own, "
                                         "urlstore_%V", &ep->name, &ep->name);
    }

    rc = ngx_http_urlstore_origin(ctx, ep->writes);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_method(ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    us_tally_add(zone->tally, US_N_REQUESTS
                                  + (ep - ngx_http_urlstore_endpoints), 1);

    /* of /set, only POST has arguments */

    rc = ngx_http_urlstore_args(ctx, ((ep->flags & (OF_SET|OF_MARK)) == OF_SET
                                      && ctx->r->method != NGX_HTTP_POST)
                                     || (ep->flags & OF_ALL && ctx->tail.len)
                                     ? "" : ep->args);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->writes = (r->method & ep->writes) != 0;

    if (zone->kind->begin) {
        rc = zone->kind->begin(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    ctx->has_body = (r == r->main && (r->headers_in.content_length_n > 0
                                      || r->headers_in.chunked));

    if (r->method != NGX_HTTP_POST && !(ep->flags & OF_MARK)) {

        /* it reads no body */

        rc = ngx_http_urlstore_no_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ctx->writes) {
        rc = ngx_http_urlstore_key(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_urlstore_set_begin(ctx);
}


/* by the name of its directive or path */

const ngx_http_urlstore_endpoint_t *
ngx_http_urlstore_endpoint(ngx_str_t *name)
{
    ngx_uint_t                           i;
    const ngx_http_urlstore_endpoint_t  *ep;

    for (i = 0; i < NGX_HTTP_URLSTORE_ENDPOINTS; i++) {
        ep = &ngx_http_urlstore_endpoints[i];

        if (ngx_http_urlstore_same(&ep->name, name)) {
            return ep;
        }
    }

    return NULL;
}


char *
ngx_http_urlstore_location(ngx_conf_t *cf, ngx_http_urlstore_loc_conf_t *ulcf)
{
    ngx_str_t                     *name;
    ngx_http_core_srv_conf_t      *cscf;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_urlstore_loc_conf_t  *server;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    ulcf->name = clcf->name;

#if (NGX_PCRE)
    ulcf->regex = (clcf->regex != NULL);
#endif

    if (!ulcf->regex) {

        /* the server remembers it, for errors before a location is known */

        cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
        server = cscf->ctx->loc_conf[ngx_http_urlstore_module.ctx_index];

        if (server->ours == NULL) {
            server->ours = ngx_array_create(cf->pool, 4, sizeof(ngx_str_t));
        }

        name = server->ours ? ngx_array_push(server->ours) : NULL;
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        *name = ulcf->name;
    }

    if (ulcf->endpoint == NULL) {

#if (NGX_PCRE)
        if (clcf->regex) {
            return "needs a prefix location, not a regular expression";
        }
#endif

        if (clcf->exact_match || clcf->named) {
            return "needs a prefix location";
        }

        /* "/store" is led to "/store/" */

        if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
            clcf->auto_redirect = 1;
        }
    }

    ulcf->handler = ngx_http_urlstore_handler;
    clcf->handler = ulcf->handler;

    return NGX_CONF_OK;
}
