
/*
 * GET /urls: the store's URLs in id order, from a cursor; an export, and a
 * feed of new URLs.
 *
 *     ids   from ......... at ......... end (given when it began, on disk)
 *                          |
 *                 slice: at most 2,048 ids and one buffer --> client
 *
 * One slice is produced at a time, between two turns of the event loop, and
 * none while all buffers wait for the client.  No lock is held, and nothing
 * is remembered between requests but the cursor that the client keeps.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


#define NGX_HTTP_URLSTORE_SLICE     2048      /* ids, 1 to 2 ms */
#define NGX_HTTP_URLSTORE_EXAMINE   1000000   /* ids of one request */
#define NGX_HTTP_URLSTORE_BUFS      4
#define NGX_HTTP_URLSTORE_BUF       (32 * 1024)

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
    unsigned                        done:1;

    ngx_uint_t                      shown;
    ngx_uint_t                      nbufs;
    ngx_chain_t                    *free;
    ngx_chain_t                    *busy;
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
static ngx_int_t ngx_http_urlstore_urls_start(ngx_http_request_t *r);
static void ngx_http_urlstore_urls_write(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_urls_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_urls_header(ngx_http_request_t *r,
    ngx_buf_t *b);
static ngx_chain_t *ngx_http_urlstore_urls_buf(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls);
static void ngx_http_urlstore_urls_slice(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, ngx_buf_t *b);
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

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT));

    ctx->lsn = us_store_published(ctx->zone->store);

    /* no id from `end` on is told, and no mark waits alone */

    ctx->tops = (urls->mark == -1);
    ctx->absent = 1;

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_urls_start);
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
                                         "\"from\" is an id, and \"limit\" "
                                         "a number of lines");
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
        return ngx_http_urlstore_id(value.data, value.len, n) == NGX_ERROR
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
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the zone has no mark \"%*s\"",
                                         ngx_min(name.len, US_STORE_MARK_LEN),
                                         name.data);
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
                                         "\"site\" is a host");
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
                                     "a zone with mode=lookup knows no sites");
}


