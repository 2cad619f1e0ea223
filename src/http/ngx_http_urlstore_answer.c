
/*
 * The answers of /add, /seen, /set, /mark, /claim and /erase, in order of the
 * input: recorded while the body is read, and written when it has ended
 * (api/us_answer.h).
 *
 *     record   | us_answer_record_t | URL or reason | ref |
 *
 * The first megabyte of records has its URLs.  Later ones leave out those that
 * the store has, and they are looked up when they are sent.
 *
 * A single item (query, form, one JSON object) gets one object.  After a
 * problem, results are members of that.
 */


#include "ngx_http_urlstore_batch.h"


/* look-ups of one slice of the reply */
#define NGX_HTTP_URLSTORE_LOOKED   64


static ngx_uint_t
ngx_http_urlstore_answer_of(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e)
{
    us_store_status_t  status;

    if (!e->by_id && e->item == NULL) {

        return e->refusal.kind == US_INPUT_URL
               && us_verdict_rejected(e->refusal.verdict)
               ? US_ANSWER_REJECTED : US_ANSWER_INVALID;
    }

    if (ngx_http_urlstore_of_ids(batch->action)) {
        status = e->status;

        switch (status) {

        case US_NEW:
            return batch->answers.marks ? US_ANSWER_SET : US_ANSWER_IN;

        case US_SEEN:
            return batch->answers.marks ? US_ANSWER_SET : US_ANSWER_WAS;

        case US_OK:
            return batch->action == NGX_HTTP_URLSTORE_CLAIM ? US_ANSWER_CLAIMED
                   : batch->answers.marks ? US_ANSWER_CLEAR : US_ANSWER_OUT;

        case US_UNSEEN:
            return batch->answers.marks ? US_ANSWER_CLEAR : US_ANSWER_UNSEEN;

        case US_ERASED:
            return US_ANSWER_ERASED;

        default:
            break;
        }

    } else {
        status = e->item->status;
    }

    switch (status) {

    case US_UNSEEN:
        batch->ctx->negative = 1;
        batch->ctx->absent = 1;
        return US_ANSWER_UNSEEN;

    case US_UNKNOWN:
        batch->ctx->negative = 1;
        return US_ANSWER_UNKNOWN;

    default:
        return us_answer_of(status);
    }
}


static uint64_t
ngx_http_urlstore_answer_id(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    switch (answer) {

    case US_ANSWER_UNSEEN:

        /* it is not in the set, and may be in the store */

        return batch->answers.ids ? e->id
               : batch->answers.set && e->item->stored == US_SEEN
               ? e->item->id : US_STORE_NO_ID;

    case US_ANSWER_NEW:
    case US_ANSWER_SEEN:
    case US_ANSWER_DUE:
        return e->item->id;

    case US_ANSWER_CLAIMED:
    case US_ANSWER_SET:
    case US_ANSWER_CLEAR:
    case US_ANSWER_IN:
    case US_ANSWER_WAS:
    case US_ANSWER_OUT:
    case US_ANSWER_DELETED:
    case US_ANSWER_ERASED:
        return e->id;

    default:
        return US_STORE_NO_ID;
    }
}


