
/*
 * /erase of a router.
 *
 * Each shard numbers its erasures, and a router keeps nothing.  So an erasure
 * of a cluster is named by its parts, those of its shards:
 *
 *     0.3_2.7      erasure 3 of shard 0, and erasure 7 of shard 2
 *
 * A number that all shards share would need one place that gives it, which can
 * be away, or a list in each router.  The name needs neither: any router can
 * ask for it.  Its bytes are those that no client escapes in a path.  Parts are
 * in ascending order, so one set of parts has one name, and a name has one part
 * for each shard, unless a shard forgets keys of requests (urlstore_idempotency
 * off).  Of one shard no more than some are asked for.
 *
 *     POST /erase             a batch (ngx_http_urlstore_scatter.c); or a site,
 *                             which is erased by all shards
 *     GET /erase              the parts of all shards, shard by shard
 *                             (ngx_http_urlstore_feed.c)
 *     GET /erase/NAME         the shards are asked, and their rows added up
 *     DELETE /erase/NAME      each part is lifted
 *
 * An erasure is done when all of its parts are.  Of a part whose shard does not
 * answer nothing is known: the state is `unknown` then, and all places are in
 * `left`.
 *
 * The shards get a key with a request that has none, so what one request sends
 * to a shard, in however many calls, is one erasure.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_route.h"
#include "../us_text.h"


/* parts of one shard in a name, each of which is a call at the same time */
#define NGX_HTTP_URLSTORE_PARTS_EACH  8


ngx_int_t
ngx_http_urlstore_parts_key(ngx_http_urlstore_ctx_t *ctx)
{
    return ctx->key.name ? NGX_OK
           : ngx_http_urlstore_random(ctx->r->connection->log, &ctx->key.name,
                                      sizeof(ctx->key.name));
}


