
/*
 * GET /urls of a router, and GET /erase: the lists of the shards, one after the
 * other.
 *
 *     cursor   turn, and the next id of each shard (cluster/us_cursor.h)
 *        |
 *     call     GET /urls?from=ID of the shard whose turn it is, and again
 *        |     until that is at its end, then of the next shard
 *        |
 *     reply    lines of all of them, up to the limit; the next cursor
 *
 * The next request begins with the shard after the one at which the limit was
 * reached, so a shard that grows fast does not keep back the others.  A shard
 * that does not answer is named, and keeps its position.
 *
 * from=ID lists the shard of that id only, as the shard does; from=0 is the
 * beginning of all.
 *
 * A reply is collected before it is sent.  It ends early, with `more`, past
 * urlstore_max_reply.
 *
 * A list of erasures has the numbers that each shard has given, from 1, in
 * place of ids.  Each line has the shard's number in its name (0.7).
 */


#include "ngx_http_urlstore_route.h"
#include "../cluster/us_cursor.h"
#include "../cluster/us_wire.h"
#include "../us_text.h"


/*
 * lines of a call: NGX_HTTP_URLSTORE_CALL_MAX has room for them, however long
 * their URLs are
 */
#define NGX_HTTP_URLSTORE_LISTED  1900

/* bytes of base64, and of a number of a shard with its comma */
#define NGX_HTTP_URLSTORE_CURSOR  (ngx_base64_encoded_length(US_CURSOR_MAX))
#define NGX_HTTP_URLSTORE_NUMBER  5


typedef struct ngx_http_urlstore_feed_s  ngx_http_urlstore_feed_t;

typedef ngx_int_t (*ngx_http_urlstore_line_pt)(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed, us_str_t text, uint64_t *local);

struct ngx_http_urlstore_feed_s {
    const us_map_t                 *map;
    ngx_http_urlstore_fan_t        *fan;      /* one call */
    us_cursor_t                     cursor;

    /* what is listed: reads a line and shows it, bytes, 0 or NGX_ERROR */
    ngx_http_urlstore_line_pt       line;
    const char                     *path;     /* and "from=" */
    ngx_uint_t                      ids;      /* or numbers of each shard */

    /* what the client wants */
    uint64_t                        limit;
    ngx_str_t                       select;   /* "&site=...", as it came */
    ngx_uint_t                      only;     /* one shard, by from=ID */

    /* the shard whose turn it is */
    ngx_uint_t                      at;       /* index in the map */
    ngx_uint_t                      left;     /* shards, with this one */
    uint64_t                        asked;    /* lines */

    /* what there is so far */
    us_list_t                       list;
    ngx_uint_t                      more;
    ngx_uint_t                      lost;     /* shards of the map */
    ngx_uint_t                      silent;   /* the number of the first */
    ngx_str_t                       absent;   /* ",7" for each, and for those
                                                 that the map lacks */
};


/* the turn is the next shard's */

static void
ngx_http_urlstore_feed_passed(ngx_http_urlstore_feed_t *feed)
{
    feed->left--;
    feed->at = (feed->at + 1) % feed->map->nshards;
}


/* the shard of this number does not answer, or not to the end */

static void
ngx_http_urlstore_feed_absent(ngx_http_urlstore_feed_t *feed, ngx_uint_t number)
{
    feed->absent.len = ngx_sprintf(feed->absent.data + feed->absent.len,
                                   ",%ui", number)
                       - feed->absent.data;
    feed->more = 1;
}


static void
ngx_http_urlstore_feed_lost(ngx_http_urlstore_feed_t *feed)
{
    ngx_uint_t  number;

    number = feed->map->shards[feed->at].number;
    feed->silent = feed->lost++ ? feed->silent : number;

    ngx_http_urlstore_feed_absent(feed, number);
    ngx_http_urlstore_feed_passed(feed);
}


/* what the shard adds to a number of its own */

static uint64_t
ngx_http_urlstore_feed_base(ngx_http_urlstore_feed_t *feed)
{
    return feed->ids ? us_cluster_id(feed->map->shards[feed->at].number, 0) : 0;
}


/* the end: where to go on, whether there is more, and who did not answer */

