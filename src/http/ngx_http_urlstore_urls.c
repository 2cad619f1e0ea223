
/*
 * GET /urls: the store's URLs in id order, from a cursor; an export, and a
 * feed of new URLs.
 *
 *     ids   from ......... at ......... end (given when it began, on disk)
 *                          |
 *                 slice: at most 256 ids --> ngx_http_urlstore_stream()
 *
 * No lock is held between slices, and nothing is kept between requests but the
 * cursor that the client has.
 */


#include "ngx_http_urlstore_request.h"
#include "../us_text.h"


#define NGX_HTTP_URLSTORE_SLICE     256       /* ids, .2 ms */
#define NGX_HTTP_URLSTORE_EXAMINE   1000000   /* ids of one request */

/* the longest line: JSON, each byte of the URL escaped */
#define NGX_HTTP_URLSTORE_LINE      (us_json_quoted_max(US_URL_MAX) + 64)


typedef struct {
    uint64_t                        at;       /* the next id to look at */
    uint64_t                        end;
    uint64_t                        next;     /* if it ends at `end` */
    uint64_t                        left;     /* ids to examine */
    ngx_uint_t                      limit;    /* lines to answer */

    us_str_t                        site;     /* host[:port], without www. */
    ngx_str_t                       prefix;
    ngx_int_t                       mark;     /* -1: none */
    unsigned                        merge:1;  /* www.site is the same site */
    unsigned                        unmarked:1;
    unsigned                        new_sites:1;
    unsigned                        deleted:1;
    unsigned                        summary:1;
    unsigned                        begun:1;

    ngx_uint_t                      shown;
} ngx_http_urlstore_urls_t;


static ngx_int_t ngx_http_urlstore_urls_args(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls);
static ngx_int_t ngx_http_urlstore_urls_number(ngx_http_request_t *r,
    const char *name, uint64_t *n);
static ngx_int_t ngx_http_urlstore_urls_mark(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls);
static ngx_int_t ngx_http_urlstore_urls_site(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls);
static ngx_int_t ngx_http_urlstore_urls_no_sites(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_urls_produce(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out);
static u_char *ngx_http_urlstore_urls_one(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, u_char *p, uint64_t id);
static u_char *ngx_http_urlstore_urls_line(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, u_char *p, uint64_t id, us_str_t *url);
static ngx_uint_t ngx_http_urlstore_urls_of_site(
    ngx_http_urlstore_urls_t *urls, us_str_t *url);


ngx_int_t
ngx_http_urlstore_urls_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_urls_t  *urls;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    urls = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_urls_t));
    if (urls == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->data = urls;

    rc = ngx_http_urlstore_urls_args(r, urls);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, US_FORMAT_TEXT));

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 1024) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* a mark may be newer than its id */

    ctx->tops = (urls->mark == -1);
    ctx->absent = 1;

    return ngx_http_urlstore_stream(r, ngx_http_urlstore_urls_produce);
}


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_urls_args(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls)
{
    uint64_t                  n;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    n = 1000;

    if (ngx_http_urlstore_urls_number(r, "from", &urls->at) != NGX_OK
        || ngx_http_urlstore_urls_number(r, "limit", &n) != NGX_OK
        || n == 0)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "invalid \"from\" or \"limit\": an id "
                                         "and a number of lines are expected");
    }

    urls->limit = ngx_min(n, NGX_HTTP_URLSTORE_EXAMINE);
    urls->left = NGX_HTTP_URLSTORE_EXAMINE;
    urls->end = ngx_http_urlstore_promised_ids(ctx->zone);
    urls->next = ngx_max(urls->at, urls->end);

    urls->new_sites = ngx_http_urlstore_flag(r, "new_sites");

    if (urls->new_sites && ctx->zone->conf.lookup) {
        return ngx_http_urlstore_urls_no_sites(r);
    }

    urls->deleted = ngx_http_urlstore_flag(r, "deleted");
    urls->summary = ngx_http_urlstore_flag(r, "summary");

    if (ngx_http_urlstore_arg(r, "prefix", &urls->prefix) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_urls_mark(r, urls);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_urlstore_urls_site(r, urls);
}


static ngx_int_t
ngx_http_urlstore_urls_number(ngx_http_request_t *r, const char *name,
    uint64_t *n)
{
    ngx_str_t  value;

    switch (ngx_http_urlstore_arg(r, name, &value)) {

    case NGX_OK:
        return us_id_parse(ngx_http_urlstore_str(&value), n) == US_ID_BAD
               ? NGX_ERROR : NGX_OK;

    case NGX_DECLINED:
        return NGX_OK;

    default:
        return NGX_ERROR;
    }
}


