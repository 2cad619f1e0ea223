
/*
 * Items on their way through the normalizer and the store.
 *
 *     us_input --> entry (verdict, ref) ---------------.
 *                    `-- canonical URL in `text`       | in groups of 256
 *                          `-- item of the store ------+--> store --> answers
 *
 * A group is the worker's: it lives from the first item to the flush, which
 * is at the latest when the event loop goes on, so a slow client holds no
 * more than its own request.  One exception: if the journal's ring is full
 * (US_BUSY), the request takes the group along and is parked until there is
 * room.
 *
 * A fault of the envelope ends the batch: what is in the group is still sent
 * to the store, and the problem document says how many items that were.
 */


#include "ngx_http_urlstore.h"


/* bytes of a refused input that are logged, and lines of one request */
#define NGX_HTTP_URLSTORE_LOGGED   256
#define NGX_HTTP_URLSTORE_LINES    100


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
static int ngx_http_urlstore_batch_item(void *data,
    const us_input_item_t *in);
static void ngx_http_urlstore_batch_log(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, const us_str_t *text);
static ngx_uint_t ngx_http_urlstore_batch_id(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, const us_str_t *text);
static void ngx_http_urlstore_batch_url(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g, ngx_http_urlstore_entry_t *e,
    const us_input_item_t *in);
static us_base_t *ngx_http_urlstore_batch_base(ngx_http_urlstore_ctx_t *ctx,
    us_str_t text, us_verdict_t *why);
