
/*
 * Rounds of a router: what a us_scatter_t asks, as calls to shards.
 *
 *     fan_wait()    the items are there, and what is to be asked
 *        |
 *     round         a call for each lane, and then for its next part
 *        |
 *     round ...
 *        |
 *     done()        all is answered, as far as it will be
 *
 * A request keeps to the map that it began with.  If a shard does not own a URL
 * (`moved`) the map is older than the shard's: it is read again, and those URLs
 * are tried again, twice at most.
 *
 * What the client has asked for may be wrong in a way that only a shard can
 * notice: a set that is not there, a time where no claims are kept.  Then
 * no item has an answer, and the problem that a shard has sent is the reply.
 */


#include "ngx_http_urlstore_route.h"


/* how often a request reads the map again */
#define NGX_HTTP_URLSTORE_REMAPS   2


static void
ngx_http_urlstore_rounds_cleanup(void *data)
{
    ngx_http_urlstore_rounds_t *rounds = data;

    us_scatter_free(&rounds->s);
}


static ngx_int_t
ngx_http_urlstore_rounds_body(ngx_http_urlstore_rounds_t *rounds, ngx_uint_t i)
{
    size_t                    k;
    us_str_t                  url;
    us_lane_t                *lane;
    ngx_chain_t              *cl;
    ngx_http_urlstore_out_t  *out;

    lane = &rounds->s.lanes[i];
    out = &rounds->bodies[i];

    /* the pieces of the part before, sent or not, serve this one */

    (void) ngx_http_urlstore_out_take(out, 0);

    for (cl = out->busy; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
    }

    (void) ngx_http_urlstore_out_sent(out);

    for (k = 0; k < lane->part; k++) {
        url = rounds->s.items[lane->items[lane->at + k]].url;

        if (ngx_http_urlstore_out_room(out, url.len + 1) != NGX_OK) {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, url.data, url.len);
        *out->pos++ = '\n';
    }

    rounds->fan->calls[i].body = ngx_http_urlstore_out_take(out, 0);

    return NGX_OK;
}


/* sends the next part of a lane, if there is one and a call can be made */

static void
ngx_http_urlstore_rounds_part(ngx_http_urlstore_rounds_t *rounds, ngx_uint_t i)
{
    us_lane_t                 *lane;
    ngx_http_urlstore_call_t  *call;

    lane = &rounds->s.lanes[i];
    call = &rounds->fan->calls[i];

    for ( ;; ) {
        call->length = us_scatter_part(&rounds->s, lane,
                                       NGX_HTTP_URLSTORE_CALL_REPLY);

        if (call->length == 0
            || (!rounds->over
                && ngx_http_urlstore_rounds_body(rounds, i) == NGX_OK
                && ngx_http_urlstore_call_begin(rounds->fan, call) == NGX_OK))
        {
            return;
        }

        us_scatter_failed(&rounds->s, lane);
    }
}


