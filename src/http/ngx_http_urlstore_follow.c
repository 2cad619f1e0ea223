
/*
 * follow=: a zone that is a replica of another server's (life/us_replica.h).
 *
 * The primary's name is resolved when the configuration is read, as of
 * proxy_pass.
 */


#include "ngx_http_urlstore_persist.h"
#include "ngx_http_urlstore_request.h"


static ngx_int_t ngx_http_urlstore_follow_addrs(ngx_conf_t *cf, ngx_url_t *u,
    us_primary_t *primary);
static const char *ngx_http_urlstore_follow_excludes(
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_follow_member(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra, ngx_str_t *member);


ngx_int_t
ngx_http_urlstore_opt_follow(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char                       *path;
    ngx_url_t                     u;
    us_primary_t                 *primary;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len <= 7
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

    if (primary == NULL || path == NULL) {
        return NGX_ERROR;
    }

    /* without slashes at the end */

    (void) ngx_cpystrn(path, u.uri.data, u.uri.len + 1);

    while (u.uri.len && path[u.uri.len - 1] == '/') {
        path[--u.uri.len] = '\0';
    }

    primary->name = (char *) value->data;
    primary->path = (char *) path;

    if (ngx_http_urlstore_follow_addrs(cf, &u, primary) != NGX_OK) {
        return NGX_ERROR;
    }

    p->life.conf.follow = primary;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_follow_addrs(ngx_conf_t *cf, ngx_url_t *u,
    us_primary_t *primary)
{
    u_char                  *host;
    ngx_uint_t               i;
    socklen_t               *lens;
    const struct sockaddr  **addrs;

    host = ngx_pnalloc(cf->pool, u->host.len + sizeof("[]:65535"));
    addrs = ngx_pcalloc(cf->pool, u->naddrs * sizeof(struct sockaddr *));
    lens = ngx_pcalloc(cf->pool, u->naddrs * sizeof(socklen_t));

    if (host == NULL || addrs == NULL || lens == NULL) {
        return NGX_ERROR;
    }

    /* the brackets of an IPv6 address are a part of u->host */

    if (u->no_port) {
        (void) ngx_sprintf(host, "%V%Z", &u->host);

    } else {
        (void) ngx_sprintf(host, "%V:%ui%Z", &u->host, (ngx_uint_t) u->port);
    }

    for (i = 0; i < u->naddrs; i++) {
        addrs[i] = u->addrs[i].sockaddr;
        lens[i] = u->addrs[i].socklen;
    }

    primary->host = (char *) host;
    primary->addrs = addrs;
    primary->lens = lens;
    primary->naddrs = u->naddrs;

    return NGX_OK;
}


/* after all options: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_follow_conf(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
    const char  *other;

    if (zone->persist == NULL || zone->persist->life.conf.follow == NULL) {
        return NGX_OK;
    }

    other = ngx_http_urlstore_follow_excludes(zone);

    if (other == NULL) {
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "urlstore_zone \"%V\": a zone with \"follow\" has no "
                       "\"%s\": it has what its primary has", &zone->name,
                       other);
    return NGX_ERROR;
}


static const char *
ngx_http_urlstore_follow_excludes(ngx_http_urlstore_zone_t *zone)
{
    return zone->conf.nmarks ? "marks"
           : zone->conf.revisit ? "revisit"
           : zone->conf.lookup ? "mode=lookup" : NULL;
}


/* what is wrong, and who has what the client wants */

ngx_int_t
ngx_http_urlstore_follow_problem(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_uint_t status, const char *extra,
    const char *detail)
{
    ngx_str_t  member;

    if (ngx_http_urlstore_follow_member(r, zone, extra, &member) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, status, (char *) member.data,
                                     "%s; its primary is %s", detail,
                                     zone->persist->life.conf.follow->name);
}


/* members of a problem document: extra, which may be NULL, and "primary" */

static ngx_int_t
ngx_http_urlstore_follow_member(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra, ngx_str_t *member)
{
    u_char    *p;
    size_t     len;
    us_str_t   name;

    name = us_str_of(zone->persist->life.conf.follow->name);
    len = extra ? ngx_strlen(extra) : 0;

    member->data = ngx_pnalloc(r->pool, len + us_json_quoted_max(name.len)
                                        + sizeof(",\"primary\":"));
    if (member->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(member->data, extra ? extra : "", len);

    if (len) {
        *p++ = ',';
    }

    p = ngx_cpymem(p, "\"primary\":", sizeof("\"primary\":") - 1);
    p = us_json_quote_bytes(p, name);
    *p = '\0';

    member->len = p - member->data;

    return NGX_OK;
}
