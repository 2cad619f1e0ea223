
/*
 * /url, /prefix and /site of a router.
 *
 * One id, GET and DELETE of /url/ID: the shard gets the request with the
 * arguments and the Accept of the client, and its reply is the client's.  With
 * erase=1 it is a batch of /erase.
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
 *
 * /prefix: the probes are looked up as a batch of /seen; the longest that is
 * there is the answer, unless a longer one has no answer.
 *
 * /site/HOST: the owner of the site's slot and all former owners are asked at
 * the same time; the oldest that knows the site is right about its first id and
 * its spelling.  A shard that does not answer has not denied: then the reply is
 * 503, unless an older one knows the site.  Numbers of URLs are added up; they
 * are left out if one is missing.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_route.h"
#include "../us_text.h"


/* of a list: the answer to an id, and its URL */

static us_answer_t
ngx_http_urlstore_ids_find(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_ids_t *ids, us_str_t id, u_char *buf, us_str_t *url)
{
    const us_scatter_item_t  *item;

    item = &ngx_http_urlstore_rounds_of(ctx->r)->s.items[ids->shown];

    ids->list.claimed = item->time;
    *url = item->text;

    return item->status;
}


/* of the rounds */

static ngx_int_t
ngx_http_urlstore_ids_done(ngx_http_urlstore_ctx_t *ctx)
{
    size_t                       i, absent;
    us_scatter_t                *s;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = ngx_http_urlstore_rounds_of(ctx->r);
    s = &rounds->s;

    if (rounds->over) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
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

    return ngx_http_urlstore_ids_reply(ctx, ngx_http_urlstore_ids_find);
}


static ngx_int_t
ngx_http_urlstore_route_ids(ngx_http_urlstore_ctx_t *ctx)
{
    int                          bad;
    uint64_t                     id;
    us_str_t                     list, text;
    ngx_int_t                    rc;
    ngx_chain_t                 *cl;
    ngx_http_urlstore_ids_t     *ids;
    ngx_http_urlstore_rounds_t  *rounds;

    rc = ngx_http_urlstore_rounds_create(ctx, US_SCATTER_BY_ID, &rounds);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ids = ctx->data;

    for (cl = ids->at; cl; cl = cl->next) {
        list.data = cl->buf->pos;
        list.len = cl->buf->last - cl->buf->pos;

        while (list.len) {
            (void) us_str_cut(&list, ',', &text);

            /* no shard can have given what is no shard's number, or longer */

            bad = us_id_parse(text, &id) == US_ID_OK
                  && id >> US_SHARD_SHIFT < US_SHARDS
                  ? us_scatter_id(&rounds->s, id)
                  : us_scatter_local(&rounds->s, US_ANSWER_UNKNOWN,
                                     us_string(""));

            if (bad) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }
    }

    ngx_str_set(&rounds->action, "/url");

    if (ids->list.times) {
        ngx_str_set(&rounds->action, "/url?times=1");
        rounds->s.columns.times = 1;
    }

    rounds->s.lists = 1;
    rounds->s.answers = 1 << US_ANSWER_SEEN | 1 << US_ANSWER_DAMAGED;
    rounds->limit = ctx->conf->max_reply;
    rounds->done = ngx_http_urlstore_ids_done;

    return ngx_http_urlstore_fan_wait(rounds->fan);
}


/* of the fan */

static ngx_int_t
ngx_http_urlstore_relay_done(ngx_http_urlstore_ctx_t *ctx)
{
    uint32_t                   number;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);
    call = fan->calls;
    number = call->map->shards[call->shard].number;

    if (call->end.status != 0
        && call->end.status != NGX_HTTP_URLSTORE_MISDIRECTED
        && (call->end.status < NGX_HTTP_INTERNAL_SERVER_ERROR
            || call->end.status == NGX_HTTP_SERVICE_UNAVAILABLE
            || call->end.status == NGX_HTTP_INSUFFICIENT_STORAGE))
    {
        return ngx_http_urlstore_relay_reply(ctx, call);
    }

    ngx_http_urlstore_call_log(call, 1);

    return us_wire_unsure(&call->end)
           ? ngx_http_urlstore_route_unknown(ctx, number)
           : ngx_http_urlstore_route_silent(ctx, number);
}


