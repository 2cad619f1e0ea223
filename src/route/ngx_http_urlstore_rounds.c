
/*
 * See ngx_http_urlstore_rounds.h.
 */


#include "ngx_http_urlstore_rounds.h"


/* how often a request reads the map again */
#define NGX_HTTP_URLSTORE_REMAPS   2


static void ngx_http_urlstore_rounds_cleanup(void *data);
static ngx_int_t ngx_http_urlstore_rounds_next(
    ngx_http_urlstore_rounds_t *rounds);
static ngx_int_t ngx_http_urlstore_rounds_remap(
    ngx_http_urlstore_rounds_t *rounds);
static ngx_int_t ngx_http_urlstore_rounds_begin(
    ngx_http_urlstore_rounds_t *rounds);
static void ngx_http_urlstore_rounds_call(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l);
static void ngx_http_urlstore_rounds_part(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l);
static ngx_int_t ngx_http_urlstore_rounds_body(
    ngx_http_urlstore_rounds_t *rounds, ngx_http_urlstore_lane_t *l,
    size_t size);
static ngx_int_t ngx_http_urlstore_rounds_gather(ngx_http_request_t *r);
static void ngx_http_urlstore_rounds_ended(
    ngx_http_urlstore_rounds_t *rounds, ngx_http_urlstore_lane_t *l);


ngx_http_urlstore_rounds_t *
ngx_http_urlstore_rounds_create(ngx_http_request_t *r,
    us_scatter_action_t action, ngx_int_t *rc)
{
    const us_map_t              *map;
    ngx_pool_cleanup_t          *cln;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_rounds_t  *rounds;

    map = ngx_http_urlstore_route_map(r, rc);

    if (map == NULL) {
        return NULL;
    }

    *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_rounds_t));
    if (cln == NULL) {
        return NULL;
    }

    rounds = cln->data;
    ngx_memzero(rounds, sizeof(ngx_http_urlstore_rounds_t));

    if (us_scatter_init(&rounds->s, map, action) != 0) {
        return NULL;
    }

    cln->handler = ngx_http_urlstore_rounds_cleanup;
    rounds->r = r;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ctx->rounds = rounds;

    return rounds;
}


static void
ngx_http_urlstore_rounds_cleanup(void *data)
{
    ngx_http_urlstore_rounds_t *rounds = data;

    us_scatter_free(&rounds->s);
}


ngx_int_t
ngx_http_urlstore_rounds(ngx_http_urlstore_rounds_t *rounds)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_rounds_next(rounds);

    return rc == NGX_AGAIN
           ? ngx_http_urlstore_call_wait(rounds->r,
                                         ngx_http_urlstore_rounds_gather)
           : rc;
}


/* rounds until one has calls under way: NGX_AGAIN; or the request's result */

