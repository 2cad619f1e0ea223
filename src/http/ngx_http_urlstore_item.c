
/*
 * An item of a batch on its way in: from the input to an entry of the group.
 *
 *     us_input_item_t             entry                  item of the store
 *     kind, text, base, ref  -->  kind, verdict, ref
 *       |                           by_id, id (marks)
 *       `-- us_normalize() ---------------------------->  canonical URL
 *
 * The texts of a group lie in its `text`, one behind the other, and an entry
 * without a canonical URL has no item of the store: it is invalid, rejected or
 * an id.  Refused input is logged, escaped.
 */


#include "ngx_http_urlstore.h"


/* bytes of a refused input that are logged, and lines of one request */
#define NGX_HTTP_URLSTORE_LOGGED   256
#define NGX_HTTP_URLSTORE_LINES    100


static void ngx_http_urlstore_item_log(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, const us_str_t *text);
static ngx_uint_t ngx_http_urlstore_item_id(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, const us_str_t *text);
static void ngx_http_urlstore_item_url(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g, ngx_http_urlstore_entry_t *e,
    const us_input_item_t *in);
static us_base_t *ngx_http_urlstore_item_base(ngx_http_urlstore_ctx_t *ctx,
    us_str_t text, us_verdict_t *why);


int
ngx_http_urlstore_item(void *data, const us_input_item_t *in)
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
        if (ngx_http_urlstore_group_flush(r) == NGX_ERROR) {
            return NGX_ERROR;
        }

        g = ctx->group;
    }

    if (g == NULL) {
        g = ngx_http_urlstore_group_get(r->connection->log);
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
        if (ngx_http_urlstore_item_id(ctx, e, &in->text)) {
            break;
        }

        ngx_http_urlstore_item_url(r, g, e, in);
        break;

    case US_INPUT_NUMBER:
        if (ngx_http_urlstore_item_id(ctx, e, &in->text)) {
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
        ngx_http_urlstore_item_log(r, e, &in->text);
    }

    return 0;
}


/* one line for each refused input, at info level; its bytes are escaped */

static void
ngx_http_urlstore_item_log(ngx_http_request_t *r,
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
ngx_http_urlstore_item_id(ngx_http_urlstore_ctx_t *ctx,
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
ngx_http_urlstore_item_url(ngx_http_request_t *r,
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
        base = ngx_http_urlstore_item_base(ctx, in->base, &why);

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
ngx_http_urlstore_item_base(ngx_http_urlstore_ctx_t *ctx, us_str_t text,
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