ngx_int_t
ngx_http_urlstore_route_url(ngx_http_urlstore_ctx_t *ctx)
{
    int                        shard;
    uint64_t                   id;
    ngx_int_t                  rc;
    ngx_str_t                 *accept;
    us_id_rc_t                 known;
    ngx_http_request_t        *r;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    r = ctx->r;

    rc = ngx_http_urlstore_ids(ctx, ngx_http_urlstore_route_ids);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    known = us_id_parse(ngx_http_urlstore_str(&ctx->tail), &id);

    if (known == US_ID_BAD) {
        return ngx_http_urlstore_url_bad(ctx);
    }

    if (known == US_ID_NEVER || id >> US_SHARD_SHIFT >= US_SHARDS) {
        return ngx_http_urlstore_url_missing(ctx);
    }

    if (ngx_http_urlstore_flag(r, "erase")) {
        return ngx_http_urlstore_erase_id(ctx);
    }

    rc = ngx_http_urlstore_fan(ctx, &fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    shard = us_map_shard(fan->map, id >> US_SHARD_SHIFT);

    if (shard == -1) {
        return ngx_http_urlstore_route_lacks(ctx, id >> US_SHARD_SHIFT);
    }

    if (ngx_http_urlstore_fan_calls(fan, 1, r->method) != NGX_OK
        || ngx_http_urlstore_route_path(ctx, &fan->calls->path, "/url/%uL%s%V",
                                        id, r->args.len ? "?" : "", &r->args)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->id = id;
    fan->done = ngx_http_urlstore_relay_done;
    call = fan->calls;

    call->shard = shard;
    call->single = 1;

    accept = ngx_http_urlstore_header_in(r, "accept");

    if (accept) {
        call->accept = *accept;
    }

    return ngx_http_urlstore_call_begin(fan, call) == NGX_OK
           ? ngx_http_urlstore_fan_wait(fan) : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* of the rounds */

static ngx_int_t
ngx_http_urlstore_prefix_done(ngx_http_urlstore_ctx_t *ctx)
{
    size_t                       i;
    us_scatter_item_t           *item;
    ngx_http_urlstore_rounds_t  *rounds;

    rounds = ngx_http_urlstore_rounds_of(ctx->r);

    for (i = 0; i < rounds->s.n; i++) {
        item = &rounds->s.items[i];

        if (item->status == US_ANSWER_UNAVAILABLE) {
            return ngx_http_urlstore_rounds_none(rounds);
        }

        if (item->status == US_ANSWER_SEEN) {
            ctx->id = item->id;
            return ngx_http_urlstore_prefix_answer(ctx, &item->text);
        }
    }

    return ngx_http_urlstore_prefix_answer(ctx, NULL);
}


ngx_int_t
ngx_http_urlstore_route_prefix(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                     cuts[US_CANON_CUTS];
    ngx_int_t                    rc;
    ngx_uint_t                   i, n;
    us_canon_t                   canon;
    ngx_http_urlstore_rounds_t  *rounds;

    rc = ngx_http_urlstore_one_url(ctx, NULL, &canon);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_rounds_create(ctx, US_SCATTER_SEEN, &rounds);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* the longest first */

    n = us_canon_cuts(&canon, cuts);

    for (i = 0; i < n; i++) {
        if (us_scatter_url(&rounds->s, cuts[i]) != 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_str_set(&rounds->action, "/seen?summary=1");
    rounds->look_up = rounds->action;
    rounds->done = ngx_http_urlstore_prefix_done;

    return ngx_http_urlstore_fan_wait(rounds->fan);
}


/* where the member begins, whose name has its comma; NULL: it has none */

static u_char *
ngx_http_urlstore_site_member(us_str_t text, const char *name, uint64_t *n)
{
    u_char   *p, *member;
    us_str_t  value;

    member = memmem(text.data, text.len, name, ngx_strlen(name));

    if (member == NULL) {
        return NULL;
    }

    p = member + ngx_strlen(name);
    value.data = p;

    while (p < text.data + text.len && *p >= '0' && *p <= '9') {
        p++;
    }

    value.len = p - value.data;

    return us_id_parse(value, n) == US_ID_OK ? member : NULL;
}


/*
 * Of the fan: what the oldest answers, with the numbers of all, unless one of
 * the shards does not count, or does not answer.
 */

static ngx_int_t
ngx_http_urlstore_site_done(ngx_http_urlstore_ctx_t *ctx)
{
    u_char                    *end;
    us_str_t                   text;
    uint64_t                   n, urls, last;
    ngx_uint_t                 i, counts;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);

    for (i = fan->n; i && fan->calls[i - 1].end.status != NGX_HTTP_OK; i--) {
        call = &fan->calls[i - 1];

        if (call->end.status == NGX_HTTP_NOT_FOUND) {
            continue;
        }

        if (ngx_http_urlstore_call_problem(call)) {
            return ngx_http_urlstore_relay_reply(ctx, call);
        }

        ngx_http_urlstore_call_log(call, 1);

        return ngx_http_urlstore_route_silent(ctx,
                                      call->map->shards[call->shard].number);
    }

    if (i == 0) {
        return ngx_http_urlstore_site_missing(ctx);
    }

    text = fan->calls[i - 1].end.text;

    if (ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, text.len + 64)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    end = ngx_http_urlstore_site_member(text, ",\"urls\":", &n);

    if (end == NULL) {
        ctx->out.pos = us_put_str(ctx->out.pos, text);
        return ngx_http_urlstore_send(ctx);
    }

    urls = 0;
    last = 0;
    counts = 1;

    /* the youngest that has the site has its last id */

    for (i = fan->n; i && counts; i--) {
        call = &fan->calls[i - 1];

        if (call->end.status != NGX_HTTP_NOT_FOUND) {
            counts = call->end.status == NGX_HTTP_OK
                     && ngx_http_urlstore_site_member(call->end.text,
                                                      ",\"urls\":", &n)
                     && ngx_http_urlstore_site_member(call->end.text,
                                                      ",\"last\":", &last);
            urls += n;
        }
    }

    text.len = end - text.data;
    ctx->out.pos = us_put_str(ctx->out.pos, text);

    if (counts) {
        ctx->out.pos = us_json_printf(ctx->out.pos, ",\"urls\":%u,\"last\":%u",
                                      urls, last);
    }

    ctx->out.pos = us_put(ctx->out.pos, "}\n");

    return ngx_http_urlstore_send(ctx);
}


ngx_int_t
ngx_http_urlstore_route_site(ngx_http_urlstore_ctx_t *ctx)
{
    int                        merge;
    u_char                    *p;
    us_str_t                   key;
    ngx_int_t                  rc;
    ngx_str_t                  path;
    ngx_uint_t                 i;
    const us_owners_t         *owners;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;
    u_char                     buf[US_SLOT_FRONT];

    rc = ngx_http_urlstore_site_key(ctx, &ctx->tail, &key, &merge);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_fan(ctx, &fan);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (fan->map->key != US_KEY_SITE) {
        return ngx_http_urlstore_route_sites(ctx, "site");
    }

    owners = us_map_owners(fan->map, us_slot_front(key, buf));
    fan->done = ngx_http_urlstore_site_done;

    p = ngx_pnalloc(ctx->r->pool, sizeof("/site/") + 3 * ctx->tail.len);

    /* the oldest is the last one */

    if (p == NULL
        || ngx_http_urlstore_fan_calls(fan, owners->n, NGX_HTTP_GET)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the host as the client spells it */

    path.data = p;
    p = ngx_cpymem(p, "/site/", 6);
    p = (u_char *) ngx_escape_uri(p, ctx->tail.data, ctx->tail.len,
                                  NGX_ESCAPE_URI_COMPONENT);
    path.len = p - path.data;

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        call->shard = owners->shards[i];
        call->single = 1;
        call->path = path;

        (void) ngx_http_urlstore_call_begin(fan, call);
    }

    return ngx_http_urlstore_fan_wait(fan);
}