ngx_int_t
ngx_http_urlstore_parts_add(ngx_array_t *parts, uint32_t shard, uint64_t number)
{
    ngx_uint_t                 i;
    ngx_http_urlstore_part_t  *part;

    part = parts->elts;

    for (i = 0; i < parts->nelts; i++) {
        if (part[i].shard == shard && part[i].number == number) {
            return NGX_OK;
        }
    }

    if (ngx_array_push(parts) == NULL) {
        return NGX_ERROR;
    }

    part = parts->elts;

    for (i = parts->nelts - 1;
         i && (part[i - 1].shard > shard
               || (part[i - 1].shard == shard && part[i - 1].number > number));
         i--)
    {
        part[i] = part[i - 1];
    }

    part[i].shard = shard;
    part[i].number = number;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_parts_name(ngx_pool_t *pool, ngx_array_t *parts,
    ngx_str_t *name)
{
    u_char                    *p;
    ngx_uint_t                 i;
    ngx_http_urlstore_part_t  *part;

    part = parts->elts;

    p = ngx_pnalloc(pool, parts->nelts * NGX_HTTP_URLSTORE_PART + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    name->data = p;

    for (i = 0; i < parts->nelts; i++) {
        p = us_put(p, i ? "_" : "");
        p = ngx_http_urlstore_part(p, &part[i]);
    }

    name->len = p - name->data;

    return NGX_OK;
}


void
ngx_http_urlstore_parts_accepted(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *name)
{
    ctx->status = NGX_HTTP_ACCEPTED;

    ngx_http_urlstore_header_printf(ctx, "Location",
                                    sizeof("../erase/") + name->len,
                                    ctx->tail.len ? "../erase/%V" : "erase/%V",
                                    name);
}


/* NGX_DECLINED: the text is no name */

static ngx_int_t
ngx_http_urlstore_parts_read(ngx_array_t *parts, ngx_str_t *text)
{
    int                        more;
    us_str_t                   rest, name, digits;
    uint64_t                   shard, number;
    ngx_uint_t                 each;
    ngx_http_urlstore_part_t  *part;

    each = 0;
    part = NULL;
    rest = ngx_http_urlstore_str(text);

    do {
        more = us_str_cut(&rest, '_', &name);

        if (!us_str_cut(&name, '.', &digits)
            || us_id_parse(digits, &shard) != US_ID_OK
            || us_id_parse(name, &number) != US_ID_OK
            || number == 0 || shard >= US_SHARDS
            || (part && (shard < part->shard
                         || (shard == part->shard && number <= part->number))))
        {
            return NGX_DECLINED;
        }

        each = part && shard == part->shard ? each + 1 : 1;

        if (each > NGX_HTTP_URLSTORE_PARTS_EACH) {
            return NGX_DECLINED;
        }

        part = ngx_array_push(parts);
        if (part == NULL) {
            return NGX_ERROR;
        }

        part->shard = shard;
        part->number = number;

    } while (more);

    return NGX_OK;
}


/* the sum of n rows, each of which is a part, and then the rows themselves */

static ngx_int_t
ngx_http_urlstore_parts_send(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_part_t *part, ngx_uint_t n, ngx_str_t *name,
    ngx_str_t *silent)
{
    u_char            *p;
    unsigned           left;
    us_str_t           one;
    ngx_uint_t         i;
    us_erasure_info_t  sum;
    u_char             buf[NGX_HTTP_URLSTORE_PART];

    sum = *part[0].e;
    left = part[0].left;

    for (i = 1; i < n; i++) {
        sum.created = ngx_min(sum.created, part[i].e->created);
        sum.done = sum.done && part[i].e->done
                   ? ngx_max(sum.done, part[i].e->done) : 0;
        sum.lifted = sum.lifted && part[i].e->lifted
                     ? ngx_max(sum.lifted, part[i].e->lifted) : 0;
        sum.listed += part[i].e->listed;
        sum.deleted += part[i].e->deleted;
        sum.state = ngx_min(sum.state, part[i].e->state);
        left |= part[i].left;
    }

    if (silent->len) {
        sum.state = US_ERASURE_UNKNOWN;
        sum.done = 0;
        sum.lifted = 0;
        left = (unsigned) -1;
    }

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, name->len
                                      + silent->len + 64 + (n + 1)
                                        * (US_LIST_ERASURE + sizeof(buf)))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = us_list_erasure(ctx->out.pos, ctx->format, &sum, left,
                        ngx_http_urlstore_str(name));

    /* in JSON the object goes on */

    if (ctx->format == US_FORMAT_JSON) {
        p = us_put(p - 1, ",\"parts\":[");
    }

    for (i = 0; i < n; i++) {
        one.data = buf;
        one.len = ngx_http_urlstore_part(buf, &part[i]) - buf;

        p = us_put(p, i && ctx->format == US_FORMAT_JSON ? "," : "");
        p = us_list_erasure(p, ctx->format, part[i].e, part[i].left, one);
    }

    p = us_put(p, ctx->format == US_FORMAT_JSON ? "]" : "");
    p = ngx_http_urlstore_survey_lost(p, ctx->format, silent);
    ctx->out.pos = us_put(p, ctx->format == US_FORMAT_JSON ? "}\n" : "");

    return ngx_http_urlstore_send(ctx);
}


/*
 * Of the fan: each shard that has answered has sent the row of its part, unless
 * it has lifted it.  404: one has no erasure of the number that the name has.
 */

static ngx_int_t
ngx_http_urlstore_parts_done(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                   text;
    ngx_int_t                  rc;
    ngx_str_t                  silent, name;
    ngx_uint_t                 i;
    ngx_array_t                parts;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call, *best;
    ngx_http_urlstore_part_t  *part;

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);

    for (i = 0; i < fan->n; i++) {
        if (fan->calls[i].end.status == NGX_HTTP_NOT_FOUND) {
            return ngx_http_urlstore_erasure_missing(ctx);
        }
    }

    rc = ngx_http_urlstore_survey_best(ctx, &silent, &best);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (best->method == NGX_HTTP_DELETE) {
        return ngx_http_urlstore_route_silent(ctx,
                                      fan->map->shards[best->shard].number);
    }

    if (ngx_array_init(&parts, ctx->r->pool, fan->n,
                       sizeof(ngx_http_urlstore_part_t))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        if (!ngx_http_urlstore_survey_answers(call)) {
            continue;
        }

        part = ngx_array_push(&parts);
        part->e = ngx_palloc(ctx->r->pool, sizeof(us_erasure_info_t));

        if (part->e == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        text = call->end.text;
        part->shard = fan->map->shards[call->shard].number;

        if (!us_list_erasure_read(&text, part->e, &part->left)) {
            return ngx_http_urlstore_route_silent(ctx, part->shard);
        }

        part->number = part->e->number;
    }

    if (fan->data) {
        name = *(ngx_str_t *) fan->data;

    } else if (ngx_http_urlstore_parts_name(ctx->r->pool, &parts, &name)
               != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!(ctx->r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        ngx_http_urlstore_parts_accepted(ctx, &name);
        ctx->wrote = 1;
    }

    return ngx_http_urlstore_parts_send(ctx, parts.elts, parts.nelts, &name,
                                        &silent);
}


/* calls of this method to the shards of these parts; NGX_DECLINED: there are */

static ngx_int_t
ngx_http_urlstore_parts_call(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_fan_t *fan, ngx_array_t *parts, ngx_uint_t method)
{
    int                        shard;
    ngx_uint_t                 i;
    ngx_http_urlstore_call_t  *call;
    ngx_http_urlstore_part_t  *part;

    part = parts->elts;

    if (ngx_http_urlstore_fan_calls(fan, parts->nelts, method) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];
        shard = us_map_shard(fan->map, part[i].shard);

        if (shard == -1) {
            return ngx_http_urlstore_route_lacks(ctx, part[i].shard);
        }

        if (ngx_http_urlstore_route_path(ctx, &call->path, "/erase/%uL",
                                         part[i].number)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        call->shard = shard;
        call->single = 1;
        ngx_str_set(&call->accept, "text/plain");
    }

    for (i = 0; i < fan->n; i++) {
        (void) ngx_http_urlstore_call_begin(fan, &fan->calls[i]);
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_parts_show(ngx_http_urlstore_ctx_t *ctx, ngx_array_t *parts,
    ngx_str_t *name)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_fan_t  *fan;

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);

    fan->ended = NULL;
    fan->done = ngx_http_urlstore_parts_done;
    fan->data = name;

    rc = ngx_http_urlstore_parts_call(ctx, fan, parts, NGX_HTTP_GET);

    return rc != NGX_DECLINED ? rc : fan->under_way ? NGX_AGAIN
                                                    : fan->done(ctx);
}


/* GET and DELETE of /erase/NAME */

static ngx_int_t
ngx_http_urlstore_parts_named(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_array_t               parts;
    ngx_http_urlstore_fan_t  *fan;

    rc = ngx_array_init(&parts, ctx->r->pool, 4,
                        sizeof(ngx_http_urlstore_part_t));

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_parts_read(&parts, &ctx->tail);
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_bad(ctx, "\"%*s\" names no erasure of a "
                                     "cluster; SHARD.NUMBER of each part, in "
                                     "ascending order with \"_\" between them, "
                                     "is expected", ngx_min(ctx->tail.len, 40),
                                     ctx->tail.data);
    }

    rc = ngx_http_urlstore_fan(ctx, &fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    fan->data = &ctx->tail;
    fan->done = ngx_http_urlstore_parts_done;

    rc = ngx_http_urlstore_parts_call(ctx, fan, &parts, ctx->r->method);

    return rc == NGX_DECLINED ? ngx_http_urlstore_fan_wait(fan) : rc;
}


ngx_int_t
ngx_http_urlstore_route_erase(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                  args, site, reason;
    ngx_int_t                 rc;
    ngx_str_t                 path;
    ngx_http_urlstore_fan_t  *fan;

    if (ctx->tail.len) {
        return ngx_http_urlstore_parts_named(ctx);
    }

    if (ctx->r->method != NGX_HTTP_POST) {
        return ngx_http_urlstore_route_erasures(ctx);
    }

    rc = ngx_http_urlstore_erase_args(ctx, &site);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (site.len == 0) {
        return ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_ERASE, 0);
    }

    rc = ngx_http_urlstore_fan(ctx, &fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    /* a site, as the client spells it, is erased by all shards */

    args = ngx_http_urlstore_str(&ctx->r->args);
    reason = us_string("");

    (void) us_args_find(args, "site", &site);
    (void) us_args_find(args, "reason", &reason);

    if (ngx_http_urlstore_parts_key(ctx) != NGX_OK
        || ngx_http_urlstore_route_path(ctx, &path,
                                        "/erase?site=%*s&reason=%*s", site.len,
                                        site.data, reason.len, reason.data)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    fan->done = ngx_http_urlstore_parts_done;

    return ngx_http_urlstore_fan_all(fan, &path, NGX_HTTP_POST, 0);
}
