
/*
 * id -> URL, for many ids.
 *
 *     GET /url/7,9        each with its status
 *     POST /url           the same, by a body of ids
 *
 *     path, or body as it arrives --> list "7,9,..." --> 64 ids a slice
 *
 * Only the ids are kept until the reply begins, as they were written.  Their
 * URLs are looked up slice by slice, as the client takes the reply, so that a
 * request of some kilobytes never holds more than that and one slice.
 */


#include "ngx_http_urlstore.h"


#define NGX_HTTP_URLSTORE_IDS      64         /* of a slice, 50 us */

/* digits of an id that is echoed; none above 2^52 is ever given */
#define NGX_HTTP_URLSTORE_DIGITS   32
#define NGX_HTTP_URLSTORE_NO_ID    "an id is a decimal number, without a "    \
                                   "leading zero and of at most 32 digits"

/* the longest answer: JSON, each byte of the URL escaped */
#define NGX_HTTP_URLSTORE_ID_LINE  (us_json_quoted_max(US_URL_MAX) + 128)


typedef struct {
    ngx_http_urlstore_out_t         list;
    ngx_uint_t                      n;        /* of the body */
    ngx_chain_t                    *at;       /* of the list: not shown yet */
    ngx_uint_t                      shown;
    unsigned                        begun:1;
} ngx_http_urlstore_ids_t;


static ngx_http_urlstore_ids_t *ngx_http_urlstore_ids_create(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_ids_check(const u_char *p, size_t len);
static ngx_int_t ngx_http_urlstore_ids_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_ids_item(ngx_http_request_t *r,
    const us_input_item_t *in);
static ngx_int_t ngx_http_urlstore_ids_produce(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out);
static ngx_int_t ngx_http_urlstore_ids_one(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out, us_str_t text);
static void ngx_http_urlstore_ids_line(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out, us_str_t id, us_str_t url,
    us_store_status_t status);


static ngx_http_urlstore_ids_t *
ngx_http_urlstore_ids_create(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;
    ngx_http_urlstore_ids_t  *ids;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ids = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_ids_t));

    if (ids == NULL
        || ngx_http_urlstore_out_init(&ctx->out, r->pool, 1024) != NGX_OK
        || ngx_http_urlstore_out_init(&ids->list, r->pool, 1024) != NGX_OK)
    {
        return NULL;
    }

    ctx->data = ids;

    return ids;
}


/* GET /url/7,9 */

ngx_int_t
ngx_http_urlstore_ids_get(ngx_http_request_t *r)
{
    u_char                        *p, *last, *comma;
    ngx_int_t                      rc;
    ngx_buf_t                     *b;
    ngx_uint_t                     n;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_ids_t       *ids;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    n = 0;
    last = ctx->tail.data + ctx->tail.len;

    for (p = ctx->tail.data; p <= last; p = comma + 1) {

        comma = ngx_strlchr(p, last, ',');
        if (comma == NULL) {
            comma = last;
        }

        if (n++ == ulcf->max_batch) {
            return ngx_http_urlstore_problem(r,
                                     NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, NULL,
                                     "a request has at most %ui items "
                                     "(urlstore_max_batch)",
                                     ulcf->max_batch);
        }

        if (ngx_http_urlstore_ids_check(p, comma - p) != NGX_OK) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                             NGX_HTTP_URLSTORE_NO_ID);
        }
    }

    ids = ngx_http_urlstore_ids_create(r);
    if (ids == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT));

    /* the path is the list, where it is */

    b = ngx_calloc_buf(r->pool);
    ids->at = ngx_alloc_chain_link(r->pool);

    if (b == NULL || ids->at == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->pos = ctx->tail.data;
    b->last = last;
    b->memory = 1;

    ids->at->buf = b;
    ids->at->next = NULL;

    return ngx_http_urlstore_stream(r, ngx_http_urlstore_ids_produce);
}


