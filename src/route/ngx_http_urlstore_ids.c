
/*
 * /url of a router.
 *
 * One id, GET and DELETE of /url/ID: the shard gets the request with the
 * arguments and the Accept of the client, and its reply is the client's.
 *
 * Lists of ids, GET /url/7,9 and POST /url:
 *
 *     list "7,9,..."                    of ngx_http_urlstore_url.c
 *         |
 *     rounds                            each id to its shard
 *         |
 *     reply                             as the client has written the ids
 *
 * An id of a shard that has not answered, or that the map lacks, is
 * `unavailable`.
 */


#include "ngx_http_urlstore_rounds.h"
#include "../api/us_list.h"
#include "../us_text.h"


/* bytes of a client's id that a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN    40


/* a list: the reply as far as it is written */

typedef struct {
    us_list_t                       list;
    ngx_chain_t                    *ids;      /* not shown so far */
    size_t                          n;        /* shown */
} ngx_http_urlstore_shown_t;


/* no shard can have given what is no shard's number, or longer */

static ngx_int_t
ngx_http_urlstore_ids_scatter(us_scatter_t *s, ngx_chain_t *ids)
{
    int        rc;
    uint64_t   id;
    us_str_t   list, text;

    for ( /* void */ ; ids; ids = ids->next) {
        list.data = ids->buf->pos;
        list.len = ids->buf->last - ids->buf->pos;

        while (list.len) {
            (void) us_list_cut(&list, &text);

            rc = us_id_parse(text, &id) == US_ID_OK
                 && id >> US_SHARD_SHIFT < US_SHARDS
                 ? us_scatter_id(s, id) : us_scatter_local(s);

            if (rc != 0) {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_ids_put(ngx_http_request_t *r, ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_shown_t *shown, us_str_t id)
{
    const us_scatter_item_t  *item;

    item = &ngx_http_urlstore_rounds_of(r)->s.items[shown->n++];

    if (ngx_http_urlstore_out_room(out, US_LIST_END + id.len
                                   + us_json_quoted_max(item->text.len) + 64)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    shown->list.claimed = item->time;

    /* an id that no shard has, was asked of none */

    out->pos = us_list_id(out->pos, &shown->list, id, item->text,
                          item->status == US_ANSWER_NONE ? US_ANSWER_UNKNOWN
                                                         : item->status);

    return NGX_OK;
}


/* a slice of the reply; what the client has written is shown up to ids->buf */

static ngx_int_t
ngx_http_urlstore_ids_produce(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out)
{
    us_str_t                    text, id;
    ngx_buf_t                  *b;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_shown_t  *shown;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    shown = ctx->data;

    if (ngx_http_urlstore_out_room(out, US_LIST_END) != NGX_OK) {
        return NGX_ERROR;
    }

    if (shown->n == 0) {
        shown->list.format = ctx->format;
        out->pos = us_list_begin(out->pos, &shown->list);
    }

    for ( /* void */ ; shown->ids; shown->ids = shown->ids->next) {
        b = shown->ids->buf;

        while (b->pos < b->last) {

            if (ngx_http_urlstore_out_enough(out)) {
                return NGX_AGAIN;
            }

            text.data = b->pos;
            text.len = b->last - b->pos;

            (void) us_list_cut(&text, &id);
            b->pos = b->last - text.len;

            if (ngx_http_urlstore_ids_put(r, out, shown, id) != NGX_OK) {
                return NGX_ERROR;
            }
        }
    }

    if (ngx_http_urlstore_out_room(out, US_LIST_END) != NGX_OK) {
        return NGX_ERROR;
    }

    out->pos = us_list_end(out->pos, &shown->list);

    return NGX_OK;
}


/* of the rounds */

static ngx_int_t
ngx_http_urlstore_ids_done(ngx_http_request_t *r)
{
    size_t                       i, absent;
    us_scatter_t                *s;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = ngx_http_urlstore_rounds_of(r);
    s = &rounds->s;

    if (rounds->over) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                         NULL, "the URLs have more than %uz "
                                         "bytes (urlstore_max_reply): ask for "
                                         "fewer ids", rounds->limit);
    }

    for (i = 0, absent = 0; i < s->n; i++) {
        absent += (s->items[i].status == US_ANSWER_UNAVAILABLE);
    }

    if (absent && absent == s->n) {
        return ngx_http_urlstore_rounds_none(rounds);
    }

    return ngx_http_urlstore_stream(r, ngx_http_urlstore_ids_produce);
}


static ngx_int_t
ngx_http_urlstore_route_ids(ngx_http_request_t *r, ngx_chain_t *ids)
{
    ngx_int_t                      rc;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_shown_t     *shown;
    ngx_http_urlstore_rounds_t    *rounds;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    rounds = ngx_http_urlstore_rounds_create(r, US_SCATTER_BY_ID, &rc);

    if (rounds == NULL) {
        return rc;
    }

    shown = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_shown_t));

    if (shown == NULL
        || ngx_http_urlstore_ids_scatter(&rounds->s, ids) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ctx->data = shown;
    shown->ids = ids;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    ngx_str_set(&rounds->action, "/url");

    if (ngx_http_urlstore_flag(r, "times")) {
        ngx_str_set(&rounds->action, "/url?times=1");
        rounds->s.columns.times = 1;
        shown->list.times = 1;
    }

    rounds->s.lists = 1;
    rounds->s.answers = 1 << US_ANSWER_SEEN | 1 << US_ANSWER_DAMAGED;
    rounds->limit = ulcf->max_reply;
    rounds->done = ngx_http_urlstore_ids_done;

    return ngx_http_urlstore_rounds(rounds);
}


/* of the fan */

static ngx_int_t
ngx_http_urlstore_relay_done(ngx_http_request_t *r)
{
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = ngx_http_get_module_ctx(r, ngx_http_urlstore_route_module);
    call = fan->calls;

    if (call->status != 0 && call->status != NGX_HTTP_URLSTORE_MISDIRECTED
        && (call->status < NGX_HTTP_INTERNAL_SERVER_ERROR
            || call->status == NGX_HTTP_SERVICE_UNAVAILABLE
            || call->status == NGX_HTTP_INSUFFICIENT_STORAGE))
    {
        return ngx_http_urlstore_relay_reply(r, call);
    }

    ngx_http_urlstore_call_log(call, 1);

    return ngx_http_urlstore_call_unsure(call)
           ? ngx_http_urlstore_route_unknown(r,
                                     call->map->shards[call->shard].number)
           : ngx_http_urlstore_route_silent(r,
                                     call->map->shards[call->shard].number);
}


static ngx_int_t
ngx_http_urlstore_relay(ngx_http_request_t *r, ngx_http_urlstore_fan_t *fan,
    ngx_uint_t shard)
{
    u_char                    *p;
    ngx_str_t                 *accept;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_call_t  *call;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    p = ngx_pnalloc(r->pool, sizeof("/url/?") + NGX_INT64_LEN + r->args.len);

    if (p == NULL || ngx_http_urlstore_fan_calls(fan, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    fan->done = ngx_http_urlstore_relay_done;
    call = fan->calls;

    call->shard = shard;
    call->method = r->method == NGX_HTTP_DELETE ? NGX_HTTP_DELETE
                                                : NGX_HTTP_GET;
    call->single = 1;
    call->reads = (r->method != NGX_HTTP_DELETE);

    call->path.data = p;
    call->path.len = ngx_sprintf(p, "/url/%uL%s%V", ctx->id,
                                 r->args.len ? "?" : "", &r->args) - p;

    accept = ngx_http_urlstore_header_in(r, "accept");

    if (accept) {
        call->accept = *accept;
    }

    return ngx_http_urlstore_fan_call(fan, call) == NGX_OK
           ? ngx_http_urlstore_fan_wait(fan) : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_urlstore_route_url(ngx_http_request_t *r)
{
    int                       shard;
    uint64_t                  id;
    ngx_int_t                 rc;
    us_id_rc_t                known;
    ngx_http_urlstore_ctx_t  *ctx;
    ngx_http_urlstore_fan_t  *fan;

    rc = ngx_http_urlstore_ids(r, ngx_http_urlstore_route_ids);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    known = us_id_parse(ngx_http_urlstore_str(&ctx->tail), &id);

    if (known == US_ID_BAD) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         NGX_HTTP_URLSTORE_NO_ID,
                                         ngx_min(ctx->tail.len,
                                                 NGX_HTTP_URLSTORE_SHOWN),
                                         ctx->tail.data);
    }

    if (known == US_ID_NEVER || id >> US_SHARD_SHIFT >= US_SHARDS) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "the id %*s was not given yet",
                                         ngx_min(ctx->tail.len,
                                                 NGX_HTTP_URLSTORE_SHOWN),
                                         ctx->tail.data);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx->id = id;

    fan = ngx_http_urlstore_fan(r, &rc);

    if (fan == NULL) {
        return rc;
    }

    shard = us_map_shard(fan->map, id >> US_SHARD_SHIFT);

    if (shard == -1) {

        /* the map may be old */

        return ngx_http_urlstore_route_absent(r, NULL,
                                              "the map of this router has no "
                                              "shard %uL",
                                              id >> US_SHARD_SHIFT);
    }

    return ngx_http_urlstore_relay(r, fan, shard);
}
