
/*
 * id -> URL.
 *
 *     GET /url/7            the URL, cacheable; ?redirect=1: 302 to it
 *     DELETE /url/7         forgets it
 *     GET /url/7,9          many, each with its status
 *     POST /url             many, by a body of ids
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


static ngx_int_t ngx_http_urlstore_url_one(ngx_http_request_t *r,
    uint64_t id, ngx_int_t known);
static ngx_int_t ngx_http_urlstore_url_found(ngx_http_request_t *r,
    uint64_t id);
static ngx_int_t ngx_http_urlstore_url_cache(ngx_http_request_t *r,
    uint64_t id);
static ngx_int_t ngx_http_urlstore_url_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_delete(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_missing(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_gone(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_list(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_post(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_data(ngx_http_request_t *r, u_char *p,
    size_t len);
static ngx_int_t ngx_http_urlstore_url_pause(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_url_end(ngx_http_request_t *r,
    ngx_int_t rc);
static int ngx_http_urlstore_url_item(void *data, const us_input_item_t *in);
static ngx_int_t ngx_http_urlstore_url_begin(ngx_http_request_t *r,
    ngx_http_urlstore_format_t preset);
static ngx_int_t ngx_http_urlstore_url_answer(ngx_http_request_t *r,
    const u_char *text, size_t len);
static ngx_int_t ngx_http_urlstore_url_line(ngx_http_urlstore_ctx_t *ctx,
    us_str_t id, us_str_t url, us_store_status_t status);
static ngx_int_t ngx_http_urlstore_url_finish(ngx_http_request_t *r);
static void ngx_http_urlstore_url_cleanup(void *data);


ngx_int_t
ngx_http_urlstore_url_handler(ngx_http_request_t *r)
{
    uint64_t                  id;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (r->method == NGX_HTTP_POST) {
        return ngx_http_urlstore_url_post(r);
    }

    if (r->method != NGX_HTTP_DELETE
        && ngx_strlchr(ctx->tail.data, ctx->tail.data + ctx->tail.len, ','))
    {
        return ngx_http_urlstore_url_list(r);
    }

    rc = ngx_http_urlstore_id(ctx->tail.data, ctx->tail.len, &id);

    if (rc == NGX_ERROR) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "an id is a decimal number");
    }

    if (rc == NGX_OK) {
        ctx->id = id;
    }

    if (r->method == NGX_HTTP_DELETE) {

        if (rc == NGX_DECLINED) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                             "no such id was given yet");
        }

        return ngx_http_urlstore_url_delete(r);
    }

    return ngx_http_urlstore_url_one(r, id, rc);
}


/* known: NGX_DECLINED if the id is too large to have been given */

static ngx_int_t
ngx_http_urlstore_url_one(ngx_http_request_t *r, uint64_t id, ngx_int_t known)
{
    size_t                    len;
    ngx_int_t                 rc;
    us_store_status_t         status;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    buf[US_URL_MAX + 8];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    status = US_UNKNOWN;
    len = 0;

    if (known == NGX_OK) {
        status = us_store_get(ctx->zone->store, id, buf, &len);
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    if (status == US_DELETED) {
        ngx_str_set(&ctx->status_name, "deleted");

        ctx->tops = 1;
        ctx->top = id + 1;
        ctx->absent = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_gone);
    }

    if (status == US_DAMAGED) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "urlstore_zone \"%V\": the record of id %uL is damaged",
                      &ctx->zone->name, id);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (status != US_OK) {
        ngx_str_set(&ctx->status_name, "unknown");

        ctx->negative = 1;
        ctx->absent = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_missing);
    }

    ngx_str_set(&ctx->status_name, "seen");

    ctx->tops = 1;
    ctx->top = id + 1;

    ctx->url.data = ngx_pnalloc(r->pool, len);
    if (ctx->url.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(ctx->url.data, buf, len);
    ctx->url.len = len;

    return ngx_http_urlstore_url_found(r, id);
}


/* ctx->url is the URL of the id */