static ngx_int_t
ngx_http_urlstore_ids_check(const u_char *p, size_t len)
{
    uint64_t  id;

    return len <= NGX_HTTP_URLSTORE_DIGITS
           && ngx_http_urlstore_id(p, len, &id) != NGX_ERROR
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_urlstore_ids_post(ngx_http_request_t *r)
{
    if (ngx_http_urlstore_ids_create(r) == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_body(r, NGX_HTTP_URLSTORE_ONLY_IDS,
                                  ngx_http_urlstore_ids_run);
}


/* of the body: see ngx_http_urlstore_body() */

static ngx_int_t
ngx_http_urlstore_ids_run(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    us_input_item_t           item;
    ngx_http_urlstore_ctx_t  *ctx;
    ngx_http_urlstore_ids_t  *ids;
    u_char                    members[64];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ids = ctx->data;

    do {
        rc = ngx_http_urlstore_body_item(r, &item);

        if (rc != NGX_OK) {
            break;
        }

        rc = ngx_http_urlstore_ids_item(r, &item);

    } while (rc == NGX_OK);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc != NGX_DONE && ctx->fault.len) {
        ngx_sprintf(members, "\"processed\":%ui%Z", ids->n);

        return ngx_http_urlstore_problem(r, rc, (char *) members, "%V",
                                         &ctx->fault);
    }

    if (rc != NGX_DONE) {
        return rc;
    }

    ngx_http_urlstore_type(ctx, ngx_http_urlstore_accept(r,
                                      ngx_http_urlstore_body_format(ctx)));

    ids->at = ngx_http_urlstore_out_take(&ids->list, 0);

    return ngx_http_urlstore_stream(r, ngx_http_urlstore_ids_produce);
}


static ngx_int_t
ngx_http_urlstore_ids_item(ngx_http_request_t *r, const us_input_item_t *in)
{
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_ids_t       *ids;
    ngx_http_urlstore_out_t       *list;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    ids = ctx->data;
    list = &ids->list;

    if (ids->n == ulcf->max_batch) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "a request has at most %ui items "
                                       "(urlstore_max_batch)",
                                       ulcf->max_batch);
    }

    if ((in->kind != US_INPUT_URL && in->kind != US_INPUT_NUMBER)
        || ngx_http_urlstore_ids_check(in->text.data, in->text.len) != NGX_OK)
    {
        return ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST,
                                       NGX_HTTP_URLSTORE_NO_ID);
    }

    if (ngx_http_urlstore_out_room(list, in->text.len + 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    list->pos = ngx_cpymem(list->pos, in->text.data, in->text.len);
    *list->pos++ = ',';

    ids->n++;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_ids_produce(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out)
{
    us_str_t                  text;
    ngx_buf_t                *b;
    ngx_uint_t                i;
    const u_char             *comma;
    ngx_http_urlstore_ctx_t  *ctx;
    ngx_http_urlstore_ids_t  *ids;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ids = ctx->data;

    if (!ids->begun) {
        ids->begun = 1;

        if (ctx->format == NGX_HTTP_URLSTORE_JSON
            && ngx_http_urlstore_out_printf(out, 16, "{\"results\":[")
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0;
         i < NGX_HTTP_URLSTORE_IDS && ids->at
         && !ngx_http_urlstore_out_enough(out);
         i++)
    {
        b = ids->at->buf;

        comma = memchr(b->pos, ',', b->last - b->pos);

        text.data = b->pos;
        text.len = (comma ? comma : b->last) - b->pos;

        if (ngx_http_urlstore_ids_one(ctx, out, text) != NGX_OK) {
            return NGX_ERROR;
        }

        b->pos += text.len + (comma ? 1 : 0);

        if (b->pos == b->last) {
            ids->at = ids->at->next;
        }
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    if (ids->at) {
        return NGX_AGAIN;
    }

    return ctx->format == NGX_HTTP_URLSTORE_JSON
           ? ngx_http_urlstore_out_printf(out, 4, "]}\n") : NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_ids_one(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out, us_str_t text)
{
    size_t              len;
    uint64_t            id;
    us_store_status_t   status;
    u_char              buf[US_URL_MAX + 8];

    if (ngx_http_urlstore_out_room(out, NGX_HTTP_URLSTORE_ID_LINE) != NGX_OK) {
        return NGX_ERROR;
    }

    status = US_UNKNOWN;
    len = 0;

    if (ngx_http_urlstore_id(text.data, text.len, &id) == NGX_OK) {
        status = us_store_get(ctx->zone->store, id, buf, &len);
    }

    ctx->tops = 1;

    if (status == US_UNKNOWN) {
        ctx->negative = 1;
        ctx->absent = 1;

    } else {
        ctx->absent |= (status == US_DELETED);
        ctx->top = ngx_max(ctx->top, id + 1);
    }

    ngx_http_urlstore_ids_line(ctx, out, text, (us_str_t) { len, buf },
                               status);

    return NGX_OK;
}


/* url is there for US_OK only */

static void
ngx_http_urlstore_ids_line(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out, us_str_t id, us_str_t url,
    us_store_status_t status)
{
    u_char                   *p;
    const char               *name;
    ngx_http_urlstore_ids_t  *ids;

    ids = ctx->data;
    p = out->pos;

    name = (status == US_OK) ? "ok"
           : (status == US_DELETED) ? "deleted"
           : (status == US_DAMAGED) ? "damaged" : "unknown";

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        p = ngx_cpymem(p, id.data, id.len);
        *p++ = '\t';

        if (status == US_OK) {
            p = ngx_cpymem(p, url.data, url.len);

        } else {
            p = ngx_sprintf(p, "-\t%s", name);
        }

        *p++ = '\n';
        out->pos = p;

        return;
    }

    if (ids->shown++ && ctx->format == NGX_HTTP_URLSTORE_JSON) {
        *p++ = ',';
    }

    p = ngx_cpymem(p, "{\"id\":", 6);
    p = ngx_cpymem(p, id.data, id.len);
    p = ngx_cpymem(p, ",\"url\":", 7);
    p = (status == US_OK) ? us_json_quote(p, url) : ngx_cpymem(p, "null", 4);

    out->pos = ngx_sprintf(p, ",\"status\":\"%s\"}%s", name,
                           ctx->format == NGX_HTTP_URLSTORE_JSON ? "" : "\n");
}