static ngx_int_t ngx_http_urlstore_batch_flush(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_batch_group(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g);
static ngx_int_t ngx_http_urlstore_batch_store(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g);
static ngx_int_t ngx_http_urlstore_batch_mark(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g);
static ngx_http_urlstore_group_t *ngx_http_urlstore_group(ngx_log_t *log);
static void ngx_http_urlstore_group_free(ngx_http_urlstore_group_t *g);
static void ngx_http_urlstore_batch_cleanup(void *data);


static ngx_http_urlstore_group_t  *ngx_http_urlstore_groups;


ngx_int_t
ngx_http_urlstore_batch(ngx_http_request_t *r,
    ngx_http_urlstore_action_t action)
{
    ngx_int_t                      rc;
    ngx_str_t                      url;
    us_input_format_t              format;
    ngx_pool_cleanup_t            *cln;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    ctx->action = action;
    ctx->start = ngx_http_urlstore_now();
    ctx->next_id = ctx->zone->filter ? 0
                                     : us_store_next_id(ctx->zone->store);

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_batch_cleanup;
    cln->data = ctx;

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
                  ngx_http_urlstore_batch_item, r);

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

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
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

    (void) ngx_http_urlstore_batch_item(r, &in);

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
    return ngx_http_urlstore_batch_flush(r) == NGX_AGAIN ? NGX_AGAIN : NGX_OK;
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

    rc = ngx_http_urlstore_batch_flush(r);

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

    if (ctx->action == NGX_HTTP_URLSTORE_ADD) {
        ngx_http_urlstore_quota_charge(r,
                                       ctx->counts[NGX_HTTP_URLSTORE_A_NEW]);
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->fault || ctx->rc) {

        /* "processed" is a promise, too */

        return ngx_http_urlstore_reply_when(r, ctx->lsn,
                                            ngx_http_urlstore_batch_fault);
    }

    rc = ngx_http_urlstore_answer_end(r);

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->status == NGX_HTTP_URLSTORE_UNPROCESSABLE
        || ctx->status == NGX_HTTP_INSUFFICIENT_STORAGE)
    {
        return ngx_http_urlstore_refused(r, ctx->status, &ctx->refused);
    }

    return ngx_http_urlstore_reply_when(r, ctx->lsn, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_batch_fault(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    return ngx_http_urlstore_body_fault(r, ctx->rc);
}


static int
ngx_http_urlstore_batch_item(void *data, const us_input_item_t *in)
{
    ngx_http_request_t *r = data;

    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_group_t      *g;
    ngx_http_urlstore_entry_t      *e;
    ngx_http_urlstore_loc_conf_t   *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ctx->items == ulcf->max_batch) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "a request has at most %ui items",
                                       ulcf->max_batch);
    }

    g = ctx->group;

    if (g && (g->n == US_STORE_GROUP
              || (size_t) (g->text + NGX_HTTP_URLSTORE_TEXT_SIZE - g->last)
                 < US_URL_MAX + 8 + US_INPUT_REF))
    {
        if (ngx_http_urlstore_batch_flush(r) == NGX_ERROR) {
            return ngx_http_urlstore_fault(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for the reply");
        }

        g = ctx->group;
    }

    if (g == NULL) {
        g = ngx_http_urlstore_group(r->connection->log);
        if (g == NULL) {
            return ngx_http_urlstore_fault(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for a group");
        }

        ctx->group = g;
    }

    if (ctx->items == 0 && ctx->input) {
        ctx->single = ctx->input->single;
    }

    ctx->items++;

    e = &g->entries[g->n++];

    e->item = NULL;
    e->kind = in->kind;
    e->by_id = 0;
    e->rule.len = 0;
    e->ref.len = 0;

    if (in->ref.data) {
        e->ref.data = g->last;
        e->ref.len = in->ref.len;
        g->last = ngx_cpymem(g->last, in->ref.data, in->ref.len);
    }

    switch (in->kind) {

    case US_INPUT_URL:
        if (ngx_http_urlstore_batch_id(ctx, e, &in->text)) {
            break;
        }

        ngx_http_urlstore_batch_url(r, g, e, in);
        break;

    case US_INPUT_NUMBER:
        if (ngx_http_urlstore_batch_id(ctx, e, &in->text)) {
            break;
        }

        e->kind = US_INPUT_BAD;
        break;

    default:
        break;
    }

    if (e->item == NULL && !e->by_id
        && r->connection->log->log_level >= NGX_LOG_INFO
        && ctx->logged < NGX_HTTP_URLSTORE_LINES)
    {
        ctx->logged++;
        ngx_http_urlstore_batch_log(r, e, &in->text);
    }

    return 0;
}


/* one line for each refused input, at info level; its bytes are escaped */

static void
ngx_http_urlstore_batch_log(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, const us_str_t *text)
{
    u_char                    c, *p;
    size_t                    i;
    ngx_str_t                 reason, input;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    why[NGX_HTTP_URLSTORE_REASON];
    u_char                    buf[NGX_HTTP_URLSTORE_LOGGED * 4];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    reason.data = why;
    reason.len = ngx_http_urlstore_reason(why, e) - why;

    p = buf;

    for (i = 0; i < text->len && i < NGX_HTTP_URLSTORE_LOGGED; i++) {
        c = text->data[i];

        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            p = ngx_sprintf(p, "\\x%02xd", (int) c);

        } else {
            *p++ = c;
        }
    }

    input.data = buf;
    input.len = p - buf;

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "urlstore zone=%V endpoint=%V item=%ui reason=%V "
                  "length=%uz input=\"%V\"", &ctx->zone->name,
                  &ctx->endpoint->name, ctx->items - 1, &reason, text->len,
                  &input);
}


/*
 * Marks are set by id as well: an all-digit line of text or a number of JSON.
 * Returns 1 if the entry is one.
 */

static ngx_uint_t
ngx_http_urlstore_batch_id(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, const us_str_t *text)
{
    size_t  i;

    if (ctx->action != NGX_HTTP_URLSTORE_MARK) {
        return 0;
    }

    if (e->kind == US_INPUT_URL) {

        if (ctx->input == NULL || ctx->input->format != US_INPUT_TEXT
            || text->len == 0)
        {
            return 0;
        }

        for (i = 0; i < text->len; i++) {
            if (text->data[i] < '0' || text->data[i] > '9') {
                return 0;
            }
        }
    }

    switch (ngx_http_urlstore_id(text->data, text->len, &e->id)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        e->id = US_STORE_NO_ID;
        break;

    default: /* NGX_ERROR */
        e->kind = US_INPUT_BAD;
        return 1;
    }

    e->kind = US_INPUT_URL;
    e->by_id = 1;

    return 1;
}


