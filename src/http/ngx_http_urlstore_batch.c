
/*
 * A request of /add, /seen or /mark: its options, its items (of the query, or
 * of the body as it arrives), its end.
 *
 *     query, or body --> us_input --> ngx_http_urlstore_item.c
 *                                       `--> ngx_http_urlstore_group.c
 *                                              `--> answers
 *
 * What the worker shares is given back before the event loop goes on, so a
 * slow client holds no more than its own request.  If the journal's ring is
 * full, the request is parked until there is room.
 *
 * A fault of the envelope ends the batch: what has been read is still sent to
 * the store, and the problem document says how many items that were.
 */


#include "ngx_http_urlstore.h"


/* what an end of any kind needs */

typedef struct {
    ngx_http_request_t             *r;
    ngx_http_urlstore_ctx_t        *ctx;
} ngx_http_urlstore_batch_t;


static ngx_int_t ngx_http_urlstore_batch_options(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_batch_query(ngx_http_request_t *r,
    ngx_str_t *url);
static ngx_int_t ngx_http_urlstore_batch_data(ngx_http_request_t *r,
    u_char *p, size_t len);
static ngx_int_t ngx_http_urlstore_batch_pause(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_batch_end(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_urlstore_batch_finish(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_batch_fault(ngx_http_request_t *r);
static void ngx_http_urlstore_batch_count(void *data);
static void ngx_http_urlstore_batch_cleanup(void *data);


ngx_int_t
ngx_http_urlstore_batch(ngx_http_request_t *r,
    ngx_http_urlstore_action_t action)
{
    ngx_int_t                      rc;
    ngx_str_t                      url;
    us_input_format_t              format;
    ngx_http_cleanup_t            *end;
    ngx_pool_cleanup_t            *cln;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_batch_t     *batch;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    ctx->action = action;
    ctx->start = ngx_http_urlstore_now();

    /*
     * One source for next_id, whatever the request does: the number never
     * falls, and the ids below it are promised.
     */

    if (ctx->zone->store) {
        ctx->next_id = ngx_http_urlstore_promised_ids(ctx->zone);
        ctx->lsn = us_store_published(ctx->zone->store);
        ctx->tops = 1;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    end = ngx_http_cleanup_add(r, sizeof(ngx_http_urlstore_batch_t));

    if (cln == NULL || end == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_batch_cleanup;
    cln->data = ctx;

    batch = end->data;
    batch->r = r;
    batch->ctx = ctx;
    ctx->data = batch;

    end->handler = ngx_http_urlstore_batch_count;

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 640) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_batch_options(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_arg(r, "url", &url);

    if (rc == NGX_DECLINED && action == NGX_HTTP_URLSTORE_MARK) {
        rc = ngx_http_urlstore_arg(r, "id", &url);
        ctx->query_id = (rc == NGX_OK);
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK) {
        return ngx_http_urlstore_batch_query(r, &url);
    }

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query has no \"url\"");
    }

    rc = ngx_http_urlstore_body_format(r, &format);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->input = ngx_palloc(r->pool, sizeof(us_input_t));
    if (ctx->input == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    us_input_init(ctx->input, format, ulcf->max_url,
                  ngx_http_urlstore_item, r);

    ctx->input->ids = (action == NGX_HTTP_URLSTORE_MARK);

    return ngx_http_urlstore_body(r, ngx_http_urlstore_batch_data,
                                  ngx_http_urlstore_batch_pause,
                                  ngx_http_urlstore_batch_end);
}


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_batch_options(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    us_str_t                  text;
    ngx_str_t                 value;
    ngx_http_urlstore_ctx_t  *ctx;

    if (r->args.len == 0) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->brief = ngx_http_urlstore_flag(r, "brief");
    ctx->summary = ngx_http_urlstore_flag(r, "summary");
    ctx->sites = ngx_http_urlstore_flag(r, "sites");

    if (ctx->sites && ctx->zone->filter) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "a filter knows no \"sites\"");
    }

    rc = ngx_http_urlstore_arg(r, "only", &value);

    if (rc == NGX_OK) {
        if (value.len != 3 || ngx_strncmp(value.data, "new", 3) != 0) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                             "\"only\" can be \"new\"");
        }

        ctx->only_new = 1;
    }

    rc = ngx_http_urlstore_arg(r, "base", &value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK) {
        text.data = value.data;
        text.len = value.len;

        ctx->has_base = 1;
        ctx->base = us_base_create(ctx->zone->norm, ctx->zone->ws, text,
                                   &ctx->base_verdict);
    }

    return NGX_DECLINED;
}


/* ?url=U: a single item without a body */

static ngx_int_t
ngx_http_urlstore_batch_query(ngx_http_request_t *r, ngx_str_t *url)
{
    ngx_int_t                      rc;
    us_input_item_t                in;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    /* a subrequest, such as that of auth_request, has the main one's headers */

    if (r == r->main
        && (r->headers_in.content_length_n > 0 || r->headers_in.chunked))
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "a \"url\" in the query, or a body, "
                                         "not both");
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&in, sizeof(us_input_item_t));

    in.kind = ctx->query_id ? US_INPUT_NUMBER : US_INPUT_URL;
    in.text.data = url->data;
    in.text.len = url->len;

    if (url->len > ulcf->max_url) {
        in.kind = US_INPUT_LONG;
        in.text.len = 0;
    }

    ctx->single = 1;

    (void) ngx_http_urlstore_item(r, &in);

    return ngx_http_urlstore_batch_end(r, NGX_OK);
}


