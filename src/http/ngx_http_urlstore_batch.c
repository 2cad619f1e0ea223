
/*
 * A request of /add, /seen, /set, /mark, /claim or /erase: its options, its
 * loop, its end.  How its items go is at the head of ngx_http_urlstore_batch.h;
 * ngx_http_urlstore_group.c counts them, and refuses more than are allowed.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_cluster.h"


static ngx_int_t ngx_http_urlstore_batch_run(ngx_http_urlstore_ctx_t *ctx);


ngx_int_t
ngx_http_urlstore_add_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ctx->conf->quota ? ngx_http_urlstore_quota_test(ctx) : NGX_DECLINED;

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_ADD, 0)
           : ngx_http_urlstore_faulty(ctx, rc, NULL);
}


ngx_int_t
ngx_http_urlstore_seen_handler(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_SEEN, 0);
}


/*
 * POST /set/NAME, and DELETE with an ID; /mark/NAME is the same in words of its
 * own.
 */

ngx_int_t
ngx_http_urlstore_set_batch(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_uint_t           clear, mark;
    ngx_http_request_t  *r;

    r = ctx->r;
    mark = ctx->endpoint->flags & NGX_HTTP_URLSTORE_OF_MARK;

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_PUT)) {
        return NGX_DECLINED;
    }

    if (r->method == NGX_HTTP_DELETE && !mark && ctx->tail.len == 0) {

        /* its client may mean what DELETE /mark/NAME does */

        return ctx->has_body
               ? ngx_http_urlstore_bad(ctx, "a DELETE of a set has no body; "
                                       "POST with remove=1 takes out what its "
                                       "body names")
               : NGX_DECLINED;
    }

    clear = r->method == NGX_HTTP_DELETE
            || ngx_http_urlstore_flag(r, mark ? "clear" : "remove");

    return ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_SET, clear);
}


/* POST /claim: ids and URLs are claimed; or given back, by clear=1 */

ngx_int_t
ngx_http_urlstore_claim_handler(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t   least, most;
    ngx_int_t  rc;

    rc = ctx->zone->kind->claims(ctx, "claim", &least, &most);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_CLAIM,
                                   ngx_http_urlstore_flag(ctx->r, "clear"));
}


/* POST /erase of ids and URLs; all else: ngx_http_urlstore_erase.c */

ngx_int_t
ngx_http_urlstore_erase_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_erasures(ctx);

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_ERASE, 0) : rc;
}


ngx_int_t
ngx_http_urlstore_erase_id(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    /* it was discarded */

    ctx->has_body = 0;

    rc = ngx_http_urlstore_erase_reason(ctx);

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_ERASE, 0) : rc;
}


/*
 * Once: at the end of the batch; or at that of the request, if it is ended
 * while it waits.
 */

static void
ngx_http_urlstore_batch_count(void *data)
{
    ngx_http_urlstore_batch_t *batch = data;

    uint64_t                 *counts;
    ngx_uint_t                i;
    us_tally_t               *tally;
    ngx_http_urlstore_ctx_t  *ctx;

    if (batch->counted) {
        return;
    }

    ctx = batch->ctx;
    tally = ctx->zone->tally;
    counts = batch->answers.counts;

    batch->counted = 1;

    if (batch->answers.erasure && !batch->erased) {
        us_store_erasure_leave(ctx->zone->store, batch->answers.erasure);
    }

    ngx_http_urlstore_group_drop(batch);

    if (batch->base) {
        us_base_destroy(batch->base);
    }

    /* for the metrics: all that was processed, whatever the reply is */

    if (batch->answers.set && ctx->set.number) {
        us_store_set_asked(ctx->zone->store, ctx->set, ctx->processed);
    }

    if (batch->answers.claims) {
        us_tally_add(tally, US_N_CLAIMS, counts[US_ANSWER_CLAIMED]);
    }

    if (counts[US_ANSWER_UNAVAILABLE]) {
        us_tally_add(tally, US_N_UNAVAILABLE, counts[US_ANSWER_UNAVAILABLE]);
    }

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        if (counts[i]) {
            us_tally_add(tally, us_counter_of(i), counts[i]);
        }
    }
}