static ngx_int_t
ngx_http_urlstore_urls_mark(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls)
{
    us_str_t                  name;
    ngx_str_t                 value;
    ngx_http_urlstore_ctx_t  *ctx;

    urls->mark = -1;

    switch (ngx_http_urlstore_arg(r, "mark", &value)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        return NGX_DECLINED;

    default:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    name.data = value.data;
    name.len = value.len;

    if (name.len && name.data[0] == '!') {
        urls->unmarked = 1;
        name.data++;
        name.len--;
    }

    urls->mark = us_store_mark_number(ctx->zone->store, name);

    if (urls->mark == -1) {
        return ngx_http_urlstore_mark_none(r, NGX_HTTP_BAD_REQUEST, name);
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_urlstore_urls_site(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls)
{
    int                       merge;
    ngx_int_t                 rc;
    ngx_str_t                 value;
    us_store_site_t           site;
    ngx_http_urlstore_ctx_t  *ctx;

    rc = ngx_http_urlstore_arg(r, "site", &value);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->zone->conf.lookup) {
        return ngx_http_urlstore_urls_no_sites(r);
    }

    rc = ngx_http_urlstore_site_key(r, &value, &urls->site, &merge);

    if (rc != NGX_OK) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "invalid \"site\": a host is "
                                         "expected");
    }

    urls->merge = merge;

    if (us_store_site(ctx->zone->store, urls->site, &site) != US_OK) {
        urls->at = urls->next;
        return NGX_DECLINED;
    }

    urls->at = ngx_max(urls->at, site.first);

    if (ctx->zone->conf.sites) {
        urls->end = ngx_min(urls->end, site.last + 1);
    }

    return NGX_DECLINED;
}


/* without an index every site would be unknown, and its list empty */

static ngx_int_t
ngx_http_urlstore_urls_no_sites(ngx_http_request_t *r)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "\"site\" is not allowed: a zone with "
                                     "mode=lookup keeps no sites");
}


/* one slice: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_urls_produce(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out)
{
    uint64_t                   last;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_urls_t  *urls;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    urls = ctx->data;

    if (!urls->begun) {
        urls->begun = 1;

        if (ctx->format == US_FORMAT_JSON
            && ngx_http_urlstore_out_printf(out, 16, "{\"results\":[")
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    last = urls->at + ngx_min(NGX_HTTP_URLSTORE_SLICE, urls->left);
    last = ngx_min(last, urls->end);

    for ( /* void */ ;
          urls->at < last && urls->shown < urls->limit
          && !ngx_http_urlstore_out_enough(out);
          urls->at++)
    {
        if (ngx_http_urlstore_out_room(out, NGX_HTTP_URLSTORE_LINE)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        urls->left--;
        out->pos = ngx_http_urlstore_urls_one(ctx, urls, out->pos, urls->at);
    }

    /* what the slice depends on: also on deletes, and marks, until now */

    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->top = ngx_max(ctx->top, urls->at);

    if (urls->at < urls->end && urls->left && urls->shown < urls->limit) {
        return NGX_AGAIN;
    }

    if (urls->at >= urls->end) {
        urls->at = urls->next;
    }

    if (ctx->format == US_FORMAT_JSON) {
        return ngx_http_urlstore_out_printf(out, 64, "],\"next\":%uL}\n",
                                            urls->at);
    }

    if (ctx->format == US_FORMAT_NDJSON) {
        return ngx_http_urlstore_out_printf(out, 64, "{\"next\":%uL}\n",
                                            urls->at);
    }

    if (urls->summary) {
        return ngx_http_urlstore_out_printf(out, 64, "# next=%uL\n",
                                            urls->at);
    }

    return NGX_OK;
}


/* the id's line, if the filters let it through */

static u_char *
ngx_http_urlstore_urls_one(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, u_char *p, uint64_t id)
{
    size_t              len;
    us_str_t            url;
    us_store_t         *store;
    us_store_status_t   status;
    u_char              buf[US_URL_MAX + 8];

    store = ctx->zone->store;

    if (urls->mark != -1
        && us_store_marked(store, urls->mark, id) == (int) urls->unmarked)
    {
        return p;
    }

    if (urls->new_sites && !us_store_first_of_site(store, id)) {
        return p;
    }

    status = us_store_get(store, id, buf, &len);

    if (status == US_DELETED && urls->deleted && !urls->site.len
        && !urls->prefix.len)
    {
        return ngx_http_urlstore_urls_line(ctx, urls, p, id, NULL);
    }

    if (status != US_OK) {
        return p;
    }

    url.data = buf;
    url.len = len;

    if (urls->prefix.len
        && (len < urls->prefix.len
            || ngx_memcmp(buf, urls->prefix.data, urls->prefix.len) != 0))
    {
        return p;
    }

    if (urls->site.len && !ngx_http_urlstore_urls_of_site(urls, &url)) {
        return p;
    }

    return ngx_http_urlstore_urls_line(ctx, urls, p, id, &url);
}


/* url is NULL if it was deleted */

static u_char *
ngx_http_urlstore_urls_line(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, u_char *p, uint64_t id, us_str_t *url)
{
    if (ctx->format == US_FORMAT_TEXT) {
        p = us_put_u64(p, id);
        *p++ = '\t';

        if (url) {
            p = ngx_cpymem(p, url->data, url->len);

        } else {
            *p++ = '-';
        }

    } else {
        if (urls->shown && ctx->format == US_FORMAT_JSON) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, "{\"id\":", 6);
        p = us_put_u64(p, id);
        p = ngx_cpymem(p, ",\"url\":", 7);
        p = url ? us_json_quote(p, *url)
                : ngx_cpymem(p, "null,\"status\":\"deleted\"", 23);
        *p++ = '}';
    }

    if (ctx->format != US_FORMAT_JSON) {
        *p++ = '\n';
    }

    urls->shown++;

    return p;
}


static ngx_uint_t
ngx_http_urlstore_urls_of_site(ngx_http_urlstore_urls_t *urls, us_str_t *url)
{
    us_store_item_t  item;

    item.url = *url;
    item.merge = urls->merge;

    us_store_item_split(&item);

    return item.rest.len > urls->site.len
           && ngx_memcmp(item.rest.data, urls->site.data, urls->site.len) == 0
           && item.rest.data[urls->site.len] == '/';
}
