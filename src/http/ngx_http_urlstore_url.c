
/*
 * id -> URL.
 *
 *     GET /url/7            the URL, cacheable; ?redirect=1: 302 to it
 *     DELETE /url/7         forgets it; ?erase=1: ngx_http_urlstore_erase.c
 *     GET /url/7,9          each with its status
 *     POST /url             the same, by a body of ids
 *
 *     path, or body as it arrives --> list "7,9,..." --> slices of a reply
 *
 * Of many ids, only their list is kept until the reply begins, as the client
 * has written it.  Their URLs are looked up slice by slice, as the client reads
 * the reply.  So a request holds no more than its list and one slice.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../us_text.h"


/* bytes of a client's text that a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN    40


/*
 * ctx->url is the URL of the id.  An id on disk keeps its URL, but for a
 * DELETE: caches may keep the answer.  The ETag changes with the store and its
 * epoch; JSON and text differ.
 */

static ngx_int_t
ngx_http_urlstore_url_found(ngx_http_urlstore_ctx_t *ctx, uint64_t id)
{
    size_t               i;
    u_char              *p;
    us_str_t             url;
    us_list_t            list;
    ngx_str_t            value;
    ngx_uint_t           redirects;
    ngx_http_request_t  *r;

    r = ctx->r;

    url = ngx_http_urlstore_str(&ctx->url);

    ngx_memzero(&list, sizeof(us_list_t));
    list.times = ngx_http_urlstore_flag(r, "times");

    redirects = ngx_http_urlstore_flag(r, "redirect");

    p = ngx_pnalloc(r->pool, 32 + 3 * NGX_INT64_LEN
                             + (redirects ? url.len * 3 : 0));

    if (p == NULL
        || ngx_http_urlstore_reply_begin(ctx, US_FORMAT_TEXT,
                                         us_json_quoted_max(url.len) + 128)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (list.times) {

        /* the time changes, and may be newer than the id */

        list.claimed = us_store_claimed(ctx->zone->store, id);
        ctx->lsn = us_store_published(ctx->zone->store);
        ctx->tops = 0;

    } else {
        value.data = p;
        *p++ = '"';

        p = ngx_hex_dump(p, ctx->zone->conf.uuid, 16);
        p = ngx_sprintf(p, "-%xL-%xL%s\"", ctx->zone->conf.epoch, id,
                        ctx->format == US_FORMAT_TEXT ? "" : "-j");

        value.len = p - value.data;

        ngx_http_urlstore_etag(ctx, &value);
        ngx_http_urlstore_cache_control(ctx, id <
                                     us_life_durable_ids(&ctx->zone->life));
    }

    if (redirects) {
        value.data = p;

        /* a canonical URL is ASCII without control bytes: make sure */

        for (i = 0; i < url.len; i++) {
            if (url.data[i] <= 0x20 || url.data[i] >= 0x7f) {
                p = ngx_sprintf(p, "%%%02XD", (int) url.data[i]);

            } else {
                *p++ = url.data[i];
            }
        }

        value.len = p - value.data;
        ngx_http_urlstore_header(ctx, "Location", &value);

        ctx->status = NGX_HTTP_MOVED_TEMPORARILY;
        ngx_http_urlstore_type(ctx, US_FORMAT_TEXT);

    } else if (ctx->format == US_FORMAT_TEXT) {
        ctx->out.pos = us_put_str(ctx->out.pos, url);

        ctx->out.pos = us_list_claimed(ctx->out.pos, &list);
        *ctx->out.pos++ = '\n';

    } else {
        list.format = US_FORMAT_NDJSON;
        ctx->out.pos = us_list_url(ctx->out.pos, &list, ctx->id, &url);
    }

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_url_bad(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_bad(ctx, NGX_HTTP_URLSTORE_NO_ID,
                                 ngx_min(ctx->tail.len,
                                         NGX_HTTP_URLSTORE_SHOWN),
                                 ctx->tail.data);
}


static ngx_int_t
ngx_http_urlstore_url_one(ngx_http_urlstore_ctx_t *ctx, uint64_t id,
    us_id_rc_t known)
{
    size_t             len;
    us_store_status_t  status;
    u_char             buf[US_URL_MAX + 8];

    status = US_UNKNOWN;
    len = 0;

    if (known == US_ID_OK) {
        status = us_store_get(ctx->zone->store, id, buf, &len);
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    if (status == US_DELETED) {
        ctx->answer = US_ANSWER_DELETED;

        ctx->tops = 1;
        ctx->top = id + 1;
        ctx->absent = 1;

        return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_url_gone);
    }

    if (status == US_DAMAGED) {
        return ngx_http_urlstore_url_damaged(ctx);
    }

    if (status != US_OK) {
        ctx->answer = US_ANSWER_UNKNOWN;
        ctx->absent = 1;

        return ngx_http_urlstore_deny(ctx, ngx_http_urlstore_url_missing);
    }

    ctx->answer = US_ANSWER_SEEN;

    ctx->tops = 1;
    ctx->top = id + 1;

    ctx->url.data = ngx_pnalloc(ctx->r->pool, len);
    if (ctx->url.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(ctx->url.data, buf, len);
    ctx->url.len = len;

    return ngx_http_urlstore_url_found(ctx, id);
}


static ngx_int_t
ngx_http_urlstore_url_delete(ngx_http_urlstore_ctx_t *ctx)
{
    int                was;
    ngx_int_t          rc;
    us_store_status_t  status;

    /* it may have waited for room since it was allowed */

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    was = 0;
    us_life_deleting(&ctx->zone->life);

    status = us_store_delete(ctx->zone->store, ctx->id - ctx->zone->first_id,
                             &was, &ctx->lsn);

    us_life_deleted(&ctx->zone->life, status == US_OK ? ctx->lsn : 0);

    rc = ngx_http_urlstore_changed(ctx, status, ngx_http_urlstore_url_delete);

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_deny(ctx, ngx_http_urlstore_url_missing) : rc;
}


/* one id: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_ids_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    us_str_t                  list, id, url;
    ngx_buf_t                *b;
    us_answer_t               answer;
    ngx_http_urlstore_ids_t  *ids;
    u_char                    buf[US_URL_MAX + 8];

    ids = ctx->data;

    if (ids->shown == 0) {
        ids->list.format = ctx->format;
        out->pos = us_list_begin(out->pos, &ids->list);
    }

    if (ngx_http_urlstore_out_room(out, US_LIST_LINE + US_LIST_END) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ids->at) {
        b = ids->at->buf;

        list.data = b->pos;
        list.len = b->last - b->pos;

        (void) us_str_cut(&list, ',', &id);

        answer = ids->find(ctx, ids, id, buf, &url);
        out->pos = us_list_id(out->pos, &ids->list, id, url, answer);
        ids->shown++;

        b->pos = b->last - list.len;

        if (b->pos == b->last) {
            ids->at = ids->at->next;
        }
    }

    if (ids->at) {
        return NGX_AGAIN;
    }

    out->pos = us_list_end(out->pos, &ids->list);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_ids_reply(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_find_pt find)
{
    ngx_http_urlstore_ids_t  *ids;

    ids = ctx->data;
    ids->find = find;

    return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_ids_produce);
}


/* of a store: see ngx_http_urlstore_find_pt */

static us_answer_t
ngx_http_urlstore_ids_find(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_ids_t *ids, us_str_t text, u_char *buf, us_str_t *url)
{
    uint64_t           id;
    us_id_rc_t         known;
    us_store_status_t  status;

    url->data = buf;
    url->len = 0;

    known = ngx_http_urlstore_id_parse(ctx->zone, text, &id);
    status = known == US_ID_OK
             ? us_store_get(ctx->zone->store, id, buf, &url->len)
             : known == US_ID_MOVED ? US_MOVED : US_UNKNOWN;

    if (ids->partial
        && (status == US_UNKNOWN
            || (status != US_MOVED && id >= us_life_ids(&ctx->zone->life))))
    {
        status = US_MOVED;
    }

    if (status == US_OK && ids->list.times) {
        ids->list.claimed = us_store_claimed(ctx->zone->store, id);
    }

    if (status == US_UNKNOWN) {
        ctx->negative = 1;
        ctx->absent = 1;

    } else if (status != US_MOVED) {
        ctx->absent |= (status == US_DELETED);
        ctx->top = ngx_max(ctx->top, id + 1);
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    return us_answer_of(status);
}


/* of a store; the format of the reply is known */

static ngx_int_t
ngx_http_urlstore_ids_answer(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_ids_t  *ids;

    ids = ctx->data;

    /* a router asks the next node, if this one may not deny */

    ids->partial = !us_life_answers(&ctx->zone->life, 0)
                   && ctx->zone->life.conf.replicate
                   && ngx_http_urlstore_header_in(ctx->r, "urlstore-map")
                      == NULL;

    /* a claim may be newer than its id */

    ctx->tops = !ids->list.times;

    return ngx_http_urlstore_ids_reply(ctx, ngx_http_urlstore_ids_find);
}


ngx_int_t
ngx_http_urlstore_url_handler(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t             id;
    ngx_int_t            rc;
    us_id_rc_t           known;
    ngx_http_request_t  *r;

    r = ctx->r;

    rc = ngx_http_urlstore_ids(ctx, ngx_http_urlstore_ids_answer);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    known = ngx_http_urlstore_id_parse(ctx->zone,
                                       ngx_http_urlstore_str(&ctx->tail), &id);

    if (known == US_ID_BAD) {
        return ngx_http_urlstore_url_bad(ctx);
    }

    if (known == US_ID_MOVED) {
        return ngx_http_urlstore_shard_moved(ctx, "the id");
    }

    if (known == US_ID_OK) {
        ctx->id = ngx_http_urlstore_id(ctx->zone, id);
    }

    if (r->method == NGX_HTTP_DELETE && known == US_ID_NEVER) {
        return ngx_http_urlstore_url_missing(ctx);
    }

    return ngx_http_urlstore_flag(r, "erase") ? ngx_http_urlstore_erase_id(ctx)
           : r->method == NGX_HTTP_DELETE ? ngx_http_urlstore_url_delete(ctx)
           : ngx_http_urlstore_url_one(ctx, id, known);
}


/* one more of the list; else a status, with a fault */

static ngx_int_t
ngx_http_urlstore_ids_add(ngx_http_urlstore_ctx_t *ctx, us_input_kind_t kind,
    us_str_t id)
{
    ngx_http_urlstore_ids_t  *ids;
    ngx_http_urlstore_out_t  *list;

    ids = ctx->data;
    list = &ids->ids;

    if (ids->n == ctx->conf->max_batch) {
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       NGX_HTTP_URLSTORE_TOO_MANY,
                                       ctx->conf->max_batch);
    }

    if ((kind != US_INPUT_URL && kind != US_INPUT_NUMBER)
        || !us_list_is_id(id))
    {
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_BAD_REQUEST,
                                       NGX_HTTP_URLSTORE_NO_ID,
                                       ngx_min(id.len, NGX_HTTP_URLSTORE_SHOWN),
                                       id.data);
    }

    if (ngx_http_urlstore_out_room(list, id.len + 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    list->pos = ngx_cpymem(list->pos, id.data, id.len);
    *list->pos++ = ',';

    ids->n++;

    return NGX_OK;
}


/* of the body: see ngx_http_urlstore_body() */

static ngx_int_t
ngx_http_urlstore_ids_run(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                 rc;
    us_input_item_t           in;
    ngx_http_urlstore_ids_t  *ids;
    u_char                    members[64];

    ids = ctx->data;

    do {
        rc = ngx_http_urlstore_body_item(ctx, &in);

        if (rc == NGX_OK) {
            rc = ngx_http_urlstore_ids_add(ctx, in.kind, in.text);
        }

    } while (rc == NGX_OK);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc != NGX_DONE) {
        ngx_sprintf(members, "\"processed\":%ui%Z", ids->n);

        return ngx_http_urlstore_faulty(ctx, rc, (char *) members);
    }

    ngx_http_urlstore_accept(ctx, us_media_reply(ctx->input->format));

    ids->at = ngx_http_urlstore_out_take(&ids->ids, 0);

    return ids->answer(ctx);
}


ngx_int_t
ngx_http_urlstore_ids(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt answer)
{
    int                       more;
    us_str_t                  list, id;
    uint32_t                  older;
    ngx_int_t                 rc;
    ngx_str_t                 value;
    ngx_uint_t                times, erases, posts;
    ngx_http_urlstore_ids_t  *ids;

    rc = ngx_http_urlstore_older(ctx, &older, &times);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    erases = ngx_http_urlstore_flag(ctx->r, "erase");

    if (ctx->r->method != NGX_HTTP_DELETE && erases) {
        return ngx_http_urlstore_bad(ctx, "\"erase\" is for DELETE");
    }

    if (!erases && ngx_http_urlstore_arg(ctx, "reason", &value)) {
        return ngx_http_urlstore_bad(ctx, "\"reason\" is not allowed without "
                                     "\"erase\"");
    }

    posts = (ctx->r->method == NGX_HTTP_POST);
    list = ngx_http_urlstore_str(&ctx->tail);

    if (!posts && (ctx->r->method == NGX_HTTP_DELETE
                   || ngx_strlchr(ctx->tail.data, ctx->tail.data + list.len,
                                  ',')
                      == NULL))
    {
        return NGX_DECLINED;
    }

    ids = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_ids_t));

    if (ids == NULL
        || ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, 1024) != NGX_OK
        || ngx_http_urlstore_out_init(&ids->ids, ctx->r->pool, 1024) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ids->answer = answer;
    ids->list.times = times;
    ctx->data = ids;

    if (posts) {
        return ngx_http_urlstore_body(ctx, NGX_HTTP_URLSTORE_ONLY_IDS,
                                      ngx_http_urlstore_ids_run);
    }

    /* GET /url/7,9 */

    do {
        more = us_str_cut(&list, ',', &id);
        rc = ngx_http_urlstore_ids_add(ctx, US_INPUT_URL, id);

        if (rc != NGX_OK) {
            return ngx_http_urlstore_faulty(ctx, rc, NULL);
        }

    } while (more);

    ngx_http_urlstore_accept(ctx, US_FORMAT_TEXT);

    ids->at = ngx_http_urlstore_out_take(&ids->ids, 0);

    return ids->answer(ctx);
}