static void
ngx_http_urlstore_batch_url(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g, ngx_http_urlstore_entry_t *e,
    const us_input_item_t *in)
{
    us_base_t                     *base;
    us_canon_t                     canon;
    us_verdict_t                   why;
    us_store_item_t               *item;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    base = NULL;
    why = US_URL_OK;

    if (in->base.data) {
        base = ngx_http_urlstore_batch_base(ctx, in->base, &why);

    } else if (ctx->has_base) {
        base = ctx->base;
        why = ctx->base_verdict;
    }

    if (why != US_URL_OK) {
        e->verdict = why;
        return;
    }

    canon.rule.len = 0;

    e->verdict = us_normalize(ctx->zone->norm, ctx->zone->ws, in->text, base,
                              &canon);

    if (e->verdict == US_URL_OK && canon.url.href.len > ulcf->max_url) {
        e->verdict = US_URL_LENGTH;
    }

    if (e->verdict != US_URL_OK) {
        e->rule = canon.rule;
        return;
    }

    item = &g->items[g->urls++];

    item->url.data = g->last;
    item->url.len = canon.url.href.len;
    item->merge = canon.merge;

    g->last = ngx_cpymem(g->last, canon.url.href.data, canon.url.href.len);

    e->item = item;
}


/* the last item's base serves the next one as well: links of one page */

static us_base_t *
ngx_http_urlstore_batch_base(ngx_http_urlstore_ctx_t *ctx, us_str_t text,
    us_verdict_t *why)
{
    if (ctx->base_text.data == NULL || ctx->base_text.len != text.len
        || ngx_memcmp(ctx->base_text.data, text.data, text.len) != 0)
    {
        if (ctx->base_text.data == NULL) {
            ctx->base_text.data = ngx_pnalloc(ctx->out.pool, US_URL_MAX);

            if (ctx->base_text.data == NULL) {
                *why = US_URL_LENGTH;
                return NULL;
            }
        }

        if (ctx->item_base) {
            us_base_destroy(ctx->item_base);
        }

        ngx_memcpy(ctx->base_text.data, text.data, text.len);
        ctx->base_text.len = text.len;

        ctx->item_verdict = US_URL_OK;
        ctx->item_base = us_base_create(ctx->zone->norm, ctx->zone->ws, text,
                                        &ctx->item_verdict);
    }

    *why = ctx->item_verdict;

    return ctx->item_base;
}


/* NGX_AGAIN: the ring is full, and the request keeps its groups */