static ngx_int_t
ngx_http_urlstore_url_found(ngx_http_request_t *r, uint64_t id)
{
    us_str_t                  url;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    url.data = ctx->url.data;
    url.len = ctx->url.len;

    if (ngx_http_urlstore_url_cache(r, id) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool,
                                   us_json_quoted_max(url.len) + 64)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_flag(r, "redirect")) {
        return ngx_http_urlstore_url_redirect(r);
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT));

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        ctx->out.pos = ngx_cpymem(ctx->out.pos, url.data, url.len);

    } else {
        ctx->out.pos = ngx_sprintf(ctx->out.pos, "{\"id\":%uL,\"url\":", id);
        ctx->out.pos = us_json_quote(ctx->out.pos, url);
        *ctx->out.pos++ = '}';
    }

    *ctx->out.pos++ = '\n';

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


/*
 * An id on disk keeps its URL, but for a DELETE: caches may keep the answer.
 * The ETag changes with the store and its epoch; JSON and text differ.
 */

static ngx_int_t
ngx_http_urlstore_url_cache(ngx_http_request_t *r, uint64_t id)
{
    u_char                        *p;
    ngx_str_t                      value;
    ngx_table_elt_t               *h;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    p = ngx_pnalloc(r->pool, 32 + 3 * NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    *p++ = '"';

    p = ngx_hex_dump(p, ctx->zone->conf.uuid, 16);
    p = ngx_sprintf(p, "-%xL-%xL%s\"", ctx->zone->conf.epoch, id,
                    ngx_http_urlstore_accept(r, NGX_HTTP_URLSTORE_TEXT)
                    == NGX_HTTP_URLSTORE_TEXT ? "" : "-j");

    value.len = p - value.data;

    if (ngx_http_urlstore_header(r, "ETag", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the not modified filter takes it from there */

    h = r->headers_out.headers.last->elts;
    r->headers_out.etag = &h[r->headers_out.headers.last->nelts - 1];

    ngx_str_set(&value, "Accept");

    if (ngx_http_urlstore_header(r, "Vary", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (id < ngx_http_urlstore_durable_ids(ctx->zone)) {
        value.data = ngx_pnalloc(r->pool, 32 + NGX_TIME_T_LEN);
        if (value.data == NULL) {
            return NGX_ERROR;
        }

        value.len = ngx_sprintf(value.data, "public, max-age=%T",
                                ulcf->max_age)
                    - value.data;

    } else {
        ngx_str_set(&value, "no-cache");
    }

    ctx->cacheable = 1;

    return ngx_http_urlstore_header(r, "Cache-Control", &value);
}


/* a canonical URL is ASCII without control bytes: make sure all the same */

static ngx_int_t
ngx_http_urlstore_url_redirect(ngx_http_request_t *r)
{
    size_t                    i;
    u_char                   *p;
    ngx_str_t                *url, value;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    url = &ctx->url;

    value.data = ngx_pnalloc(r->pool, url->len * 3);
    if (value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = value.data;

    for (i = 0; i < url->len; i++) {
        if (url->data[i] <= 0x20 || url->data[i] >= 0x7f) {
            p = ngx_sprintf(p, "%%%02XD", (int) url->data[i]);

        } else {
            *p++ = url->data[i];
        }
    }

    value.len = p - value.data;

    if (ngx_http_urlstore_header(r, "Location", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->status = NGX_HTTP_MOVED_TEMPORARILY;
    ngx_http_urlstore_type(ctx, NGX_HTTP_URLSTORE_TEXT);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_url_delete(ngx_http_request_t *r)
{
    int                       was;
    ngx_int_t                 rc;
    us_store_status_t         status;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    was = 0;
    ngx_http_urlstore_deleting(ctx->zone);

    status = us_store_delete(ctx->zone->store, ctx->id, &was, &ctx->lsn);

    ngx_http_urlstore_deleted(ctx->zone, status == US_OK ? ctx->lsn : 0);

    switch (status) {

    case US_OK:
        ctx->wrote = 1;
        ctx->status = NGX_HTTP_NO_CONTENT;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);

    case US_BUSY:
        rc = ngx_http_urlstore_room_when(r, ngx_http_urlstore_url_delete);

        return rc == NGX_DECLINED
               ? ngx_http_urlstore_unready(r, ctx->zone, NULL) : rc;

    case US_FULL:
        return ngx_http_urlstore_problem(r, NGX_HTTP_INSUFFICIENT_STORAGE,
                                         NULL, "the zone is full, it cannot "
                                         "note that the URL is deleted");

    default: /* US_UNKNOWN */
        ctx->lsn = us_store_published(ctx->zone->store);
        ctx->negative = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_url_missing);
    }
}


static ngx_int_t
ngx_http_urlstore_url_missing(ngx_http_request_t *r)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                     "no such id was given yet");
}


static ngx_int_t
ngx_http_urlstore_url_gone(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_GONE, NULL,
                                     "the URL of id %uL was deleted",
                                     ctx->id);
}


/* GET /url/1,2,3 */

static ngx_int_t
ngx_http_urlstore_url_list(ngx_http_request_t *r)
{
    u_char                        *p, *last, *comma;
    ngx_int_t                      rc;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_url_begin(r, NGX_HTTP_URLSTORE_TEXT) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ctx->tail.data;
    last = p + ctx->tail.len;

    for ( ;; ) {
        comma = ngx_strlchr(p, last, ',');
        if (comma == NULL) {
            comma = last;
        }

        if (ctx->processed == ulcf->max_batch) {
            return ngx_http_urlstore_problem(r,
                                     NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, NULL,
                                     "a request has at most %ui items",
                                     ulcf->max_batch);
        }

        rc = ngx_http_urlstore_url_answer(r, p, comma - p);

        if (rc == NGX_DECLINED) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                             "an id is a decimal number");
        }

        if (rc != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (comma == last) {
            break;
        }

        p = comma + 1;
    }

    return ngx_http_urlstore_url_finish(r);
}


static ngx_int_t
ngx_http_urlstore_url_post(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    us_input_format_t         format;
    ngx_pool_cleanup_t       *cln;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_body_format(r, &format);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* curl's --data-binary calls a list of ids a form, too */

    if (format == US_INPUT_FORM) {
        format = US_INPUT_TEXT;
    }

    ctx->input = ngx_palloc(r->pool, sizeof(us_input_t));
    if (ctx->input == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    us_input_init(ctx->input, format, US_URL_MAX,
                  ngx_http_urlstore_url_item, r);

    ctx->input->ids = 1;

    cln->handler = ngx_http_urlstore_url_cleanup;
    cln->data = ctx;

    if (ngx_http_urlstore_url_begin(r, format == US_INPUT_TEXT
                                       ? NGX_HTTP_URLSTORE_TEXT
                                       : format == US_INPUT_JSON
                                       ? NGX_HTTP_URLSTORE_JSON
                                       : NGX_HTTP_URLSTORE_NDJSON)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_body(r, ngx_http_urlstore_url_data,
                                  ngx_http_urlstore_url_pause,
                                  ngx_http_urlstore_url_end);
}


static ngx_int_t
ngx_http_urlstore_url_data(ngx_http_request_t *r, u_char *p, size_t len)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (us_input_feed(ctx->input, p, len) == 0) {
        return NGX_OK;
    }

    if (ctx->input->error) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST, "%s",
                                       ctx->input->error);
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_url_pause(ngx_http_request_t *r)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_url_end(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (rc == NGX_OK && us_input_end(ctx->input) != 0 && ctx->input->error) {
        (void) ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST, "%s",
                                       ctx->input->error);
    }

    rc = ngx_http_urlstore_body_fault(r, rc);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_urlstore_url_finish(r);
}


static int
ngx_http_urlstore_url_item(void *data, const us_input_item_t *in)
{
    ngx_http_request_t *r = data;

    ngx_int_t                      rc;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ctx->processed == ulcf->max_batch) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "a request has at most %ui items",
                                       ulcf->max_batch);
    }

    rc = NGX_DECLINED;

    if (in->kind == US_INPUT_URL || in->kind == US_INPUT_NUMBER) {
        rc = ngx_http_urlstore_url_answer(r, in->text.data, in->text.len);
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST,
                                       "an id is a decimal number");
    }

    if (rc != NGX_OK) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       "no memory for the reply");
    }

    return 0;
}


