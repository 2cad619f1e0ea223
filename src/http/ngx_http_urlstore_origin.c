
/*
 * Requests that a browser sends for the page of another site.
 *
 *     urlstore_allow_origin https://ui.example.com ...;   or *, or off
 *
 * A page of any site can make its visitor's browser send a POST to a service
 * on localhost or in an intranet, without asking first.  So a request that
 * changes the store is refused if its Origin is neither the server's own nor
 * allowed.  For an allowed one, preflights are answered, and its pages may read
 * the replies (Fetch Standard, "CORS protocol").
 */


#include "ngx_http_urlstore_request.h"
#include "../url/us_profile.h"


char *
ngx_http_urlstore_allow_origin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    ngx_str_t   *value, *origin;
    ngx_uint_t   i;

    if (ulcf->origins != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        ulcf->origins = NULL;
        return NGX_CONF_OK;
    }

    ulcf->origins = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                     sizeof(ngx_str_t));
    if (ulcf->origins == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        if (!us_origin_valid(ngx_http_urlstore_str(&value[i]))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid origin \"%V\" of "
                               "urlstore_allow_origin: SCHEME://HOST[:PORT], "
                               "\"*\" or \"off\" is expected", &value[i]);
            return NGX_CONF_ERROR;
        }

        /* there is room for all of them */

        origin = ngx_array_push(ulcf->origins);
        *origin = value[i];
    }

    return NGX_CONF_OK;
}


/* nginx keeps them for the time of the configuration only */

ngx_int_t
ngx_http_urlstore_origin_init(ngx_conf_t *cf)
{
    ngx_uint_t                       s;
    ngx_array_t                     *names;
    ngx_http_core_srv_conf_t       **cscf;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_urlstore_loc_conf_t    *ulcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    cscf = cmcf->servers.elts;

    for (s = 0; s < cmcf->servers.nelts; s++) {
        ulcf = cscf[s]->ctx->loc_conf[ngx_http_urlstore_module.ctx_index];
        names = &cscf[s]->server_names;

        ulcf->names = *names;
        ulcf->names.elts = ngx_pnalloc(cf->pool, names->nelts * names->size);
        if (ulcf->names.elts == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(ulcf->names.elts, names->elts, names->nelts * names->size);
    }

    return NGX_OK;
}


/* whether the server has the name, which is in lower case */

static ngx_uint_t
ngx_http_urlstore_origin_named(ngx_http_request_t *r, ngx_str_t *name)
{
    u_char                        *last, *star;
    us_str_t                       own;
    ngx_uint_t                     i;
    ngx_http_server_name_t        *sn;
    ngx_http_core_srv_conf_t      *cscf;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    ulcf = cscf->ctx->loc_conf[ngx_http_urlstore_module.ctx_index];

    sn = ulcf->names.elts;
    last = name->data + name->len;

    for (i = 0; i < ulcf->names.nelts; i++) {

#if (NGX_PCRE)
        if (sn[i].regex) {
            if (ngx_regex_exec(sn[i].regex->regex, name, NULL, 0) >= 0) {
                return 1;
            }

            continue;
        }
#endif

        own = ngx_http_urlstore_str(&sn[i].name);
        star = ngx_strlchr(sn[i].name.data + 1, sn[i].name.data + own.len, '*');

        /* nginx knows one star or dot in front, or one star at the end */

        if (star && (*own.data == '*' || *own.data == '.'
                     || star + 1 < own.data + own.len))
        {
            continue;
        }

        /* .example.com is example.com and *.example.com */

        if (own.len && *own.data == '.') {

            if (name->len >= own.len
                && ngx_memcmp(last - own.len, own.data, own.len) == 0)
            {
                return 1;
            }

            own.data++;
            own.len--;
        }

        if (us_glob(own, ngx_http_urlstore_str(name))) {
            return 1;
        }
    }

    return 0;
}


/*
 * Origin and Host are both the client's, and equal for a page of any name that
 * its owner leads to our address.  So the name must be one that the server has
 * in server_name, or none that an owner could lead anywhere: localhost, or an
 * address.
 */

static ngx_uint_t
ngx_http_urlstore_origin_own(ngx_http_request_t *r, ngx_str_t *origin)
{
    us_str_t    host;
    ngx_str_t  *name;

    name = &r->headers_in.server;

    if (r->headers_in.host) {
        host = ngx_http_urlstore_str(&r->headers_in.host->value);

    } else {

        /* :authority of HTTP/3 */

        host.data = r->host_start;
        host.len = r->host_start ? r->host_end - r->host_start : 0;
    }

    return us_origin_is_host(ngx_http_urlstore_str(origin), host)
           && name->len
           && (name->data[0] == '['
               || ngx_inet_addr(name->data, name->len) != INADDR_NONE
               || (name->len == 9
                   && ngx_strncmp(name->data, "localhost", 9) == 0)
               || ngx_http_urlstore_origin_named(r, name));
}


ngx_int_t
ngx_http_urlstore_origin(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t writes)
{
    ngx_int_t            rc;
    ngx_str_t           *origin;
    ngx_uint_t           preflight;
    ngx_http_request_t  *r;

    r = ctx->r;

    origin = ngx_http_urlstore_header_in(r, "origin");

    if (origin == NULL) {
        return NGX_DECLINED;
    }

    preflight = r->method == NGX_HTTP_OPTIONS
                && ngx_http_urlstore_header_in(r,
                                              "access-control-request-method");

    if (!preflight && !(r->method & writes)) {
        return NGX_DECLINED;
    }

    if (!ngx_http_urlstore_origin_own(r, origin)
        && !ngx_http_urlstore_origin_allowed(ctx, origin))
    {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_FORBIDDEN, NULL,
                                         preflight
                                         ? "urlstore_allow_origin does not "
                                           "name the origin \"%*s\""
                                         : "the origin \"%*s\" may not change "
                                           "the store: it is not this "
                                           "server's, and "
                                           "urlstore_allow_origin does not "
                                           "name it",
                                         ngx_min(origin->len, 100),
                                         origin->data);
    }

    if (!preflight) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_no_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_urlstore_header_text(ctx, "Access-Control-Allow-Methods",
                                  "GET, HEAD, PUT, POST, DELETE");
    ngx_http_urlstore_header_text(ctx, "Access-Control-Allow-Headers",
                                  "Accept, Authorization, Content-Encoding, "
                                  "Content-Type, Idempotency-Key");
    ngx_http_urlstore_header_text(ctx, "Access-Control-Max-Age", "86400");

    ctx->status = NGX_HTTP_NO_CONTENT;

    return ngx_http_urlstore_send(ctx);
}