static ngx_int_t
ngx_http_urlstore_batch_data(ngx_http_request_t *r, u_char *p, size_t len)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (us_input_feed(ctx->input, p, len) != 0) {

        if (ctx->input->error) {
            return ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST,
                                           "%s", ctx->input->error);
        }

        return NGX_ERROR;
    }

    return ctx->busy ? NGX_AGAIN : NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_batch_pause(ngx_http_request_t *r)
{
    return ngx_http_urlstore_group_flush(r) == NGX_AGAIN ? NGX_AGAIN : NGX_OK;
}


/* of the body: rc is NGX_OK, NGX_ERROR (ctx->fault tells) or nginx's */

static ngx_int_t
ngx_http_urlstore_batch_end(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (rc == NGX_OK && ctx->input && us_input_end(ctx->input) != 0
        && ctx->input->error)
    {
        (void) ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST, "%s",
                                       ctx->input->error);
    }

    if (rc > NGX_OK) {
        ctx->rc = rc;
    }

    return ngx_http_urlstore_batch_finish(r);
}


static ngx_int_t
ngx_http_urlstore_batch_finish(ngx_http_request_t *r)
{
    uint64_t                  us;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_group_flush(r);

    if (rc == NGX_AGAIN && ctx->fault == 0) {
        rc = ngx_http_urlstore_room_when(r, ngx_http_urlstore_batch_finish);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        (void) ngx_http_urlstore_fault(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "the disk refuses");
    }

    us = ngx_http_urlstore_now() - ctx->start;
    ngx_http_urlstore_observe(ctx->zone, us);
    ngx_http_urlstore_batch_count(ctx->data);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->fault || ctx->rc) {

        /* "processed" is a promise, too */

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_batch_fault);
    }

    rc = ngx_http_urlstore_answer_end(r);

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->status == NGX_HTTP_URLSTORE_UNPROCESSABLE
        || ctx->status == NGX_HTTP_INSUFFICIENT_STORAGE)
    {
        return ngx_http_urlstore_refused(r, ctx->status, &ctx->refused, NULL);
    }

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_batch_fault(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_answer_forget(ctx);

    return ngx_http_urlstore_body_fault(r, ctx->rc);
}


/*
 * Once: at the end of the batch; or at that of the request, if it is ended
 * while it waits.
 */

static void
ngx_http_urlstore_batch_count(void *data)
{
    ngx_http_urlstore_batch_t *batch = data;

    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    if (ctx->counted) {
        return;
    }

    ctx->counted = 1;

    ngx_http_urlstore_group_drop(ctx);
    ngx_http_urlstore_answer_count(ctx);

    if (ctx->action == NGX_HTTP_URLSTORE_ADD) {
        ngx_http_urlstore_quota_charge(batch->r,
                                       ctx->counts[NGX_HTTP_URLSTORE_A_NEW]);
    }
}


/* of the request's pool */

static void
ngx_http_urlstore_batch_cleanup(void *data)
{
    ngx_http_urlstore_ctx_t *ctx = data;

    ngx_http_urlstore_group_drop(ctx);

    if (ctx->input) {
        us_input_free(ctx->input);
    }

    if (ctx->base) {
        us_base_destroy(ctx->base);
    }

    if (ctx->item_base) {
        us_base_destroy(ctx->item_base);
    }
}