static ngx_int_t
ngx_http_urlstore_url_begin(ngx_http_request_t *r,
    ngx_http_urlstore_format_t preset)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_type(ctx, ngx_http_urlstore_accept(r, preset));

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 1024) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->format == NGX_HTTP_URLSTORE_JSON) {
        return ngx_http_urlstore_out_printf(&ctx->out, 16, "{\"results\":[");
    }

    return NGX_OK;
}


/* one id of many; NGX_DECLINED: it is none */

static ngx_int_t
ngx_http_urlstore_url_answer(ngx_http_request_t *r, const u_char *text,
    size_t len)
{
    size_t                    size;
    uint64_t                  id;
    ngx_int_t                 rc;
    us_store_status_t         status;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    buf[US_URL_MAX + 8];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_id(text, len, &id);

    if (rc == NGX_ERROR) {
        return NGX_DECLINED;
    }

    status = US_UNKNOWN;
    size = 0;

    if (rc == NGX_OK) {
        status = us_store_get(ctx->zone->store, id, buf, &size);
    }

    if (status != US_OK) {
        size = 0;
    }

    if (status == US_UNKNOWN) {
        ctx->negative = 1;
        ctx->absent = 1;

    } else {
        ctx->absent |= (status == US_DELETED);
        ctx->top = ngx_max(ctx->top, id + 1);
    }

    ctx->tops = 1;

    return ngx_http_urlstore_url_line(ctx, (us_str_t) { len, text },
                                      (us_str_t) { size, buf }, status);
}


