
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


#include "ngx_http_urlstore_shard.h"


#define GET          (NGX_HTTP_GET|NGX_HTTP_HEAD)

#define BY_ID        NGX_HTTP_URLSTORE_BY_ID
#define ALONE        NGX_HTTP_URLSTORE_ALONE
#define ALWAYS       NGX_HTTP_URLSTORE_ALWAYS
#define FILTER       NGX_HTTP_URLSTORE_FILTER
#define LISTS        NGX_HTTP_URLSTORE_LISTS
#define LISTS_SITES  NGX_HTTP_URLSTORE_LISTS_SITES


static const ngx_http_urlstore_endpoint_t *ngx_http_urlstore_find(
    ngx_http_request_t *r, ngx_str_t *tail);
static ngx_int_t ngx_http_urlstore_rest(ngx_http_request_t *r,
    ngx_str_t *rest);
static ngx_int_t ngx_http_urlstore_method(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep, ngx_str_t *tail);


/*
 * rows: name, its methods, those with a tail, those that change the store, what
 * else it is; its query arguments; handler; that of a router
 */

const ngx_http_urlstore_endpoint_t  ngx_http_urlstore_endpoints[] = {

    { ngx_string("add"), NGX_HTTP_POST, 0, NGX_HTTP_POST, FILTER,
      "url base brief summary sites only older times same",
      ngx_http_urlstore_add_handler, ngx_http_urlstore_add_handler },

    { ngx_string("seen"), GET|NGX_HTTP_POST, 0, 0, FILTER,
      "url base brief summary sites only older times same",
      ngx_http_urlstore_seen_handler, ngx_http_urlstore_seen_handler },

    { ngx_string("url"), GET|NGX_HTTP_POST|NGX_HTTP_DELETE,
      GET|NGX_HTTP_DELETE, NGX_HTTP_DELETE, BY_ID,
      "redirect times",
      ngx_http_urlstore_url_handler, ngx_http_urlstore_url_handler },

    { ngx_string("urls"), GET, 0, 0, BY_ID|LISTS,
      "from cursor limit site prefix mark older new_sites deleted times "
      "summary",
      ngx_http_urlstore_urls_handler, ngx_http_urlstore_route_urls },

    { ngx_string("prefix"), GET, 0, 0, 0,
      "url base",
      ngx_http_urlstore_prefix_handler, ngx_http_urlstore_route_prefix },

    { ngx_string("site"), GET, GET, 0, LISTS_SITES,
      "",
      ngx_http_urlstore_site_handler, ngx_http_urlstore_route_site },

    { ngx_string("mark"), NGX_HTTP_POST|NGX_HTTP_DELETE,
      NGX_HTTP_POST|NGX_HTTP_DELETE, NGX_HTTP_POST|NGX_HTTP_DELETE, 0,
      "url id base brief summary clear",
      ngx_http_urlstore_mark_handler, ngx_http_urlstore_mark_handler },

    { ngx_string("log"), GET, 0, 0, ALONE,
      "from at",
      ngx_http_urlstore_log_handler, NULL },

    { ngx_string("claim"), NGX_HTTP_POST, 0, NGX_HTTP_POST, 0,
      "url id base brief summary at clear",
      ngx_http_urlstore_claim_handler, ngx_http_urlstore_claim_handler },

    { ngx_string("cluster"), GET, 0, 0, BY_ID,
      "",
      ngx_http_urlstore_cluster_handler,
      ngx_http_urlstore_cluster_handler },

    { ngx_string("normalize"), GET, 0, 0, FILTER,
      "url base profile explain",
      ngx_http_urlstore_normalize_handler,
      ngx_http_urlstore_normalize_handler },

    { ngx_string("health"), GET, 0, 0, ALWAYS|FILTER,
      "write",
      ngx_http_urlstore_health_handler, ngx_http_urlstore_route_health },

    { ngx_string("stats"), GET, 0, 0, ALWAYS|FILTER,
      "",
      ngx_http_urlstore_stats_handler, ngx_http_urlstore_route_stats },

    { ngx_string("metrics"), GET, 0, 0, ALWAYS|FILTER,
      "",
      ngx_http_urlstore_metrics_handler, ngx_http_urlstore_route_metrics },

    { ngx_string(""), GET, 0, 0, ALWAYS|FILTER,
      "q",
      ngx_http_urlstore_page_handler, ngx_http_urlstore_page_handler },

    { ngx_string("openapi.yaml"), GET, 0, 0, ALWAYS|FILTER,
      "",
      ngx_http_urlstore_openapi_handler, ngx_http_urlstore_openapi_handler },

    { ngx_null_string, 0, 0, 0, 0, NULL, NULL, NULL }
};

_Static_assert(sizeof(ngx_http_urlstore_endpoints)
               / sizeof(ngx_http_urlstore_endpoints[0])
               <= US_N_ENDPOINTS + 1, "each endpoint has a counter");