static ngx_int_t
ngx_http_urlstore_feed_end(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed)
{
    u_char                   *end;
    uint64_t                  number;
    ngx_str_t                 bytes, text, absent;
    ngx_http_urlstore_out_t  *out;
    u_char                    buf[US_CURSOR_MAX];
    u_char                    base64[NGX_HTTP_URLSTORE_CURSOR];

    out = &ctx->out;

    if (feed->list.shown == 0
        && feed->lost >= (feed->only ? 1 : feed->map->nshards))
    {
        return ngx_http_urlstore_route_silent(ctx, feed->silent);
    }

    if (feed->only) {
        if (ngx_http_urlstore_out_room(out, US_LIST_END) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        /* as the shard's own list: its end is past its only turn */

        number = feed->map->shards[(feed->at + feed->map->nshards - 1)
                                   % feed->map->nshards].number;

        out->pos = us_list_next(out->pos, &feed->list,
                                us_cluster_id(number, 0)
                                + feed->cursor.local[number],
                                ngx_http_urlstore_flag(ctx->r, "summary"));

        return ngx_http_urlstore_send(ctx);
    }

    feed->cursor.turn = feed->map->shards[feed->at].number;

    end = us_cursor_put(buf, feed->map->cluster, &feed->cursor);

    if (end == NULL) {
        return ngx_http_urlstore_bad(ctx, "the cluster has more shards than a "
                                     "cursor has room for: list each of them "
                                     "by from=ID");
    }

    bytes.data = buf;
    bytes.len = end - buf;
    text.data = base64;

    ngx_encode_base64url(&text, &bytes);

    if (ngx_http_urlstore_out_room(out, 64 + text.len + feed->absent.len)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    absent = feed->absent;

    if (absent.len) {
        absent.data++;
        absent.len--;
    }

    if (feed->list.format == US_FORMAT_TEXT) {
        out->pos = ngx_sprintf(out->pos, "# cursor=%V more=%ui%s%V\n", &text,
                               feed->more, absent.len ? " unavailable=" : "",
                               &absent);

    } else {
        out->pos = ngx_sprintf(out->pos,
                               "%s\"cursor\":\"%V\",\"more\":%s%s%V%s\n",
                               feed->list.format == US_FORMAT_JSON ? "],"
                                                                   : "{",
                               &text, feed->more ? "true" : "false",
                               absent.len ? ",\"unavailable\":[" : "", &absent,
                               absent.len ? "]}" : "}");
    }

    return ngx_http_urlstore_send(ctx);
}


/* the next call: NGX_AGAIN; or the request's result */

static ngx_int_t
ngx_http_urlstore_feed_next(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed)
{
    uint32_t                   number;
    uint64_t                   from;
    ngx_http_urlstore_call_t  *call;

    call = feed->fan->calls;

    while (feed->left) {

        if (feed->list.shown >= feed->limit
            || ngx_http_urlstore_out_size(&ctx->out) > ctx->conf->max_reply)
        {
            feed->more = 1;
            ngx_http_urlstore_feed_passed(feed);
            break;
        }

        number = feed->map->shards[feed->at].number;

        if (feed->cursor.local[number] > US_LOCAL_MAX) {

            /* it is full, and was listed to its end */

            ngx_http_urlstore_feed_passed(feed);
            continue;
        }

        from = feed->cursor.local[number];
        from = feed->ids ? ngx_http_urlstore_feed_base(feed) + from
                         : ngx_max(from, 1);
        feed->asked = ngx_min(feed->limit - feed->list.shown,
                              NGX_HTTP_URLSTORE_LISTED);

        call->shard = feed->at;
        call->reuses = 1;
        ngx_str_set(&call->accept, "text/plain");

        if (ngx_http_urlstore_route_path(ctx, &call->path,
                                         "%s%uL&limit=%uL&summary=1%V",
                                         feed->path, from, feed->asked,
                                         &feed->select)
            == NGX_OK
            && ngx_http_urlstore_call_begin(feed->fan, call) == NGX_OK)
        {
            return NGX_AGAIN;
        }

        ngx_http_urlstore_feed_lost(feed);
    }

    return ngx_http_urlstore_feed_end(ctx, feed);
}


static ngx_int_t
ngx_http_urlstore_feed_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed, us_str_t text, uint64_t *local)
{
    size_t             len;
    uint32_t           number;
    us_wire_line_t     line;
    us_wire_columns_t  columns;

    ngx_memzero(&columns, sizeof(us_wire_columns_t));
    columns.urls = 1;
    columns.times = feed->list.times;

    number = feed->map->shards[feed->at].number;
    len = us_wire_list_line(text, columns, &line);

    if (len == 0 || line.id >> US_SHARD_SHIFT != number
        || (line.id & US_LOCAL_MAX) < *local || line.text.len > US_URL_MAX)
    {
        return 0;
    }

    if (ngx_http_urlstore_out_room(&ctx->out, 128
                                   + us_json_quoted_max(line.text.len))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    feed->list.claimed = line.time;
    ctx->out.pos = us_list_url(ctx->out.pos, &feed->list, line.id,
                               line.status == US_ANSWER_DELETED ? NULL
                                                                : &line.text);
    *local = line.id & US_LOCAL_MAX;

    return len;
}


static ngx_int_t
ngx_http_urlstore_feed_erasure(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed, us_str_t text, uint64_t *local)
{
    unsigned                  left;
    us_str_t                  rest, name;
    us_erasure_info_t         e;
    ngx_http_urlstore_part_t  part;
    u_char                    buf[NGX_HTTP_URLSTORE_PART];

    rest = text;

    if (!us_list_erasure_read(&rest, &e, &left) || e.number < *local
        || e.number > US_LOCAL_MAX)
    {
        return 0;
    }

    if (ngx_http_urlstore_out_room(&ctx->out, US_LIST_ERASURE + sizeof(buf))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    part.shard = feed->map->shards[feed->at].number;
    part.number = e.number;
    name.data = buf;
    name.len = ngx_http_urlstore_part(buf, &part) - buf;

    if (feed->list.shown++ && ctx->format == US_FORMAT_JSON) {
        *ctx->out.pos++ = ',';
    }

    ctx->out.pos = us_list_erasure(ctx->out.pos, ctx->format, &e, left, name);
    *local = e.number;

    return text.len - rest.len;
}


/*
 * The lines of a reply, and where the shard goes on.  NGX_DECLINED: the reply
 * broke off, or is not what was asked for; its lines up to there count.
 */

static ngx_int_t
ngx_http_urlstore_feed_lines(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed)
{
    us_str_t   text;
    uint64_t   from, next, shown, *local;
    ngx_int_t  len;

    local = &feed->cursor.local[feed->map->shards[feed->at].number];
    text = feed->fan->calls->end.text;
    from = *local;

    for (shown = 0; shown < feed->asked; shown++) {
        len = feed->line(ctx, feed, text, local);

        if (len == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (len == 0) {
            break;
        }

        ++*local;

        text.data += len;
        text.len -= len;
    }

    if (feed->fan->calls->received > feed->fan->calls->end.text.len) {

        /* its end was not read: it is asked for, unless this is no line */

        return shown && memchr(text.data, '\n', text.len) == NULL
               ? NGX_OK : NGX_DECLINED;
    }

    if (!us_wire_next(text, &next)) {
        return NGX_DECLINED;
    }

    next -= ngx_http_urlstore_feed_base(feed);

    if (next < *local || next > US_LOCAL_MAX + 1) {
        return NGX_DECLINED;
    }

    *local = next;

    if (shown == feed->asked) {
        return NGX_OK;
    }

    /* the shard is at its end, unless it has examined all that it may */

    feed->more |= (next - from >= NGX_HTTP_URLSTORE_EXAMINE);
    ngx_http_urlstore_feed_passed(feed);

    return NGX_OK;
}


/* of the fan: the call has ended, if there was one so far */

static ngx_int_t
ngx_http_urlstore_feed_done(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_urlstore_call_t  *call;
    ngx_http_urlstore_feed_t  *feed;

    feed = ctx->data;
    call = feed->fan->calls;

    if (feed->asked == 0) {
        return ngx_http_urlstore_feed_next(ctx, feed);
    }

    if (feed->list.shown == 0 && ngx_http_urlstore_call_problem(call)) {
        return ngx_http_urlstore_relay_reply(ctx, call);
    }

    rc = call->end.status == NGX_HTTP_OK
         ? ngx_http_urlstore_feed_lines(ctx, feed) : NGX_DECLINED;

    if (rc == NGX_DECLINED) {
        ngx_http_urlstore_call_log(call, feed->asked);
        ngx_http_urlstore_feed_lost(feed);
    }

    return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR
                           : ngx_http_urlstore_feed_next(ctx, feed);
}


static ngx_int_t
ngx_http_urlstore_feed_cursor(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed, ngx_str_t *value)
{
    ngx_str_t       bytes;
    us_cursor_rc_t  rc;

    rc = US_CURSOR_BAD;

    if (value->len <= NGX_HTTP_URLSTORE_CURSOR) {

        bytes.data = ngx_pnalloc(ctx->r->pool,
                                 ngx_base64_decoded_length(value->len));
        if (bytes.data == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (ngx_decode_base64url(&bytes, value) == NGX_OK) {
            rc = us_cursor_read(&feed->cursor, feed->map->cluster,
                                ngx_http_urlstore_str(&bytes));
        }
    }

    if (rc != US_CURSOR_OK) {
        return ngx_http_urlstore_bad(ctx, rc == US_CURSOR_OTHER
                                     ? "the \"cursor\" is of another cluster"
                                     : "invalid \"cursor\"; what a reply of "
                                       "/urls has is expected");
    }

    feed->left = feed->map->nshards;

    while (feed->at < feed->map->nshards
           && feed->map->shards[feed->at].number < feed->cursor.turn)
    {
        feed->at++;
    }

    feed->at %= feed->map->nshards;

    return NGX_DECLINED;
}


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_feed_args(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_feed_t *feed)
{
    int                  shard;
    u_char              *p;
    us_str_t             raw;
    uint64_t             id;
    ngx_int_t            rc;
    ngx_str_t            value;
    ngx_uint_t           i;
    ngx_http_request_t  *r;

    /* those that a shard gets, as they are; each is there once */

    static const char *const  names[] = {
        "site", "prefix", "set", "mark", "older", "new_sites", "deleted",
        "times"
    };

    r = ctx->r;

    id = 0;
    feed->limit = 1000;

    rc = ngx_http_urlstore_urls_number(ctx, "limit", 1, &feed->limit);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_urls_number(ctx, "from", 0, &id);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    feed->limit = ngx_min(feed->limit, NGX_HTTP_URLSTORE_EXAMINE);
    feed->list.times = ngx_http_urlstore_flag(r, "times");

    p = ngx_pnalloc(r->pool, r->args.len + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    feed->select.data = p;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (us_args_find(ngx_http_urlstore_str(&r->args), names[i], &raw)) {
            p = ngx_sprintf(p, "&%s=%*s", names[i], raw.len, raw.data);
        }
    }

    feed->select.len = p - feed->select.data;

    /* where it begins */

    if (ngx_http_urlstore_arg(ctx, "cursor", &value)) {

        if (id) {
            return ngx_http_urlstore_bad(ctx, "the query has \"from\" and "
                                         "\"cursor\"; one of them is allowed");
        }

        return ngx_http_urlstore_feed_cursor(ctx, feed, &value);
    }

    feed->left = feed->map->nshards;

    if (id == 0) {
        return NGX_DECLINED;
    }

    if (id >> US_SHARD_SHIFT >= US_SHARDS) {
        return ngx_http_urlstore_bad(ctx, "invalid \"from\" %uL; no shard can "
                                     "have given that id", id);
    }

    shard = us_map_shard(feed->map, id >> US_SHARD_SHIFT);

    if (shard == -1) {
        return ngx_http_urlstore_route_lacks(ctx, id >> US_SHARD_SHIFT);
    }

    feed->only = 1;
    feed->left = 1;
    feed->at = shard;
    feed->cursor.local[id >> US_SHARD_SHIFT] = id & US_LOCAL_MAX;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_urlstore_feed(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_line_pt line, const char *path, ngx_uint_t ids)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_request_t        *r;
    ngx_http_urlstore_feed_t  *feed;

    r = ctx->r;
    feed = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_feed_t));

    if (feed == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->data = feed;
    feed->line = line;
    feed->path = path;
    feed->ids = ids;

    rc = ngx_http_urlstore_fan(ctx, &feed->fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    feed->map = feed->fan->map;
    feed->fan->done = ngx_http_urlstore_feed_done;

    rc = ngx_http_urlstore_feed_args(ctx, feed);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    feed->absent.data = ngx_pnalloc(r->pool,
                                    US_SHARDS * NGX_HTTP_URLSTORE_NUMBER);

    if (feed->absent.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* a shard that the map lacks does not answer either: the map may be old */

    for (i = 0; i < US_SHARDS; i++) {
        if (feed->cursor.local[i] && us_map_shard(feed->map, i) == -1) {
            ngx_http_urlstore_feed_absent(feed, i);
        }
    }

    if (ngx_http_urlstore_fan_calls(feed->fan, 1, NGX_HTTP_GET) != NGX_OK
        || ngx_http_urlstore_reply_begin(ctx, ids ? US_FORMAT_TEXT
                                                  : US_FORMAT_JSON, 1024)
           != NGX_OK
        || ngx_http_urlstore_out_room(&ctx->out, US_LIST_END) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    feed->list.format = ctx->format;
    ctx->out.pos = ids || ctx->format != US_FORMAT_JSON
                   ? us_list_begin(ctx->out.pos, &feed->list)
                   : us_put(ctx->out.pos, "{\"erasures\":[");

    return ngx_http_urlstore_fan_wait(feed->fan);
}


ngx_int_t
ngx_http_urlstore_route_urls(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_feed(ctx, ngx_http_urlstore_feed_url,
                                  "/urls?from=", 1);
}


ngx_int_t
ngx_http_urlstore_route_erasures(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_args(ctx, "cursor limit summary");

    return rc == NGX_DECLINED
           ? ngx_http_urlstore_feed(ctx, ngx_http_urlstore_feed_erasure,
                                    "/erase?from=", 0)
           : rc;
}