static ngx_int_t
ngx_http_urlstore_rounds_begin(ngx_http_urlstore_rounds_t *rounds)
{
    ngx_uint_t                 i;
    us_lane_t                 *lane;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = rounds->fan;

    rounds->bodies = ngx_pcalloc(fan->ctx->r->pool, rounds->s.nlanes
                                             * sizeof(ngx_http_urlstore_out_t));

    if (rounds->bodies == NULL
        || ngx_http_urlstore_fan_calls(fan, rounds->s.nlanes, NGX_HTTP_POST)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        lane = &rounds->s.lanes[i];
        call = &fan->calls[i];

        call->shard = lane->shard;
        call->path = lane->ask ? rounds->look_up : rounds->action;
        call->end.reads = lane->ask || rounds->s.action == US_SCATTER_SEEN
                          || rounds->s.lists;

        if (ngx_http_urlstore_out_init(&rounds->bodies[i], fan->ctx->r->pool, 0)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_http_urlstore_rounds_part(rounds, i);
    }

    return NGX_OK;
}


/*
 * Of the fan: rounds until one has calls under way, or all is answered; what
 * has moved is asked by another map, if there is one.
 */

static ngx_int_t
ngx_http_urlstore_rounds_next(ngx_http_urlstore_ctx_t *ctx)
{
    int                           rc;
    const us_map_t               *map;
    ngx_http_urlstore_rounds_t   *rounds;
    ngx_http_urlstore_cluster_t  *cluster;

    rounds = ngx_http_urlstore_rounds_of(ctx->r);
    cluster = ctx->zone->own;

    for ( ;; ) {
        rc = us_scatter_round(&rounds->s);

        if (rc == 1) {

            if (ngx_http_urlstore_rounds_begin(rounds) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (rounds->fan->under_way) {
                return NGX_AGAIN;
            }

            continue;
        }

        if (rc == -1) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rounds->remaps == NGX_HTTP_URLSTORE_REMAPS
            || us_scatter_moved(&rounds->s) == 0)
        {
            return rounds->done(ctx);
        }

        rounds->remaps++;

        /* even if the file was looked at a moment ago */

        cluster->looked = 0;

        map = ngx_http_urlstore_cluster_hold(cluster, ctx->r->pool);

        if (map == NULL || map->version <= rounds->s.map->version) {
            return rounds->done(ctx);
        }

        rounds->fan->map = map;

        if (us_scatter_remap(&rounds->s, map) != 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
}


/*
 * Of the fan.  After a part without a whole answer the other parts of its lane
 * are not sent: a shard that hangs would do them all later, after their answers
 * were given up.
 */

static void
ngx_http_urlstore_rounds_ended(ngx_http_urlstore_fan_t *fan,
    ngx_http_urlstore_call_t *call)
{
    size_t                       n, asked;
    uint64_t                     erasure;
    ngx_uint_t                   answers;
    us_lane_t                   *lane;
    us_scatter_t                *s;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = fan->data;
    s = &rounds->s;
    lane = &s->lanes[call - fan->calls];

    asked = lane->part;
    n = 0;
    answers = call->end.status == NGX_HTTP_OK
              || call->end.status == NGX_HTTP_ACCEPTED;

    lane->unsure = us_wire_unsure(&call->end);

    /* what a former owner has seen, a lost try may have added there */

    if (lane->ask
        || call->headers[NGX_HTTP_URLSTORE_CALL_REPEATED].data == NULL)
    {
        rounds->forgets = 1;
    }

    if (answers && call->received > call->end.text.len) {
        n = us_scatter_reply_cut(s, lane, call->end.text);

    } else if (answers) {
        n = us_scatter_reply(s, lane, call->end.text);
        erasure = s->shards[lane->shard].erasure;

        if (erasure) {
            (void) ngx_http_urlstore_parts_add(&rounds->parts,
                                             s->map->shards[lane->shard].number,
                                             erasure);
        }

    } else {
        us_scatter_failed(s, lane);

        if (rounds->refusal.end.status == 0
            && ngx_http_urlstore_call_problem(call))
        {
            rounds->refusal = *call;
        }
    }

    /* how long the answers to ids are is not known before */

    if (s->action == US_SCATTER_BY_ID && !lane->ask) {
        rounds->size += call->end.text.len;
        rounds->over = (rounds->limit && rounds->size > rounds->limit);
    }

    if (n < asked) {

        if (answers || (call->end.status == 0 && !call->end.refused))
        {
            lane->part = lane->n - lane->at;
            asked += lane->part;
            lane->unsure = 0;

            us_scatter_failed(s, lane);
        }

        ngx_http_urlstore_call_log(call, asked - n);
    }

    ngx_http_urlstore_rounds_part(rounds, call - fan->calls);
}


ngx_int_t
ngx_http_urlstore_rounds_create(ngx_http_urlstore_ctx_t *ctx,
    us_scatter_action_t action, ngx_http_urlstore_rounds_t **made)
{
    ngx_int_t                    rc;
    ngx_pool_cleanup_t          *cln;
    ngx_http_urlstore_fan_t     *fan;
    ngx_http_urlstore_rounds_t  *rounds;

    rc = ngx_http_urlstore_fan(ctx, &fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    cln = ngx_pool_cleanup_add(ctx->r->pool,
                               sizeof(ngx_http_urlstore_rounds_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rounds = cln->data;
    ngx_memzero(rounds, sizeof(ngx_http_urlstore_rounds_t));

    if (us_scatter_init(&rounds->s, fan->map, action) != 0
        || ngx_array_init(&rounds->parts, ctx->r->pool, 1,
                          sizeof(ngx_http_urlstore_part_t))
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_rounds_cleanup;
    rounds->fan = fan;

    fan->ended = ngx_http_urlstore_rounds_ended;
    fan->done = ngx_http_urlstore_rounds_next;
    fan->data = rounds;
    *made = rounds;

    return NGX_DECLINED;
}


ngx_http_urlstore_rounds_t *
ngx_http_urlstore_rounds_of(ngx_http_request_t *r)
{
    ngx_http_urlstore_fan_t  *fan;

    fan = ngx_http_get_module_ctx(r, ngx_http_urlstore_route_module);

    return fan->data;
}


ngx_int_t
ngx_http_urlstore_rounds_none(ngx_http_urlstore_rounds_t *rounds)
{
    size_t              i;
    const char         *members;
    us_scatter_item_t  *item;

    item = NULL;

    for (i = rounds->s.n; i; i--) {

        if (rounds->s.items[i - 1].unsure) {
            return ngx_http_urlstore_route_unknown(rounds->fan->ctx,
                                               rounds->s.items[i - 1].number);
        }

        if (rounds->s.items[i - 1].status == US_ANSWER_UNAVAILABLE) {
            item = &rounds->s.items[i - 1];
        }
    }

    if (rounds->refusal.end.status) {
        return ngx_http_urlstore_relay_reply(rounds->fan->ctx,
                                             &rounds->refusal);
    }

    if (item == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (item->moved && !item->lost) {
        members = rounds->fan->ctx->r->method == NGX_HTTP_POST
                  ? "\"processed\":0,\"reason\":\"moved\""
                  : "\"reason\":\"moved\"";

        return ngx_http_urlstore_route_absent(rounds->fan->ctx, members,
                                              "no shard owns these URLs by "
                                              "the map that this router has");
    }

    return ngx_http_urlstore_route_silent(rounds->fan->ctx, item->number);
}