static ngx_int_t
ngx_http_urlstore_batch_flush(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_group_t  *g, **gp;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->group) {
        for (gp = &ctx->queue; *gp; gp = &(*gp)->next) { /* void */ }

        *gp = ctx->group;
        ctx->group = NULL;
    }

    ctx->busy = 0;

    while (ctx->queue) {
        g = ctx->queue;

        rc = ngx_http_urlstore_batch_group(r, g);

        if (rc == NGX_AGAIN) {
            ctx->busy = 1;
            return NGX_AGAIN;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        ctx->queue = g->next;
        ngx_http_urlstore_group_free(g);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_batch_group(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g)
{
    ngx_uint_t                i;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_batch_store(ctx, g) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (ctx->processed == 0 && ngx_http_urlstore_answer_begin(r) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < g->n; i++) {
        if (ngx_http_urlstore_answer(r, &g->entries[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        ctx->processed++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_batch_store(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g)
{
    uint64_t          lsn;
    us_store_t       *store;
    us_store_item_t  *item;

    if (ctx->zone->filter) {
        ngx_http_urlstore_filter_group(ctx, g);
        return NGX_OK;
    }

    store = ctx->zone->store;

    switch (ctx->action) {

    case NGX_HTTP_URLSTORE_ADD:

        if (g->done < g->urls) {
            lsn = us_store_add(store, &g->items[g->done], g->urls - g->done);
            ctx->lsn = ngx_max(ctx->lsn, lsn);
        }

        for (item = &g->items[g->done]; g->done < g->urls; item++) {

            if (item->status == US_BUSY) {
                return NGX_AGAIN;
            }

            if (item->status == US_NEW) {
                ctx->wrote = 1;
            }

            g->done++;
        }

        if (ctx->wrote) {
            ngx_http_urlstore_train(ctx->zone);
        }

        return NGX_OK;

    case NGX_HTTP_URLSTORE_SEEN:

        us_store_seen(store, g->items, g->urls);
        ctx->tops = 1;

        /* what is published now covers what the look-up has seen */

        ctx->lsn = us_store_published(store);

        return NGX_OK;

    default: /* NGX_HTTP_URLSTORE_MARK */

        if (g->done == 0) {
            us_store_seen(store, g->items, g->urls);
        }

        return ngx_http_urlstore_batch_mark(ctx, g);
    }
}


/* here g->done counts entries */

static ngx_int_t
ngx_http_urlstore_batch_mark(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                    lsn;
    ngx_http_urlstore_entry_t  *e;

    for ( /* void */ ; g->done < g->n; g->done++) {
        e = &g->entries[g->done];

        if (e->by_id) {

            /* e->id was given */

        } else if (e->item) {
            e->id = e->item->id;

            if (e->item->status != US_SEEN) {
                e->status = US_UNKNOWN;
                continue;
            }

        } else {
            continue;
        }

        if (e->id == US_STORE_NO_ID) {
            e->status = US_UNKNOWN;
            continue;
        }

        lsn = 0;
        e->status = us_store_mark(ctx->zone->store, ctx->mark, e->id,
                                  !ctx->clear, &lsn);

        if (e->status == US_BUSY) {
            return NGX_AGAIN;
        }

        if (e->status == US_OK) {
            ctx->lsn = ngx_max(ctx->lsn, lsn);
            ctx->wrote = 1;
        }
    }

    return NGX_OK;
}


static ngx_http_urlstore_group_t *
ngx_http_urlstore_group(ngx_log_t *log)
{
    ngx_http_urlstore_group_t  *g;

    g = ngx_http_urlstore_groups;

    if (g) {
        ngx_http_urlstore_groups = g->next;

    } else {
        g = ngx_alloc(sizeof(ngx_http_urlstore_group_t), log);
        if (g == NULL) {
            return NULL;
        }
    }

    g->n = 0;
    g->urls = 0;
    g->done = 0;
    g->last = g->text;
    g->next = NULL;

    return g;
}


static void
ngx_http_urlstore_group_free(ngx_http_urlstore_group_t *g)
{
    g->next = ngx_http_urlstore_groups;
    ngx_http_urlstore_groups = g;
}


/* of the request's pool */

static void
ngx_http_urlstore_batch_cleanup(void *data)
{
    ngx_http_urlstore_ctx_t *ctx = data;

    ngx_http_urlstore_group_t  *g;

    if (ctx->group) {
        ngx_http_urlstore_group_free(ctx->group);
    }

    while (ctx->queue) {
        g = ctx->queue;
        ctx->queue = g->next;
        ngx_http_urlstore_group_free(g);
    }

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


void
ngx_http_urlstore_batch_exit(void)
{
    ngx_http_urlstore_group_t  *g;

    while (ngx_http_urlstore_groups) {
        g = ngx_http_urlstore_groups;
        ngx_http_urlstore_groups = g->next;
        ngx_free(g);
    }
}
