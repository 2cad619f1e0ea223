
/*
 * Replies that are kept for a client that retries.
 *
 * A reply is kept when all of it is in ctx->out, before the disk is waited for
 * and before any of it is sent.  So its client may leave at any moment and
 * still get it with the next try.  A kept reply has the LSN that it depends
 * on: the next try waits for the disk as the first did.
 *
 * Kept is what the request has done: a reply of success, and an error after
 * part of the body was applied.  An error that changed nothing is not kept,
 * nor is one that can pass (5xx, 429): its next try is executed.
 */


#include "ngx_http_urlstore_keep.h"


static ngx_int_t ngx_http_urlstore_keep_parts(ngx_http_request_t *r,
    ngx_array_t *parts, ngx_http_urlstore_kept_t *kept);
static ngx_int_t ngx_http_urlstore_keep_part(ngx_array_t *parts, u_char *p,
    size_t len);
static ngx_str_t *ngx_http_urlstore_keep_location(ngx_http_request_t *r);


void
ngx_http_urlstore_keep(ngx_http_request_t *r)
{
    uint64_t                   now;
    ngx_array_t                parts;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_idem_t  *idem;
    ngx_http_urlstore_kept_t   kept;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    idem = ctx->idem;

    if (!idem->held) {
        return;
    }

    if (ctx->status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        || ctx->status == NGX_HTTP_TOO_MANY_REQUESTS
        || (ctx->status >= NGX_HTTP_BAD_REQUEST && !ctx->wrote))
    {
        us_idem_release(idem->area, &idem->ticket);
        idem->held = 0;
        return;
    }

    if (ngx_array_init(&parts, r->pool, 8, sizeof(us_str_t)) != NGX_OK
        || ngx_http_urlstore_keep_parts(r, &parts, &kept) != NGX_OK)
    {
        ngx_http_urlstore_keep_none(r);
        return;
    }

    idem->held = 0;
    now = ngx_http_urlstore_now() / 1000;

    if (us_idem_keep(idem->area, &idem->ticket, parts.elts, parts.nelts, now,
                     now + idem->keep)
        != 0)
    {
        ngx_http_urlstore_keep_none(r);
        return;
    }

    ngx_str_set(&ctx->outcome, "kept");
    us_tally_add(ctx->zone->tally, US_N_KEPT, 1);
}


/* the reply as the area has it: *kept, type, Location, variables, text */

static ngx_int_t
ngx_http_urlstore_keep_parts(ngx_http_request_t *r, ngx_array_t *parts,
    ngx_http_urlstore_kept_t *kept)
{
    u_char                   *last;
    ngx_str_t                *location;
    ngx_chain_t              *cl;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    location = ngx_http_urlstore_keep_location(r);

    kept->lsn = ctx->lsn;
    kept->id = ctx->id;
    kept->status = ctx->status;
    kept->type_len = ctx->type.len;
    kept->location_len = location ? location->len : 0;
    kept->url_len = ctx->url.len;
    kept->name_len = ctx->status_name.len;
    kept->unused = 0;

    if (ngx_http_urlstore_keep_part(parts, (u_char *) kept,
                                    sizeof(ngx_http_urlstore_kept_t))
        != NGX_OK
        || ngx_http_urlstore_keep_part(parts, ctx->type.data, ctx->type.len)
           != NGX_OK
        || (location
            && ngx_http_urlstore_keep_part(parts, location->data,
                                           location->len)
               != NGX_OK)
        || ngx_http_urlstore_keep_part(parts, ctx->status_name.data,
                                       ctx->status_name.len)
           != NGX_OK
        || ngx_http_urlstore_keep_part(parts, ctx->url.data, ctx->url.len)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (cl = ctx->out.chain; cl; cl = cl->next) {
        last = cl->next ? cl->buf->last : ctx->out.pos;

        if (ngx_http_urlstore_keep_part(parts, cl->buf->pos,
                                        last - cl->buf->pos)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_keep_part(ngx_array_t *parts, u_char *p, size_t len)
{
    us_str_t  *part;

    if (len == 0) {
        return NGX_OK;
    }

    part = ngx_array_push(parts);
    if (part == NULL) {
        return NGX_ERROR;
    }

    part->data = p;
    part->len = len;

    return NGX_OK;
}


/* the only header of ours that depends on what was done; NULL: it has none */

static ngx_str_t *
ngx_http_urlstore_keep_location(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == 8
                && ngx_strncmp(h[i].key.data, "Location", 8) == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_urlstore_keep_holds(ngx_http_request_t *r)
{
    size_t                    max;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (!ctx->idem->held) {
        return 0;
    }

    max = us_idem_answer_max(ctx->idem->area);

    if (ngx_http_urlstore_out_size(&ctx->out) <= max) {
        ctx->out.enough = max + 1;
        return 1;
    }

    ctx->out.enough = NGX_HTTP_URLSTORE_ENOUGH;
    ngx_http_urlstore_keep_none(r);

    return 0;
}


void
ngx_http_urlstore_keep_none(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->idem->held) {
        us_idem_release(ctx->idem->area, &ctx->idem->ticket);
        ctx->idem->held = 0;
    }

    ngx_str_set(&ctx->outcome, "not-kept");
    us_tally_add(ctx->zone->tally, US_N_NOT_KEPT, 1);
}