ngx_int_t
ngx_http_urlstore_handler(ngx_http_request_t *r)
{
    ngx_int_t                             rc;
    ngx_http_urlstore_ctx_t              *ctx;
    ngx_http_urlstore_zone_t             *zone;
    ngx_http_urlstore_loc_conf_t         *ulcf;
    const ngx_http_urlstore_endpoint_t   *ep;

    ctx = ngx_http_urlstore_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    zone = ctx->zone;

    ep = ngx_http_urlstore_find(r, &ctx->tail);

    if (ep == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "there is no such endpoint");
    }

    ctx->endpoint = ep;

    if (zone->filter && !(ep->flags & FILTER)) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "a filter has no /%V: it keeps "
                                         "neither ids nor URLs", &ep->name);
    }

    if (zone->route && ngx_http_urlstore_header_in(r, "urlstore-map")) {

        /* a node that leads to a router: a request could go round for ever */

        return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_MISDIRECTED,
                                         NULL, "this is a router and not a "
                                         "shard");
    }

    if (zone->route && ep->route == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_IMPLEMENTED, NULL,
                                         "a router has no /%V: a %V belongs "
                                         "to a shard, which is to be asked",
                                         &ep->name, &ep->name);
    }

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ep->flags & ALONE && ulcf->endpoint == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "/%V is no part of urlstore_api: it "
                                         "has a directive of its own, "
                                         "urlstore_%V", &ep->name, &ep->name);
    }

    rc = ngx_http_urlstore_origin(r, ep->writes);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_method(r, ep, &ctx->tail);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    us_tally_add(zone->tally, US_N_REQUESTS
                                  + (ep - ngx_http_urlstore_endpoints), 1);

    rc = ngx_http_urlstore_args(r, ep->args);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_urlstore_refresh(zone);

    rc = ngx_http_urlstore_begin(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (!(ep->flags & ALWAYS)) {
        rc = ngx_http_urlstore_shard_begin(r);

        if (rc != NGX_DECLINED) {
            return rc;
        }

    } else if (zone->cluster && zone->store) {

        /* by whatever map a router asks for them */

        ctx->tagged = (ngx_http_urlstore_header_in(r, "urlstore-map") != NULL);
    }

    if (!(ep->methods & NGX_HTTP_POST)) {

        /* it reads no body */

        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ctx->writes) {
        rc = ngx_http_urlstore_idem(r);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_urlstore_execute(r);
}


/* by the name of its directive or path */

const ngx_http_urlstore_endpoint_t *
ngx_http_urlstore_endpoint(ngx_str_t *name)
{
    const ngx_http_urlstore_endpoint_t  *ep;

    for (ep = ngx_http_urlstore_endpoints; ep->handler; ep++) {
        if (ep->name.len == name->len
            && ngx_strncmp(ep->name.data, name->data, name->len) == 0)
        {
            return ep;
        }
    }

    return NULL;
}


static const ngx_http_urlstore_endpoint_t *
ngx_http_urlstore_find(ngx_http_request_t *r, ngx_str_t *tail)
{
    u_char                               *p, *last;
    ngx_str_t                             name;
    ngx_http_urlstore_loc_conf_t         *ulcf;
    const ngx_http_urlstore_endpoint_t   *ep;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_rest(r, tail) != NGX_OK) {
        return NULL;
    }

    if (ulcf->endpoint) {
        ep = ulcf->endpoint;

    } else {
        last = tail->data + tail->len;
        p = ngx_strlchr(tail->data, last, '/');

        name.data = tail->data;
        name.len = (p ? p : last) - tail->data;

        ep = ngx_http_urlstore_endpoint(&name);

        tail->data += name.len + (p ? 1 : 0);
        tail->len = last - tail->data;

        if (p && tail->len == 0) {
            return NULL;
        }
    }

    /* of a regular expression, the last segment may be the endpoint's name */

    if (ep && ulcf->regex && !(ep->tail & r->method)) {
        tail->len = 0;
    }

    if (ep && !ep->tail && tail->len) {
        return NULL;
    }

    return ep;
}


/*
 * What follows the location in the URI; in a location by a regular expression,
 * the last segment.  NGX_DECLINED: "location /store" got /storehouse, or
 * /store/.
 */

static ngx_int_t
ngx_http_urlstore_rest(ngx_http_request_t *r, ngx_str_t *rest)
{
    u_char                        *p, *last;
    ngx_str_t                     *name;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    name = &ulcf->name;

    last = r->uri.data + r->uri.len;

    if (ulcf->regex) {
        for (p = last; p > r->uri.data && p[-1] != '/'; p--) { /* void */ }

        rest->data = p;
        rest->len = last - p;

        return rest->len ? NGX_OK : NGX_DECLINED;
    }

    p = r->uri.data + ngx_min(name->len, r->uri.len);

    if (p < last && (name->len == 0 || name->data[name->len - 1] != '/')) {

        /*
         * The page's links are relative: it is sent from /store to /store/,
         * which is the only path with a slash too many.
         */

        if (*p++ != '/' || (p == last && ulcf->endpoint)) {
            return NGX_DECLINED;
        }
    }

    rest->data = p;
    rest->len = last - p;

    return NGX_OK;
}


/* NGX_DECLINED: the endpoint takes it; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_method(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep, ngx_str_t *tail)
{
    u_char     *p;
    ngx_str_t   allow;
    ngx_uint_t  i, methods;
    u_char      buf[sizeof("GET, HEAD, POST, DELETE")];

    static const struct {
        ngx_uint_t   method;
        const char  *name;
    } names[] = {
        { NGX_HTTP_GET, "GET" },
        { NGX_HTTP_HEAD, "HEAD" },
        { NGX_HTTP_POST, "POST" },
        { NGX_HTTP_DELETE, "DELETE" }
    };

    methods = tail->len ? ep->tail : ep->methods;

    if (r->method & methods) {
        return NGX_DECLINED;
    }

    p = buf;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].method & methods) {
            p = ngx_sprintf(p, "%s%s", p == buf ? "" : ", ", names[i].name);
        }
    }

    allow.len = p - buf;
    allow.data = ngx_pnalloc(r->pool, allow.len);

    if (allow.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(allow.data, buf, allow.len);

    if (ngx_http_urlstore_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_ALLOWED, NULL,
                                     "the method is not allowed; /%V%s allows "
                                     "%V",
                                     &ep->name, tail->len ? "/..." : "",
                                     &allow);
}