static ngx_int_t
ngx_http_urlstore_rounds_next(ngx_http_urlstore_rounds_t *rounds)
{
    int        rc;
    ngx_int_t  again;

    for ( ;; ) {
        rc = us_scatter_round(&rounds->s);

        if (rc == 1) {

            if (ngx_http_urlstore_rounds_begin(rounds) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (rounds->under_way) {
                return NGX_AGAIN;
            }

            continue;
        }

        if (rc == -1) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        again = ngx_http_urlstore_rounds_remap(rounds);

        if (again == NGX_DECLINED) {
            return rounds->done(rounds->r);
        }

        if (again != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
}


/* another map, for what has moved; NGX_DECLINED: none, or nothing has */

static ngx_int_t
ngx_http_urlstore_rounds_remap(ngx_http_urlstore_rounds_t *rounds)
{
    const us_map_t               *map;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_cluster_t  *cluster;

    if (rounds->remaps == NGX_HTTP_URLSTORE_REMAPS
        || us_scatter_moved(&rounds->s) == 0)
    {
        return NGX_DECLINED;
    }

    rounds->remaps++;

    ctx = ngx_http_get_module_ctx(rounds->r, ngx_http_urlstore_module);
    cluster = ctx->zone->own;

    /* even if the file was looked at a moment ago */

    cluster->looked = 0;

    map = ngx_http_urlstore_cluster_hold(cluster, rounds->r->pool);

    if (map == NULL || map->version <= rounds->s.map->version) {
        return NGX_DECLINED;
    }

    return us_scatter_remap(&rounds->s, map) == 0 ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_rounds_begin(ngx_http_urlstore_rounds_t *rounds)
{
    ngx_uint_t                 i;
    ngx_http_urlstore_lane_t  *l;

    rounds->nlanes = rounds->s.nlanes;
    rounds->under_way = 0;
    rounds->lanes = ngx_pcalloc(rounds->r->pool, rounds->nlanes
                                            * sizeof(ngx_http_urlstore_lane_t));
    if (rounds->lanes == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < rounds->nlanes; i++) {
        l = &rounds->lanes[i];
        l->lane = &rounds->s.lanes[i];

        ngx_http_urlstore_rounds_call(rounds, l);

        if (ngx_http_urlstore_out_init(&l->body, rounds->r->pool, 0)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < rounds->nlanes; i++) {
        ngx_http_urlstore_rounds_part(rounds, &rounds->lanes[i]);
    }

    return NGX_OK;
}


static void
ngx_http_urlstore_rounds_call(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l)
{
    ngx_http_urlstore_call_t  *call;

    call = &l->call;

    call->r = rounds->r;
    call->map = rounds->s.map;
    call->shard = l->lane->shard;
    call->method = NGX_HTTP_POST;
    call->path = l->lane->ask ? rounds->look_up : rounds->action;
    call->reads = l->lane->ask || rounds->s.action == US_SCATTER_SEEN
                  || rounds->s.lists;
}


/* sends the next part of a lane, if there is one and a call can be made */

static void
ngx_http_urlstore_rounds_part(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l)
{
    size_t  size;

    for ( ;; ) {
        size = us_scatter_part(&rounds->s, l->lane,
                               NGX_HTTP_URLSTORE_CALL_REPLY);

        if (size == 0) {
            return;
        }

        if (!rounds->over
            && ngx_http_urlstore_rounds_body(rounds, l, size) == NGX_OK
            && ngx_http_urlstore_call(&l->call) == NGX_OK)
        {
            rounds->under_way++;
            return;
        }

        us_scatter_failed(&rounds->s, l->lane);
    }
}


static ngx_int_t
ngx_http_urlstore_rounds_body(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l, size_t size)
{
    size_t                    i;
    us_str_t                  url;
    ngx_chain_t              *cl;
    ngx_http_urlstore_out_t  *out;

    out = &l->body;

    /* the pieces of the part before, sent or not, serve this one */

    (void) ngx_http_urlstore_out_take(out, 0);

    for (cl = out->busy; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
    }

    (void) ngx_http_urlstore_out_sent(out);

    for (i = 0; i < l->lane->part; i++) {
        url = rounds->s.items[l->lane->items[l->lane->at + i]].url;

        if (ngx_http_urlstore_out_room(out, url.len + 1) != NGX_OK) {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, url.data, url.len);
        *out->pos++ = '\n';
    }

    l->call.body = ngx_http_urlstore_out_take(out, 0);
    l->call.length = size;

    return NGX_OK;
}


/* of the request: see ngx_http_urlstore_call_wait() */

static ngx_int_t
ngx_http_urlstore_rounds_gather(ngx_http_request_t *r)
{
    ngx_uint_t                   i;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_lane_t    *l;
    ngx_http_urlstore_rounds_t  *rounds;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    rounds = ctx->rounds;

    for (i = 0; i < rounds->nlanes; i++) {
        l = &rounds->lanes[i];

        if (!ngx_http_urlstore_call_ended(&l->call)) {
            continue;
        }

        rounds->under_way--;

        ngx_http_urlstore_rounds_ended(rounds, l);
        ngx_http_urlstore_rounds_part(rounds, l);
    }

    return rounds->under_way ? NGX_AGAIN
                             : ngx_http_urlstore_rounds_next(rounds);
}


/*
 * After a part without a whole answer the other parts of its lane are not sent:
 * a shard that hangs would do them all later, after their answers were given
 * up.
 */

static void
ngx_http_urlstore_rounds_ended(ngx_http_urlstore_rounds_t *rounds,
    ngx_http_urlstore_lane_t *l)
{
    size_t                     n, asked;
    us_lane_t                 *lane;
    us_scatter_t              *s;
    ngx_http_urlstore_call_t  *call;

    s = &rounds->s;
    lane = l->lane;
    call = &l->call;

    asked = lane->part;
    n = 0;

    lane->unsure = ngx_http_urlstore_call_unsure(call);

    if (call->status == NGX_HTTP_OK && call->received > call->text.len) {
        n = us_scatter_reply_cut(s, lane, call->text);

    } else if (call->status == NGX_HTTP_OK) {
        n = us_scatter_reply(s, lane, call->text);

    } else {
        us_scatter_failed(s, lane);

        if (rounds->refusal.status == 0
            && ngx_http_urlstore_call_problem(call))
        {
            rounds->refusal = *call;
        }
    }

    /* how long the answers to ids are is not known before */

    if (s->action == US_SCATTER_BY_ID && !lane->ask) {
        rounds->size += call->text.len;
        rounds->over = (rounds->limit && rounds->size > rounds->limit);
    }

    if (n == asked) {
        return;
    }

    if (call->status == NGX_HTTP_OK || (call->status == 0 && !call->refused)) {
        lane->part = lane->n - lane->at;
        asked += lane->part;
        lane->unsure = 0;

        us_scatter_failed(s, lane);
    }

    ngx_http_urlstore_call_log(call, asked - n);
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
            return ngx_http_urlstore_route_unknown(rounds->r,
                                               rounds->s.items[i - 1].number);
        }

        if (rounds->s.items[i - 1].status == US_WIRE_UNAVAILABLE) {
            item = &rounds->s.items[i - 1];
        }
    }

    if (rounds->refusal.status || item == NULL) {
        return ngx_http_urlstore_relay_reply(rounds->r, &rounds->refusal);
    }

    if (item->moved && !item->lost) {
        members = rounds->r->method == NGX_HTTP_POST
                  ? "\"processed\":0,\"reason\":\"moved\""
                  : "\"reason\":\"moved\"";

        return ngx_http_urlstore_route_absent(rounds->r, members,
                                              "no shard owns these URLs by "
                                              "the map that this router has");
    }

    return ngx_http_urlstore_route_silent(rounds->r, item->number);
}