static ngx_http_urlstore_batch_t *
ngx_http_urlstore_batch_create(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_action_t action)
{
    ngx_http_cleanup_t         *end;
    ngx_http_request_t         *r;
    ngx_http_urlstore_batch_t  *batch;

    r = ctx->r;

    batch = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_batch_t));
    end = ngx_http_cleanup_add(r, 0);

    if (batch == NULL || end == NULL
        || ngx_http_urlstore_out_init(&batch->records, r->pool, 512) != NGX_OK)
    {
        return NULL;
    }

    batch->ctx = ctx;
    batch->action = action;
    batch->answers.marks = (ctx->endpoint->flags & NGX_HTTP_URLSTORE_OF_MARK)
                           != 0;
    batch->answers.ids = action == NGX_HTTP_URLSTORE_SET
                         && !batch->answers.marks;
    batch->answers.set = ctx->set_name.len
                         && !ngx_http_urlstore_of_ids(action);
    batch->answers.claims = (action == NGX_HTTP_URLSTORE_CLAIM);
    batch->answers.erases = (action == NGX_HTTP_URLSTORE_ERASE);
    batch->at_time = ngx_time();
    batch->budget = NGX_HTTP_URLSTORE_BUDGET;
    batch->start = ngx_http_urlstore_now();

    ctx->data = batch;

    end->handler = ngx_http_urlstore_batch_count;
    end->data = batch;

    /*
     * One source for next_id, whatever the request does: the number never
     * falls, and the ids below it are promised.
     */

    if (ctx->zone->store) {
        batch->answers.next_id =
            ngx_http_urlstore_id(ctx->zone,
                                 us_life_ids(&ctx->zone->life));
        ctx->lsn = us_store_published(ctx->zone->store);

        /* a member may be newer than its id */

        ctx->tops = !ctx->set_name.len;
    }

    return batch;
}


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_batch_options(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                 rc;
    ngx_str_t                 value;
    ngx_uint_t                times;
    ngx_http_request_t       *r;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;
    r = ctx->r;

    /* the number of an erasure is part of it */

    batch->answers.summary = batch->answers.erases;

    if (r->args.len == 0) {
        return NGX_DECLINED;
    }

    batch->answers.brief = ngx_http_urlstore_flag(r, "brief");
    batch->answers.summary |= ngx_http_urlstore_flag(r, "summary");
    batch->answers.sites = ngx_http_urlstore_flag(r, "sites");
    batch->answers.unseen_sites = batch->answers.sites
                                  && ctx->tagged;
    batch->answers.same = ctx->tagged
                          && ngx_http_urlstore_flag(r, "same");

    batch->answers.stored = ngx_http_urlstore_flag(r, "stored");

    if (batch->answers.stored && !batch->answers.set) {
        return ngx_http_urlstore_bad(ctx, "\"stored\" is not allowed "
                                     "without \"set\": the status says it");
    }

    if (batch->answers.sites) {
        rc = ngx_http_urlstore_shard_sites(ctx, "sites");

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    rc = NGX_DECLINED;

    if (batch->action == NGX_HTTP_URLSTORE_CLAIM) {
        rc = ngx_http_urlstore_claim_time(ctx, batch->clear, &batch->at_time);

    } else if (!ngx_http_urlstore_of_ids(batch->action)) {
        rc = ngx_http_urlstore_older(ctx, &batch->older, &times);

        batch->answers.older = (batch->older != 0);
        batch->answers.times = times;
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (batch->answers.older || batch->answers.times) {

        if (batch->answers.set) {
            return ngx_http_urlstore_bad(ctx, "the query has \"set\" and "
                                         "\"%s\"; one of them is allowed",
                                         batch->older ? "older" : "times");
        }

        /* a claim may be newer than its id */

        ctx->tops = 0;
    }

    if (ngx_http_urlstore_arg(ctx, "only", &value)) {
        if (value.len != 3 || ngx_strncmp(value.data, "new", 3) != 0) {
            return ngx_http_urlstore_bad(ctx, "unknown \"only\" value "
                                         "\"%*s\"; use new",
                                         ngx_min(value.len, 100), value.data);
        }

        batch->answers.only_new = 1;
    }

    (void) ngx_http_urlstore_arg(ctx, "base", &batch->query_base);

    return NGX_DECLINED;
}


/* before the first item is recorded: a form may turn out to be text */

static void
ngx_http_urlstore_batch_format(ngx_http_urlstore_batch_t *batch)
{
    ngx_http_urlstore_accept(batch->ctx, batch->query ? US_FORMAT_JSON
                             : us_media_reply(batch->ctx->input->format));

    if (batch->query || batch->ctx->format != US_FORMAT_TEXT) {
        batch->answers.same = 0;
    }
}


/* goes on when the ring has room */

static ngx_int_t
ngx_http_urlstore_batch_room(ngx_http_urlstore_batch_t *batch)
{
    if (us_life_writable(&batch->ctx->zone->life, NULL)) {
        return ngx_http_urlstore_room_when(batch->ctx, batch->query
                                                ? ngx_http_urlstore_batch_run
                                                : ngx_http_urlstore_body_run);
    }

    batch->end = NGX_HTTP_SERVICE_UNAVAILABLE;

    return ngx_http_urlstore_batch_end(batch);
}


/* of the body: see ngx_http_urlstore_body() */

static ngx_int_t
ngx_http_urlstore_batch_run(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                   rc;
    us_input_item_t             item;
    ngx_http_urlstore_batch_t  *batch;

    batch = ctx->data;

    /*
     * the group that waits for the ring goes first: no other request uses the
     * room that was made for it
     */

    rc = ngx_http_urlstore_group_flush(batch);

    if (rc == NGX_OK && batch->end == 0) {

        /* as many items as there are */

        do {
            rc = ngx_http_urlstore_body_item(ctx, &item);

            if (rc != NGX_OK) {
                break;
            }

            if (batch->items == 0) {
                ngx_http_urlstore_batch_format(batch);
            }

            rc = ngx_http_urlstore_item(batch, &item);

        } while (rc == NGX_OK);

        if (rc != NGX_BUSY) {
            batch->end = rc == NGX_AGAIN ? 0 : rc;
            rc = ngx_http_urlstore_group_flush(batch);
        }
    }

    if (rc == NGX_BUSY) {
        return ngx_http_urlstore_batch_room(batch);
    }

    if (rc != NGX_OK) {
        batch->end = rc;
    }

    if (batch->end == 0) {
        return NGX_AGAIN;
    }

    if (batch->answers.erasure && !batch->erased) {
        if (ngx_http_urlstore_erasure_end(ctx, batch->answers.erasure)
            == NGX_BUSY)
        {
            return ngx_http_urlstore_batch_room(batch);
        }

        batch->erased = 1;
    }

    return ctx->zone->kind->end(batch);
}


/* ?url=U: a single item without a body */

static ngx_int_t
ngx_http_urlstore_batch_query(ngx_http_urlstore_batch_t *batch,
    ngx_str_t *url)
{
    ngx_int_t            rc;
    us_input_item_t      in;
    ngx_http_request_t  *r;

    r = batch->ctx->r;

    if (batch->ctx->has_body) {
        return ngx_http_urlstore_bad(batch->ctx, "the request has a \"url\" in "
                                     "the query and a body; one of them is "
                                     "allowed");
    }

    rc = ngx_http_urlstore_no_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&in, sizeof(us_input_item_t));

    in.kind = batch->query_id ? US_INPUT_NUMBER : US_INPUT_URL;
    in.text.data = url->data;
    in.text.len = url->len;

    if (url->len > batch->ctx->conf->max_url) {
        in.kind = US_INPUT_LONG;
        in.text.len = 0;
    }

    batch->query = 1;
    ngx_http_urlstore_batch_format(batch);

    batch->end = ngx_http_urlstore_item(batch, &in);

    if (batch->end == NGX_OK) {
        batch->end = NGX_DONE;
    }

    return ngx_http_urlstore_batch_run(batch->ctx);
}


ngx_int_t
ngx_http_urlstore_batch(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_action_t action, ngx_uint_t clear)
{
    ngx_int_t                   rc;
    ngx_str_t                   url, id;
    ngx_http_request_t         *r;
    ngx_http_urlstore_batch_t  *batch;

    r = ctx->r;

    batch = ngx_http_urlstore_batch_create(ctx, action);
    if (batch == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    batch->clear = clear;

    rc = ngx_http_urlstore_batch_options(batch);

    if (rc == NGX_DECLINED && batch->ctx->zone->kind->batch) {
        rc = batch->ctx->zone->kind->batch(batch);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r->method == NGX_HTTP_DELETE && ctx->tail.len) {

        /* of a set, or the id that a router erases */

        batch->query_id = 1;
        return ngx_http_urlstore_batch_query(batch, &ctx->tail);
    }

    batch->query_id = ngx_http_urlstore_of_ids(action)
                      && ngx_http_urlstore_arg(ctx, "id", &id);

    if (ngx_http_urlstore_arg(ctx, "url", &url)) {
        return batch->query_id
               ? ngx_http_urlstore_bad(ctx, "the query has \"url\" and \"id\"; "
                                       "one of them is allowed")
               : ngx_http_urlstore_batch_query(batch, &url);
    }

    if (batch->query_id) {
        return ngx_http_urlstore_batch_query(batch, &id);
    }

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) {
        return ngx_http_urlstore_bad(ctx, "the query has no \"url\"");
    }

    return ngx_http_urlstore_body(ctx, ngx_http_urlstore_of_ids(action)
                                     ? NGX_HTTP_URLSTORE_OR_IDS
                                     : NGX_HTTP_URLSTORE_NO_IDS,
                                  ngx_http_urlstore_batch_run);
}


/*
 * A fault of the envelope.  What was applied before it stays applied: its
 * answers follow the problem, so that no id is lost to the client.
 */

static ngx_int_t
ngx_http_urlstore_batch_fault(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                   rc;
    u_char                      extra[64];
    ngx_http_urlstore_batch_t  *batch;

    batch = ctx->data;

    if (ctx->fault.len == 0 && batch->end != NGX_HTTP_SERVICE_UNAVAILABLE) {
        return batch->end;
    }

    ngx_sprintf(extra, "\"processed\":%ui%s%Z", ctx->processed,
                batch->end == NGX_HTTP_NOT_FOUND ? ",\"reason\":\"set\"" : "");

    if (batch->end == NGX_HTTP_SERVICE_UNAVAILABLE || ctx->processed == 0
        || (!ctx->wrote && batch->answers.counts[US_ANSWER_UNAVAILABLE] == 0))
    {
        return ngx_http_urlstore_faulty(ctx, batch->end, (char *) extra);
    }

    rc = ngx_http_urlstore_problem_begin(ctx, batch->end, (char *) extra,
                                         &ctx->fault);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx->format = US_FORMAT_JSON;

    return ngx_http_urlstore_answer_reply(batch);
}


/*
 * Of a single item the first record is all that there is: what the variables
 * show, in ctx, and a copy of its ref, for a problem.
 */

static ngx_int_t
ngx_http_urlstore_batch_remember(ngx_http_urlstore_batch_t *batch,
    ngx_str_t *ref)
{
    size_t                    len;
    u_char                   *p, *text;
    us_answer_record_t        rec;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    p = batch->at->buf->pos;
    ngx_memcpy(&rec, p, sizeof(us_answer_record_t));
    p += sizeof(us_answer_record_t);

    ctx->id = rec.id;
    ctx->answer = rec.answer;

    len = (rec.text == US_ANSWER_URL) ? rec.text_len : 0;

    text = ngx_pnalloc(batch->ctx->r->pool, len + rec.ref_len + 1);
    if (text == NULL) {
        return NGX_ERROR;
    }

    ctx->url.data = text;
    ctx->url.len = len;

    ref->data = ngx_cpymem(text, p, len);
    ref->len = rec.ref_len;

    ngx_memcpy(ref->data, p + rec.text_len, rec.ref_len);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_batch_end(ngx_http_urlstore_batch_t *batch)
{
    ngx_str_t                 ref;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    us_tally_batch(ctx->zone->tally, ngx_http_urlstore_now() - batch->start);
    ngx_http_urlstore_batch_count(batch);

    batch->at = ngx_http_urlstore_out_take(&batch->records, 0);

    if (ctx->key.name && ngx_http_urlstore_repeatable(batch)) {
        ngx_http_urlstore_repeats(batch);
    }

    if (batch->end != NGX_DONE) {

        /*
         * "processed" reports what was applied, so the reply waits like any
         * other
         */

        return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_batch_fault);
    }

    batch->answers.single = batch->query
                            || (ctx->input->single && ctx->processed == 1);

    if (batch->answers.erasure) {
        ngx_http_urlstore_erasure_accepted(ctx, batch->answers.erasure);
    }

    if (batch->items == 0) {
        ngx_http_urlstore_batch_format(batch);
    }

    if (ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, 640) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!batch->answers.single) {
        return ngx_http_urlstore_answer_reply(batch);
    }

    /* one item: its status code is that of the reply */

    if (ngx_http_urlstore_batch_remember(batch, &ref) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (batch->answers.erases && ctx->r->method == NGX_HTTP_DELETE) {

        /* of /url/ID: the erasure, or what an id without a URL is answered */

        switch (batch->first) {

        case US_ANSWER_ERASED:
            return ngx_http_urlstore_erasure_reply(ctx, batch->answers.erasure);

        case US_ANSWER_UNKNOWN:
            return ngx_http_urlstore_reply_when(ctx,
                                                ngx_http_urlstore_url_missing);

        case US_ANSWER_DELETED:
            return ngx_http_urlstore_reply_when(ctx,
                                                ngx_http_urlstore_url_gone);

        case US_ANSWER_DAMAGED:
            return ngx_http_urlstore_url_damaged(ctx);

        default:
            break;
        }
    }

    switch (batch->first) {

    case US_ANSWER_INVALID:
    case US_ANSWER_REJECTED:
    case US_ANSWER_REFUSED:
        return ngx_http_urlstore_refused(ctx, &batch->refusal, &ref, NULL);

    case US_ANSWER_FULL:
        return ngx_http_urlstore_refused(ctx, NULL, &ref, NULL);

    case US_ANSWER_UNAVAILABLE:
        return ngx_http_urlstore_shard_moved(ctx, batch->query_id ? "the id"
                                                                : "the URL");

    case US_ANSWER_NEW:
        ctx->status = NGX_HTTP_CREATED;

        if (ctx->id != US_STORE_NO_ID) {
            ngx_http_urlstore_header_printf(ctx, "Location", NGX_INT64_LEN + 4,
                                            "url/%uL", ctx->id);
        }

        break;

    default:
        break;
    }

    return ngx_http_urlstore_answer_reply(batch);
}