static ngx_int_t
ngx_http_urlstore_urls_start(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->replied = 1;

    if (r->method == NGX_HTTP_HEAD) {
        return ngx_http_urlstore_urls_header(r, NULL);
    }

    rc = ngx_http_urlstore_urls_run(r);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_urlstore_urls_write;
    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_urlstore_urls_write(ngx_http_request_t *r)
{
    ngx_int_t     rc;
    ngx_event_t  *wev;

    wev = r->connection->write;

    if (wev->timedout) {
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    rc = ngx_http_urlstore_urls_run(r);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * One slice.  NGX_AGAIN: the write event, posted or awaited, goes on; else
 * the request is done.
 */

static ngx_int_t
ngx_http_urlstore_urls_run(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_chain_t               *cl;
    ngx_event_t               *wev;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_urls_t  *urls;
    ngx_http_core_loc_conf_t  *clcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    urls = ctx->data;
    wev = r->connection->write;

    /* mode=lookup, reloaded: nobody must take the rest for the same data's */

    if (ngx_http_urlstore_overtaken(ctx)) {
        return NGX_ERROR;
    }

    /* takes back what has been sent */

    cl = NULL;
    ngx_chain_update_chains(r->pool, &urls->free, &urls->busy, &cl,
                            (ngx_buf_tag_t) &ngx_http_urlstore_module);

    cl = ngx_http_urlstore_urls_buf(r, urls);

    if (cl == NULL) {
        if (urls->nbufs < NGX_HTTP_URLSTORE_BUFS) {
            return NGX_ERROR;
        }

        /* the client is slower */

        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
        ngx_add_timer(wev, clcf->send_timeout);

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            return NGX_ERROR;
        }

        return NGX_AGAIN;
    }

    if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    ngx_http_urlstore_urls_slice(ctx, urls, cl->buf);

    if (!r->header_sent) {
        rc = ngx_http_urlstore_urls_header(r, cl->buf);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return rc;
        }
    }

    if (cl->buf->pos == cl->buf->last && !urls->done) {

        /* nothing was found: the buffer goes back */

        cl->next = urls->free;
        urls->free = cl;

    } else {
        cl->buf->last_buf = urls->done && r == r->main;
        cl->buf->last_in_chain = urls->done;
        cl->buf->flush = !urls->done;

        /*
         * Without data it must not call itself a buffer in memory; and what
         * ends a subrequest is special by nothing else.
         */

        cl->buf->temporary = (cl->buf->pos != cl->buf->last);
        cl->buf->sync = !cl->buf->temporary;

        rc = ngx_http_output_filter(r, cl);

        ngx_chain_update_chains(r->pool, &urls->free, &urls->busy, &cl,
                                (ngx_buf_tag_t) &ngx_http_urlstore_module);

        if (rc == NGX_ERROR || urls->done) {
            return rc;
        }
    }

    /* others first */

    ngx_post_event(wev, &ngx_posted_next_events);

    return NGX_AGAIN;
}


/* b is the first slice; if it is all, its length is known */

static ngx_int_t
ngx_http_urlstore_urls_header(ngx_http_request_t *r, ngx_buf_t *b)
{
    ngx_str_t                  value;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_urls_t  *urls;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    urls = ctx->data;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_type = ctx->type;
    r->headers_out.content_type_len = ctx->type.len;

    if (b && urls->done) {
        r->headers_out.content_length_n = b->last - b->pos;
    }

    ngx_str_set(&value, "no-store");

    if (ngx_http_urlstore_header(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_send_header(r);
}


/* NULL: all are on their way to the client, or there is no memory */

static ngx_chain_t *
ngx_http_urlstore_urls_buf(ngx_http_request_t *r,
    ngx_http_urlstore_urls_t *urls)
{
    u_char       *start;
    ngx_chain_t  *cl;

    if (urls->free == NULL && urls->nbufs == NGX_HTTP_URLSTORE_BUFS) {
        return NULL;
    }

    cl = ngx_chain_get_free_buf(r->pool, &urls->free);
    if (cl == NULL) {
        return NULL;
    }

    start = cl->buf->start;

    if (start == NULL) {
        start = ngx_palloc(r->pool, NGX_HTTP_URLSTORE_BUF
                                    + NGX_HTTP_URLSTORE_LINE);
        if (start == NULL) {
            return NULL;
        }

        urls->nbufs++;
    }

    ngx_memzero(cl->buf, sizeof(ngx_buf_t));

    cl->buf->start = start;
    cl->buf->pos = start;
    cl->buf->last = start;
    cl->buf->end = start + NGX_HTTP_URLSTORE_BUF + NGX_HTTP_URLSTORE_LINE;
    cl->buf->temporary = 1;
    cl->buf->tag = (ngx_buf_tag_t) &ngx_http_urlstore_module;

    return cl;
}


static void
ngx_http_urlstore_urls_slice(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, ngx_buf_t *b)
{
    u_char             *p;
    size_t              len;
    uint64_t            id, last;
    us_str_t            url;
    us_store_t         *store;
    us_store_status_t   status;
    u_char              buf[US_URL_MAX + 8];

    store = ctx->zone->store;
    p = b->pos;

    if (!urls->begun) {
        urls->begun = 1;

        if (ctx->format == NGX_HTTP_URLSTORE_JSON) {
            p = ngx_cpymem(p, "{\"results\":[", 12);
        }
    }

    last = urls->at + NGX_HTTP_URLSTORE_SLICE;
    url.data = buf;

    while (urls->at < urls->end && urls->at < last && urls->left
           && urls->shown < urls->limit
           && p < b->start + NGX_HTTP_URLSTORE_BUF)
    {
        id = urls->at++;
        urls->left--;

        if (urls->mark != -1
            && us_store_marked(store, urls->mark, id) == (int) urls->unmarked)
        {
            continue;
        }

        if (urls->new_sites && !us_store_first_of_site(store, id)) {
            continue;
        }

        status = us_store_get(store, id, buf, &len);

        if (status != US_OK) {

            if (status == US_DELETED && urls->deleted && !urls->site.len
                && !urls->prefix.len)
            {
                p = ngx_http_urlstore_urls_line(ctx, urls, p, id, NULL);
            }

            continue;
        }

        url.len = len;

        if ((urls->prefix.len
             && (len < urls->prefix.len
                 || ngx_memcmp(buf, urls->prefix.data, urls->prefix.len) != 0))
            || (urls->site.len && !ngx_http_urlstore_urls_of_site(urls, &url)))
        {
            continue;
        }

        p = ngx_http_urlstore_urls_line(ctx, urls, p, id, &url);
    }

    if (urls->at >= urls->end || urls->left == 0
        || urls->shown == urls->limit)
    {
        urls->done = 1;

        if (urls->at >= urls->end) {
            urls->at = urls->next;
        }

        if (ctx->format == NGX_HTTP_URLSTORE_JSON) {
            p = ngx_sprintf(p, "],\"next\":%uL}\n", urls->at);

        } else if (ctx->format == NGX_HTTP_URLSTORE_NDJSON) {
            p = ngx_sprintf(p, "{\"next\":%uL}\n", urls->at);

        } else if (urls->summary) {
            p = ngx_sprintf(p, "# next=%uL\n", urls->at);
        }
    }

    b->last = p;
}


/* url is NULL if it was deleted */

static u_char *
ngx_http_urlstore_urls_line(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_urls_t *urls, u_char *p, uint64_t id, us_str_t *url)
{
    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        p = ngx_http_urlstore_u64(p, id);
        *p++ = '\t';

        if (url) {
            p = ngx_cpymem(p, url->data, url->len);

        } else {
            *p++ = '-';
        }

    } else {
        if (urls->shown && ctx->format == NGX_HTTP_URLSTORE_JSON) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, "{\"id\":", 6);
        p = ngx_http_urlstore_u64(p, id);
        p = ngx_cpymem(p, ",\"url\":", 7);
        p = url ? us_json_quote(p, *url)
                : ngx_cpymem(p, "null,\"status\":\"deleted\"", 23);
        *p++ = '}';
    }

    if (ctx->format != NGX_HTTP_URLSTORE_JSON) {
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
