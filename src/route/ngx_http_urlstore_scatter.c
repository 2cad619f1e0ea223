
/*
 * /add, /seen, /set, /mark, /claim and /erase of a router: a batch divided
 * among shards.
 *
 *     groups of entries --> us_scatter_t                   while the body comes
 *                              |
 *                           rounds                         the body has ended
 *                              |
 *                           answers: counted; shown by ngx_http_urlstore_batch
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_route.h"


/* bytes of a reason that is made here */
#define NGX_HTTP_URLSTORE_WORD  (sizeof("unknown:") + NGX_INT32_LEN)


/*
 * What a shard is asked, by the client's options.  Neither a duration nor a set
 * has a byte that is to be escaped.
 */

static ngx_int_t
ngx_http_urlstore_scatter_paths(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_rounds_t *rounds)
{
    us_str_t                  reason;
    ngx_int_t                 rc;
    ngx_str_t                 older, set, at, value, *look_up;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    time[sizeof("&at=") + NGX_INT64_LEN];

    ctx = batch->ctx;
    look_up = &rounds->look_up;

    ngx_str_null(&older);
    ngx_str_null(&set);

    if (batch->answers.set) {
        set = ctx->set_name;
    }

    if (batch->answers.older) {
        (void) ngx_http_urlstore_arg(ctx, "older", &older);
    }

    rc = ngx_http_urlstore_route_path(ctx, look_up,
                                      "/seen?summary=1&same=1%s%s%s%V%s%V",
                                      batch->answers.sites ? "&sites=1" : "",
                                      batch->answers.times ? "&times=1" : "",
                                      batch->answers.older ? "&older=" : "",
                                      &older, batch->answers.set
                                              ? "&stored=1&set=" : "", &set);

    if (rc != NGX_OK || batch->action == NGX_HTTP_URLSTORE_SEEN) {
        rounds->action = *look_up;
        return rc;
    }

    if (batch->action == NGX_HTTP_URLSTORE_ADD) {
        return ngx_http_urlstore_route_path(ctx, &rounds->action, "/add%*s",
                                            look_up->len - 5,
                                            look_up->data + 5);
    }

    if (batch->action == NGX_HTTP_URLSTORE_ERASE) {
        reason = us_string("");
        (void) us_args_find(ngx_http_urlstore_str(&ctx->r->args), "reason",
                            &reason);

        rc = ngx_http_urlstore_parts_key(ctx);

        return rc != NGX_OK ? rc
               : ngx_http_urlstore_route_path(ctx, &rounds->action,
                                              "/erase?reason=%*s", reason.len,
                                              reason.data);
    }

    /* /set/NAME, /mark/NAME or /claim */

    at.data = time;
    at.len = batch->action == NGX_HTTP_URLSTORE_CLAIM
             && ngx_http_urlstore_arg(ctx, "at", &value)
             ? (size_t) (ngx_sprintf(time, "&at=%uL", batch->at_time) - time)
             : 0;

    return ngx_http_urlstore_route_path(ctx, &rounds->action,
                                        "/%V%s%V?summary=1%s%V",
                                        &ctx->endpoint->name,
                                        ctx->set_name.len ? "/" : "",
                                        &ctx->set_name,
                                        !batch->clear ? ""
                                        : batch->answers.ids ? "&remove=1"
                                                             : "&clear=1",
                                        &at);
}


/* of an item that is done; word: room for a reason */

static void
ngx_http_urlstore_scatter_record(ngx_http_urlstore_batch_t *batch,
    ngx_uint_t i, us_answer_record_t *rec, us_str_t *text,
    u_char word[NGX_HTTP_URLSTORE_WORD])
{
    us_scatter_item_t           *item;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = batch->own;
    item = &rounds->s.items[i];

    *text = item->text;

    rec->id = item->id;
    rec->claimed = item->time;
    rec->index = i;
    rec->stored = item->stored;
    rec->new_site = (item->site == US_WIRE_SITE_NEW);
    rec->text = US_ANSWER_WHY;
    rec->answer = item->status;

    switch (rec->answer) {

    case US_ANSWER_UNAVAILABLE:
        rec->id = US_STORE_NO_ID;

        text->data = word;
        text->len = (item->moved && !item->lost
                     ? ngx_sprintf(word, "moved")
                     : ngx_sprintf(word, "%s:%ui",
                                   item->unsure ? "unknown" : "shard",
                                   (ngx_uint_t) item->number))
                    - word;
        break;

    case US_ANSWER_INVALID:
    case US_ANSWER_REJECTED:
    case US_ANSWER_REFUSED:
        break;

    case US_ANSWER_UNKNOWN:
        rec->id = US_STORE_NO_ID;

        /* fall through */

    default:

        /* of what was sent as an id, there may be no URL */

        rec->text = text->len > 1 && !(item->by_id && batch->answers.erases)
                    ? US_ANSWER_URL : US_ANSWER_NO_TEXT;
        text->len = text->len > 1 ? text->len : 0;
        break;
    }
}