/* the answer for an id of many; url is empty but for US_OK */

static ngx_int_t
ngx_http_urlstore_url_line(ngx_http_urlstore_ctx_t *ctx, us_str_t id,
    us_str_t url, us_store_status_t status)
{
    const char               *name;
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;

    name = (status == US_OK) ? "ok"
           : (status == US_DELETED) ? "deleted"
           : (status == US_DAMAGED) ? "damaged" : "unknown";

    /* an id of any length is echoed as it was written */

    if (ngx_http_urlstore_out_room(out, id.len + us_json_quoted_max(url.len)
                                        + 64)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        out->pos = ngx_cpymem(out->pos, id.data, id.len);
        *out->pos++ = '\t';

        if (status == US_OK) {
            out->pos = ngx_cpymem(out->pos, url.data, url.len);

        } else {
            out->pos = ngx_sprintf(out->pos, "-\t%s", name);
        }

        *out->pos++ = '\n';

        ctx->processed++;

        return NGX_OK;
    }

    if (ctx->processed++ && ctx->format == NGX_HTTP_URLSTORE_JSON) {
        *out->pos++ = ',';
    }

    out->pos = ngx_cpymem(out->pos, "{\"id\":", 6);
    out->pos = ngx_cpymem(out->pos, id.data, id.len);
    out->pos = ngx_cpymem(out->pos, ",\"url\":", 7);

    if (status == US_OK) {
        out->pos = us_json_quote(out->pos, url);

    } else {
        out->pos = ngx_cpymem(out->pos, "null", 4);
    }

    out->pos = ngx_sprintf(out->pos, ",\"status\":\"%s\"}%s", name,
                           ctx->format == NGX_HTTP_URLSTORE_JSON ? "" : "\n");

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_url_finish(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->format == NGX_HTTP_URLSTORE_JSON
        && ngx_http_urlstore_out_printf(&ctx->out, 4, "]}\n") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* after the look-ups, and all of them: the body may have come slowly */

    ctx->lsn = us_store_published(ctx->zone->store);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static void
ngx_http_urlstore_url_cleanup(void *data)
{
    ngx_http_urlstore_ctx_t *ctx = data;

    us_input_free(ctx->input);
}