static ngx_int_t
ngx_http_urlstore_answer_record(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    size_t                       len;
    u_char                      *p, *text;
    ngx_uint_t                   shows;
    ngx_http_urlstore_out_t     *out;
    us_answer_record_t   rec;

    out = &batch->records;

    if (batch->over) {
        e->ref.len = 0;
    }

    /* a router sends the URL of an id to the other owners of its slot */

    shows = e->by_id && answer == US_ANSWER_ERASED && batch->ctx->tagged;

    /* a reason is short; no other has a ref and no item */

    if (ngx_http_urlstore_out_room(out, sizeof(us_answer_record_t)
                                        + US_REFUSAL_WORD
                                        + (e->item ? e->item->url.len + 8 : 0)
                                        + (shows ? US_URL_MAX + 8 : 0)
                                        + e->ref.len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rec.id = ngx_http_urlstore_id(batch->ctx->zone,
                               ngx_http_urlstore_answer_id(batch, e, answer));
    rec.stored = batch->answers.set && e->item
                 && (us_answer_known(answer) || answer == US_ANSWER_UNSEEN)
                 ? us_answer_of(e->item->stored) : US_ANSWER_NONE;
    rec.index = batch->ctx->processed;
    rec.ref_len = e->ref.len;
    rec.answer = answer;
    rec.claimed = us_answer_known(answer) ? e->item->claimed : 0;
    rec.new_site = (answer == US_ANSWER_NEW && e->item->new_site)
                   || (answer == US_ANSWER_UNSEEN
                       && batch->answers.unseen_sites
                       && !us_store_site_known(batch->ctx->zone->store,
                                               e->item));

    text = out->pos + sizeof(us_answer_record_t);
    p = text;

    if (batch->answers.brief && batch->ctx->format == US_FORMAT_TEXT
        && batch->ctx->processed)
    {
        rec.text = US_ANSWER_NO_TEXT;

    } else if (answer == US_ANSWER_INVALID
               || answer == US_ANSWER_REJECTED
               || answer == US_ANSWER_REFUSED)
    {
        rec.text = US_ANSWER_WHY;
        p = us_refusal_word(p, &e->refusal);

    } else if (answer == US_ANSWER_UNAVAILABLE) {
        rec.text = US_ANSWER_WHY;
        p = ngx_cpymem(p, "moved", 5);

    } else if (e->item == NULL) {

        /* a mark or a claim by its id */

        rec.text = US_ANSWER_NO_TEXT;

        if (rec.id != US_STORE_NO_ID && answer != US_ANSWER_DELETED
            && answer != US_ANSWER_ERASED)
        {
            rec.text = US_ANSWER_LOOK_UP;
            batch->long_reply |= (batch->ctx->processed != 0);
        }

        if (shows && us_store_text(batch->ctx->zone->store, e->id, p, &len)
                     == US_OK)
        {
            rec.text = US_ANSWER_URL;
            p += len;
        }

    } else {

        if (batch->ctx->zone->store && rec.id == US_STORE_NO_ID
            && (answer == US_ANSWER_UNSEEN
                || answer == US_ANSWER_FULL
                || answer == US_ANSWER_UNKNOWN))
        {
            us_store_spell(batch->ctx->zone->store, e->item);
        }

        if (e->same && us_store_item_same(e->item)) {
            rec.text = US_ANSWER_SAME;

        } else if (rec.id != US_STORE_NO_ID && batch->ctx->zone->store
                   && batch->long_reply && answer != US_ANSWER_ERASED)
        {
            rec.text = US_ANSWER_LOOK_UP;

        } else if (batch->over) {
            rec.text = US_ANSWER_NO_TEXT;

        } else {
            rec.text = US_ANSWER_URL;
            p += us_store_item_url(e->item, p);
        }
    }

    rec.text_len = p - text;

    ngx_memcpy(out->pos, &rec, sizeof(us_answer_record_t));
    out->pos = ngx_cpymem(p, e->ref.data, e->ref.len);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_answer(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e)
{
    size_t                    size;
    ngx_uint_t                answer;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    answer = ngx_http_urlstore_answer_of(batch, e);

    if (answer == US_ANSWER_SEEN || answer == US_ANSWER_DUE) {
        ctx->top = ngx_max(ctx->top, e->item->id + 1);
    }

    e->refusal.erased = (answer == US_ANSWER_REFUSED);

    if (ctx->processed == 0) {
        batch->first = answer;
        batch->refusal = e->refusal;
    }

    if (!batch->answers.only_new || us_answer_shown(answer)
        || ctx->processed == 0)
    {
        if (ngx_http_urlstore_answer_record(batch, e, answer) != NGX_OK) {
            return ngx_http_urlstore_fault(batch->ctx,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for the reply");
        }
    }

    batch->answers.counts[answer]++;
    ctx->processed++;

    size = ngx_http_urlstore_out_size(&batch->records);

    if (size > NGX_HTTP_URLSTORE_KEPT) {
        batch->long_reply = 1;
    }

    if (size > batch->ctx->conf->max_reply && !batch->over) {

        /* the rest of the group is in the store: its ids are recorded */

        batch->over = 1;
        batch->long_reply = 1;

        (void) ngx_http_urlstore_fault(batch->ctx,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "the answers have more than %uz bytes "
                                       "(urlstore_max_reply): send fewer "
                                       "URLs, or brief=1",
                                       batch->ctx->conf->max_reply);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_answer_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    us_str_t                    text, ref;
    ngx_int_t                   rc;
    ngx_buf_t                  *b;
    ngx_uint_t                  looked;
    us_answer_record_t          rec;
    ngx_http_urlstore_batch_t  *batch;

    batch = ctx->data;
    looked = 0;

    if (batch->answers.shards == NULL) {
        batch->answers.epoch = ctx->zone->conf.epoch;
    }

    if (!batch->begun) {
        batch->begun = 1;
        batch->answers.format = ctx->format;

        /* after the members of a problem, the results are more of them */

        if (ctx->format == US_FORMAT_JSON && !batch->answers.single
            && ngx_http_urlstore_out_printf(out, 16, "%s\"results\":[",
                                            batch->end == NGX_DONE ? "{" : ",")
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (batch->show) {
        batch->at = NULL;
        rc = batch->show(batch, out);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    while (batch->at) {
        b = batch->at->buf;

        while (b->pos < b->last) {

            if (batch->long_reply
                && (looked == NGX_HTTP_URLSTORE_LOOKED
                    || ngx_http_urlstore_out_enough(out)))
            {
                return NGX_AGAIN;
            }

            ngx_memcpy(&rec, b->pos, sizeof(us_answer_record_t));
            b->pos += sizeof(us_answer_record_t);

            looked += (rec.text == US_ANSWER_LOOK_UP);

            text.data = b->pos;
            text.len = rec.text_len;

            ref.data = b->pos + rec.text_len;
            ref.len = rec.ref_len;

            if (ngx_http_urlstore_answer_show(batch, out, &rec, text, ref)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            b->pos += rec.text_len + rec.ref_len;
        }

        batch->at = batch->at->next;

        (void) ngx_http_urlstore_out_sent(&batch->records);
    }

    if (!batch->answers.single) {

        if (ngx_http_urlstore_out_room(out, US_ANSWER_SUMMARY
                           + batch->answers.erased.len
                           + us_answer_shards_max(batch->answers.nshards))
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        out->pos = us_answer_end(out->pos, &batch->answers);
    }

    return NGX_OK;
}


/* what has its URLs is written at once, into pieces that the records leave */

ngx_int_t
ngx_http_urlstore_answer_reply(ngx_http_urlstore_batch_t *batch)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    if (batch->long_reply) {
        return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_answer_produce);
    }

    if (ngx_http_urlstore_answer_produce(ctx, &ctx->out) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_answer_show(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_out_t *out, us_answer_record_t *rec, us_str_t text,
    us_str_t ref)
{
    size_t  len;
    u_char  buf[US_URL_MAX + 8];

    if (batch->answers.only_new && !batch->answers.single
        && !us_answer_shown(rec->answer))
    {
        /* the first one, which could have been the only one, has a record */

        return NGX_OK;
    }

    if (rec->text == US_ANSWER_LOOK_UP) {

        /* a DELETE may have come between */

        if (us_store_get(batch->ctx->zone->store,
                         rec->id - batch->ctx->zone->first_id, buf, &len)
            == US_OK)
        {
            text.data = buf;
            text.len = len;

        } else {
            rec->text = US_ANSWER_NO_TEXT;
        }
    }

    if (ngx_http_urlstore_out_room(out, us_answer_max(text.len, ref.len)
                                + batch->answers.erased.len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    out->pos = (batch->answers.format == US_FORMAT_TEXT)
               ? us_answer_line(out->pos, &batch->answers, rec, text)
               : us_answer_object(out->pos, &batch->answers, rec, text, ref);

    return NGX_OK;
}