/*
 * The first item, which may be the only one, has a record, and its refusal:
 * what a shard refuses and the router does not is known by the word in its
 * answer.
 */

static ngx_int_t
ngx_http_urlstore_scatter_first(ngx_http_urlstore_batch_t *batch)
{
    size_t                       len;
    us_str_t                     text;
    us_refusal_t                *refusal;
    us_verdict_t                 v;
    us_scatter_item_t           *item;
    us_answer_record_t           rec;
    ngx_http_urlstore_out_t     *out;
    ngx_http_urlstore_rounds_t  *rounds;
    u_char                       word[NGX_HTTP_URLSTORE_WORD];
    u_char                       why[US_REFUSAL_WORD];

    rounds = batch->own;
    item = rounds->s.items;
    out = &batch->records;
    refusal = &batch->refusal;

    if (rounds->s.n == 0) {
        return NGX_OK;
    }

    ngx_http_urlstore_scatter_record(batch, 0, &rec, &text, word);

    if (ngx_http_urlstore_out_room(out, sizeof(us_answer_record_t) + text.len
                                        + item->ref.len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rec.text_len = text.len;
    rec.ref_len = item->ref.len;

    out->pos = ngx_cpymem(out->pos, &rec, sizeof(us_answer_record_t));
    out->pos = us_put_str(out->pos, text);
    out->pos = us_put_str(out->pos, item->ref);

    batch->first = rec.answer;

    if (item->url.len == 0) {

        /* it was sent to no shard */

        return NGX_OK;
    }

    ngx_memzero(refusal, sizeof(us_refusal_t));

    refusal->erased = (rec.answer == US_ANSWER_REFUSED);

    if (rec.answer == US_ANSWER_INVALID || rec.answer == US_ANSWER_REJECTED) {
        refusal->kind = US_INPUT_URL;
        refusal->rule = text;

        if (text.len > 5 && ngx_memcmp(text.data, "rule:", 5) == 0) {
            refusal->rule.data += 5;
            refusal->rule.len -= 5;
        }

        for (v = US_URL_SCHEME; v <= US_URL_BUDGET; v++) {
            refusal->verdict = v;
            len = us_refusal_word(why, refusal) - why;

            if (v != US_URL_RULE && len == text.len
                && ngx_memcmp(why, text.data, len) == 0)
            {
                break;
            }
        }

        if (v > US_URL_BUDGET) {
            refusal->verdict = US_URL_RULE;
        }
    }

    return NGX_OK;
}


/* next_ids and epochs; of a single item, those of its shard */

static ngx_int_t
ngx_http_urlstore_scatter_shards(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                   i;
    us_answer_shard_t           *a;
    us_scatter_shard_t          *shard;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = batch->own;

    a = ngx_palloc(batch->ctx->r->pool, rounds->s.map->nshards
                                   * sizeof(us_answer_shard_t));
    if (a == NULL) {
        return NGX_ERROR;
    }

    batch->answers.shards = a;

    for (i = 0; i < rounds->s.map->nshards; i++) {
        shard = &rounds->s.shards[i];

        if (!shard->answered) {
            continue;
        }

        a->number = rounds->s.map->shards[i].number;
        a->next_id = shard->first.next_id;
        a->epoch = shard->first.epoch;

        if (rounds->s.n == 1 && a->number == rounds->s.items[0].number) {
            batch->answers.next_id = a->next_id;
            batch->answers.epoch = a->epoch;
        }

        a++;
    }

    batch->answers.nshards = a - batch->answers.shards;

    return NGX_OK;
}


/* the erasure gets its name; of DELETE /url/ID the reply is the erasure */

static ngx_int_t
ngx_http_urlstore_scatter_erased(ngx_http_urlstore_batch_t *batch)
{
    ngx_str_t                   *name;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_rounds_t  *rounds;

    ctx = batch->ctx;
    rounds = batch->own;

    if (rounds->parts.nelts == 0) {
        return ngx_http_urlstore_batch_end(batch);
    }

    name = ngx_palloc(ctx->r->pool, sizeof(ngx_str_t));

    if (name == NULL
        || ngx_http_urlstore_parts_name(ctx->r->pool, &rounds->parts, name)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->r->method == NGX_HTTP_DELETE && batch->first == US_ANSWER_ERASED) {
        return ngx_http_urlstore_parts_show(ctx, &rounds->parts, name);
    }

    batch->answers.erased = ngx_http_urlstore_str(name);

    if (batch->end == NGX_DONE) {
        ngx_http_urlstore_parts_accepted(ctx, name);
    }

    return ngx_http_urlstore_batch_end(batch);
}


/* all is answered, as far as it will be */

static ngx_int_t
ngx_http_urlstore_scatter_done(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                    *counts;
    ngx_int_t                    rc;
    ngx_uint_t                   i, repeats;
    us_scatter_t                *s;
    us_scatter_item_t           *item;
    ngx_http_urlstore_batch_t   *batch;
    ngx_http_urlstore_rounds_t  *rounds;

    batch = ctx->data;
    counts = batch->answers.counts;
    rounds = batch->own;
    s = &rounds->s;

    repeats = ctx->key.name && ngx_http_urlstore_repeatable(batch);
    ctx->repeats = repeats && !rounds->forgets;

    for (i = 0; i < s->n; i++) {
        item = &s->items[i];

        if (item->status == US_ANSWER_NONE
            || item->status == US_ANSWER_DAMAGED)
        {
            item->status = US_ANSWER_UNAVAILABLE;
        }

        /* of equal items in two parts of a lane, a shard repeats both */

        if (repeats && (item->status == US_ANSWER_NEW
                        || item->status == US_ANSWER_DUE
                        || item->status == US_ANSWER_IN))
        {
            rc = ngx_http_urlstore_once(batch, item->id);

            if (rc == NGX_ERROR) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (rc == NGX_DECLINED) {
                item->status = item->status == US_ANSWER_IN ? US_ANSWER_WAS
                                                            : US_ANSWER_SEEN;
                item->stored = item->stored ? US_ANSWER_SEEN : US_ANSWER_NONE;
                item->site = US_WIRE_SITE_KNOWN;
                item->time = 0;
            }
        }

        counts[item->status]++;
        batch->free += (item->status == US_ANSWER_NEW
                        && item->stored == US_ANSWER_SEEN);
    }

    ctx->processed = s->n;
    batch->long_reply = (rounds->texts > NGX_HTTP_URLSTORE_KEPT);

    ctx->wrote = (counts[US_ANSWER_NEW] | counts[US_ANSWER_DUE]
                  | counts[US_ANSWER_SET] | counts[US_ANSWER_CLEAR]
                  | counts[US_ANSWER_IN] | counts[US_ANSWER_WAS]
                  | counts[US_ANSWER_OUT] | counts[US_ANSWER_CLAIMED]
                  | counts[US_ANSWER_ERASED])
                 != 0;

    if (batch->end == NGX_DONE && s->n && counts[US_ANSWER_UNAVAILABLE] == s->n)
    {
        return ngx_http_urlstore_rounds_none(rounds);
    }

    if (batch->end == NGX_DONE && rounds->over) {
        batch->end = ngx_http_urlstore_fault(ctx,
                                        NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                        "the answers have more than %uz bytes "
                                        "(urlstore_max_reply): send fewer "
                                        "items", rounds->limit);
    }

    if (ngx_http_urlstore_scatter_first(batch) != NGX_OK
        || ngx_http_urlstore_scatter_shards(batch) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return batch->answers.erases ? ngx_http_urlstore_scatter_erased(batch)
                                 : ngx_http_urlstore_batch_end(batch);
}


/* of the batch: NGX_AGAIN, there are more answers */

static ngx_int_t
ngx_http_urlstore_scatter_show(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_out_t *out)
{
    us_str_t                     text;
    us_answer_record_t           rec;
    ngx_http_urlstore_rounds_t  *rounds;
    u_char                       word[NGX_HTTP_URLSTORE_WORD];

    rounds = batch->own;

    for ( /* void */ ; rounds->shown < rounds->s.n; rounds->shown++) {

        if (batch->long_reply && ngx_http_urlstore_out_enough(out)) {
            return NGX_AGAIN;
        }

        ngx_http_urlstore_scatter_record(batch, rounds->shown, &rec, &text,
                                         word);

        if (ngx_http_urlstore_answer_show(batch, out, &rec, text,
                                          rounds->s.items[rounds->shown].ref)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_scatter_begin(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                    rc;
    us_scatter_action_t          action;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_rounds_t  *rounds;

    ctx = batch->ctx;

    action = batch->action == NGX_HTTP_URLSTORE_ADD ? US_SCATTER_ADD
             : batch->action == NGX_HTTP_URLSTORE_SEEN ? US_SCATTER_SEEN
             : batch->action == NGX_HTTP_URLSTORE_ERASE ? US_SCATTER_ERASE
             : US_SCATTER_BY_ID;

    rc = ngx_http_urlstore_rounds_create(ctx, action, &rounds);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (batch->answers.sites && rounds->s.map->key != US_KEY_SITE) {
        return ngx_http_urlstore_route_sites(ctx, "sites");
    }

    if (ngx_http_urlstore_scatter_paths(batch, rounds) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rounds->done = ngx_http_urlstore_scatter_done;
    rounds->limit = batch->ctx->conf->max_reply;
    rounds->s.columns.same = 1;
    rounds->s.columns.sites = batch->answers.sites;
    rounds->s.columns.times = batch->answers.times;
    rounds->s.columns.stored = batch->answers.set;
    rounds->s.answers = batch->answers.erases
                        ? 1 << US_ANSWER_ERASED | 1 << US_ANSWER_FULL
                        : batch->action == NGX_HTTP_URLSTORE_CLAIM
                        ? 1 << US_ANSWER_CLAIMED
                        : batch->answers.marks
                        ? 1 << (batch->clear ? US_ANSWER_CLEAR : US_ANSWER_SET)
                        : batch->clear
                        ? 1 << US_ANSWER_OUT | 1 << US_ANSWER_UNSEEN
                        : 1 << US_ANSWER_IN | 1 << US_ANSWER_WAS;

    /* until the shard of a single item has answered */

    batch->answers.next_id = US_STORE_NO_ID;

    batch->own = rounds;
    batch->show = ngx_http_urlstore_scatter_show;

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_scatter_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    int                          rc;
    us_str_t                     why;
    ngx_http_urlstore_entry_t   *e;
    ngx_http_urlstore_rounds_t  *rounds;
    u_char                       word[US_REFUSAL_WORD];

    rounds = batch->own;

    for ( /* void */ ; g->answered < g->n; g->answered++) {
        e = &g->entries[g->answered];

        if (rounds->texts > batch->ctx->conf->max_reply) {
            return ngx_http_urlstore_fault(batch->ctx,
                                           NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                           "the answers have more than %uz "
                                           "bytes (urlstore_max_reply): send "
                                           "fewer URLs",
                                           batch->ctx->conf->max_reply);
        }

        rounds->texts += sizeof(us_answer_record_t) + e->ref.len
                    + (e->item ? e->item->url.len : US_REFUSAL_WORD);

        if (rounds->s.n == 0) {
            batch->refusal = e->refusal;
        }

        if (e->item) {
            rc = us_scatter_url(&rounds->s, e->item->url);

        } else if (e->by_id) {

            /* an id that no shard can have given is unknown */

            rc = e->id >> US_SHARD_SHIFT < US_SHARDS
                 ? us_scatter_id(&rounds->s, e->id)
                 : us_scatter_local(&rounds->s, US_ANSWER_UNKNOWN,
                                    us_string(""));

        } else {
            why.data = word;
            why.len = us_refusal_word(word, &e->refusal) - word;

            rc = us_scatter_local(&rounds->s,
                                  e->refusal.kind == US_INPUT_URL
                                  && us_verdict_rejected(e->refusal.verdict)
                                  ? US_ANSWER_REJECTED : US_ANSWER_INVALID,
                                  why);
        }

        if (rc == 0 && e->ref.len) {
            rc = us_scatter_ref(&rounds->s, ngx_http_urlstore_str(&e->ref));
        }

        if (rc != 0) {
            return ngx_http_urlstore_fault(batch->ctx,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for the batch");
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_scatter(ngx_http_urlstore_batch_t *batch)
{
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = batch->own;

    if (batch->ctx->r->connection->error) {

        /* nobody will have the answers: what is not added is new to a retry */

        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    if (batch->end != NGX_DONE && batch->ctx->fault.len == 0) {
        return ngx_http_urlstore_batch_end(batch);
    }

    return ngx_http_urlstore_fan_wait(rounds->fan);
}
