
/*
 * /health, /stats and /metrics of a router: its own figures, and those of each
 * shard, which all are asked at the same time.
 *
 *     /health     {"status": .., "writable": .., "shards": {"0": its answer}}
 *     /stats      the same with the shards' figures, and the router's counters
 *     /metrics    the router's counters, which shards answer, and the calls to
 *                 each; a shard has metrics of its own
 *
 * A router is `ready` if all shards are, `degraded` if some are: then a part of
 * all requests is answered, and a balancer should go on sending them.  It is
 * `writable` as long as any shard is.
 *
 * Shards are asked for /health?write=1.  Only the node that accepts changes
 * answers by 200, so all nodes of a shard are asked until it is found.
 */


#include "ngx_http_urlstore_route.h"
#include "../api/us_answer.h"
#include "../api/us_counters.h"
#include "../input/us_json.h"
#include "../us_text.h"


/* bytes of a line of /metrics, and of the members before those of the shards */
#define NGX_HTTP_URLSTORE_LINE     640
#define NGX_HTTP_URLSTORE_HEAD     2048


typedef struct {
    const us_map_t                 *map;
    ngx_http_urlstore_call_t       *calls;    /* one for each shard */
    ngx_uint_t                      ready;    /* shards that are */
    ngx_uint_t                      writable;
    ngx_http_urlstore_handler_pt    report;
} ngx_http_urlstore_survey_t;


/* what the last node that has answered reports */

static us_str_t
ngx_http_urlstore_survey_text(ngx_http_urlstore_call_t *call)
{
    return call->status ? call->text : call->before;
}


static ngx_uint_t
ngx_http_urlstore_survey_has(us_str_t text, us_str_t member)
{
    return text.len
           && memmem(text.data, text.len, member.data, member.len) != NULL;
}


static ngx_uint_t
ngx_http_urlstore_survey_ready(ngx_http_urlstore_call_t *call)
{
    us_str_t  text;

    text = ngx_http_urlstore_survey_text(call);

    return ngx_http_urlstore_survey_has(text,
                                        us_string("\"status\":\"ready\""))
           || ngx_http_urlstore_survey_has(text,
                                       us_string("\"status\":\"read-only\""))
           || ngx_http_urlstore_survey_has(text,
                                           us_string("\"status\":\"full\""))
           || ngx_http_urlstore_survey_has(text, us_string("\"ready\":true"));
}


static ngx_uint_t
ngx_http_urlstore_survey_writable(ngx_http_urlstore_call_t *call)
{
    return ngx_http_urlstore_survey_has(ngx_http_urlstore_survey_text(call),
                                        us_string("\"writable\":true"));
}


/* of the fan */

static ngx_int_t
ngx_http_urlstore_survey_done(ngx_http_request_t *r)
{
    ngx_uint_t                   i;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_survey_t  *survey;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;

    for (i = 0; i < survey->map->nshards; i++) {
        survey->ready += ngx_http_urlstore_survey_ready(&survey->calls[i]);
        survey->writable += ngx_http_urlstore_survey_writable(
                                                          &survey->calls[i]);
    }

    return survey->report(r);
}


static ngx_int_t
ngx_http_urlstore_survey(ngx_http_request_t *r, const char *path,
    ngx_http_urlstore_handler_pt report)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_fan_t     *fan;
    ngx_http_urlstore_call_t    *call;
    ngx_http_urlstore_survey_t  *survey;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    fan = ngx_http_urlstore_fan(r, &rc);

    if (fan == NULL) {
        return rc;
    }

    survey = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_survey_t));

    if (survey == NULL
        || ngx_http_urlstore_fan_calls(fan, fan->map->nshards) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    survey->map = fan->map;
    survey->calls = fan->calls;
    survey->report = report;

    ctx->data = survey;
    fan->done = ngx_http_urlstore_survey_done;

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        call->shard = i;
        call->reads = 1;
        call->single = 1;
        call->probes = 1;
        call->path.data = (u_char *) path;
        call->path.len = ngx_strlen(path);

        (void) ngx_http_urlstore_fan_call(fan, call);
    }

    return ngx_http_urlstore_fan_wait(fan);
}


static const char *
ngx_http_urlstore_survey_word(ngx_http_urlstore_survey_t *survey)
{
    return survey->ready == survey->map->nshards ? "ready"
           : survey->ready ? "degraded" : "unavailable";
}


/* the node that was asked last, and why it has no answer */

static ngx_int_t
ngx_http_urlstore_survey_absent(ngx_http_urlstore_call_t *call,
    ngx_http_urlstore_out_t *out)
{
    us_str_t              node, address;
    const char           *why;
    ngx_http_upstream_t  *u;

    node = call->map->shards[call->shard].nodes[call->node];
    address = us_string("");
    u = call->sr ? call->sr->upstream : NULL;

    if (u && u->state && u->state->peer) {
        address = ngx_http_urlstore_str(u->state->peer);
    }

    why = call->status ? "its answer is of no shard"
          : call->foreign ? "it is another shard, or none"
          : call->rc == NGX_HTTP_GATEWAY_TIME_OUT
          ? (call->sent ? "it does not answer in time"
                        : "it could not be connected in time")
          : call->sent ? "it has closed the connection"
          : "it could not be connected";

    if (ngx_http_urlstore_out_room(out, 256 + us_json_quoted_max(node.len)
                                   + us_json_quoted_max(address.len))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    out->pos = us_put(out->pos, "{\"status\":\"unavailable\","
                      "\"writable\":false,\"node\":");
    out->pos = us_json_quote_bytes(out->pos, node);
    out->pos = us_put(out->pos, ",\"address\":");
    out->pos = us_json_quote_bytes(out->pos, address);
    out->pos = us_put(out->pos, ",\"reason\":\"");
    out->pos = us_put(out->pos, why);
    out->pos = us_put(out->pos, "\"}");

    return NGX_OK;
}


/* what each shard has answered, which is JSON, and the end of the object */

static ngx_int_t
ngx_http_urlstore_survey_shards(ngx_http_request_t *r)
{
    us_str_t                     text;
    ngx_uint_t                   i;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_call_t    *call;
    ngx_http_urlstore_out_t     *out;
    ngx_http_urlstore_survey_t  *survey;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;
    out = &ctx->out;

    if (ngx_http_urlstore_out_printf(out, 16, ",\"shards\":{") != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < survey->map->nshards; i++) {
        call = &survey->calls[i];
        text = ngx_http_urlstore_survey_text(call);

        if (ngx_http_urlstore_out_printf(out, 16, "%s\"%uD\":", i ? "," : "",
                                         survey->map->shards[i].number)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        /* a problem of it is JSON as well */

        if (text.len == 0 || text.data[0] != '{') {

            if (ngx_http_urlstore_survey_absent(call, out) != NGX_OK) {
                return NGX_ERROR;
            }

            continue;
        }

        if (text.data[text.len - 1] == '\n') {
            text.len--;
        }

        if (ngx_http_urlstore_out_room(out, text.len) != NGX_OK) {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, text.data, text.len);
    }

    return ngx_http_urlstore_out_printf(out, 4, "}}\n");
}


static ngx_int_t
ngx_http_urlstore_survey_health(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_survey_t  *survey;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;

    if (survey->ready == 0
        || (survey->writable == 0 && ngx_http_urlstore_flag(r, "write")))
    {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 512) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == US_FORMAT_TEXT) {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 32, "%s\n",
                                      ngx_http_urlstore_survey_word(survey));

    } else {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 256,
                                    "{\"status\":\"%s\",\"writable\":%s,"
                                    "\"map\":%uL",
                                    ngx_http_urlstore_survey_word(survey),
                                    survey->writable ? "true" : "false",
                                    survey->map->version);

        if (rc == NGX_OK) {
            rc = ngx_http_urlstore_survey_shards(r);
        }
    }

    return rc == NGX_OK ? ngx_http_urlstore_send(r)
                        : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_urlstore_route_health(ngx_http_request_t *r)
{
    return ngx_http_urlstore_survey(r, "/health?write=1",
                                    ngx_http_urlstore_survey_health);
}


static ngx_int_t
ngx_http_urlstore_survey_stats(ngx_http_request_t *r)
{
    size_t                       i;
    uint64_t                     n[US_N];
    ngx_int_t                    rc;
    u_char                       digest[32];
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_out_t     *out;
    ngx_http_urlstore_survey_t  *survey;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;
    out = &ctx->out;

    us_tally_sums(ctx->zone->sh->tallies, n, US_N);
    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);
    ngx_hex_dump(digest, (u_char *) survey->map->digest, 16);

    if (ngx_http_urlstore_out_init(out, r->pool, NGX_HTTP_URLSTORE_HEAD)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_HEAD / 2,
                                "{\"cluster\":\"%V\",\"status\":\"%s\","
                                "\"map\":%uL,\"digest\":\"%*s\","
                                "\"key\":\"%s\",\"normalization\":\"%*s\"",
                                &ctx->zone->name,
                                ngx_http_urlstore_survey_word(survey),
                                survey->map->version, (size_t) 32, digest,
                                survey->map->key == US_KEY_SITE ? "site"
                                                                : "url",
                                survey->map->norm.len,
                                survey->map->norm.data);

    for (i = US_ANSWER_NEW; rc == NGX_OK && i <= US_ANSWERS_COUNTED; i++) {
        rc = ngx_http_urlstore_out_printf(out, 64, ",\"%s\":%uL",
                                          us_answer_words[i].data,
                                          n[us_counter_of(i)]);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_out_printf(out, 64, ",\"unavailable\":%uL",
                                          n[US_N_UNAVAILABLE]);
    }

    if (rc != NGX_OK || ngx_http_urlstore_survey_shards(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}


ngx_int_t
ngx_http_urlstore_route_stats(ngx_http_request_t *r)
{
    return ngx_http_urlstore_survey(r, "/stats",
                                    ngx_http_urlstore_survey_stats);
}


/* a line for each shard of the map, of each counter */

static ngx_int_t
ngx_http_urlstore_survey_calls(ngx_http_request_t *r)
{
    size_t                       i, k;
    ngx_int_t                    rc;
    ngx_atomic_uint_t            n;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_survey_t  *survey;

    static const struct {
        const char  *name;
        const char  *help;
        size_t       offset;
        unsigned     seconds;
    } sums[] = {
        { "calls", "Requests to a shard.",
          offsetof(ngx_http_urlstore_calls_t, calls), 0 },
        { "failed_calls", "Requests that a shard did not answer.",
          offsetof(ngx_http_urlstore_calls_t, failed), 0 },
        { "unknown_calls", "Changes that a shard did not answer: they may be "
          "done.", offsetof(ngx_http_urlstore_calls_t, unknown), 0 },
        { "unanswered", "URLs and ids that a shard did not answer.",
          offsetof(ngx_http_urlstore_calls_t, items), 0 },
        { "call_seconds", "Duration of all requests to a shard.",
          offsetof(ngx_http_urlstore_calls_t, time), 1 }
    };

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;
    rc = NGX_OK;

    for (k = 0; rc == NGX_OK && k < sizeof(sums) / sizeof(sums[0]); k++) {

        rc = ngx_http_urlstore_out_printf(&ctx->out, NGX_HTTP_URLSTORE_LINE,
               "# HELP urlstore_router_%s_total %s\n"
               "# TYPE urlstore_router_%s_total counter\n",
               sums[k].name, sums[k].help, sums[k].name);

        for (i = 0; rc == NGX_OK && i < survey->map->nshards; i++) {
            n = *(ngx_atomic_t *) ((u_char *) &ctx->zone->sh->calls[
                                       survey->map->shards[i].number]
                                   + sums[k].offset);

            rc = ngx_http_urlstore_out_printf(&ctx->out,
                   NGX_HTTP_URLSTORE_LINE, sums[k].seconds
                   ? "urlstore_router_%s_total{cluster=\"%V\",shard=\"%uD\"} "
                     "%uA.%06uA\n"
                   : "urlstore_router_%s_total{cluster=\"%V\",shard=\"%uD\"} "
                     "%uA\n",
                   sums[k].name, &ctx->zone->name,
                   survey->map->shards[i].number,
                   sums[k].seconds ? n / 1000000 : n, n % 1000000);
        }
    }

    return rc;
}


static ngx_int_t
ngx_http_urlstore_survey_metrics(ngx_http_request_t *r)
{
    size_t                       i, k;
    uint64_t                     n[US_N];
    ngx_int_t                    rc;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_out_t     *out;
    ngx_http_urlstore_survey_t  *survey;

    static const char *const  words[] = { "ready", "writable" };

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    survey = ctx->data;
    out = &ctx->out;

    us_tally_sums(ctx->zone->sh->tallies, n, US_N);
    ngx_str_set(&ctx->type, "text/plain; version=0.0.4; charset=utf-8");

    if (ngx_http_urlstore_out_init(out, r->pool, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_LINE,
               "# HELP urlstore_router_map_version Version of the map.\n"
               "# TYPE urlstore_router_map_version gauge\n"
               "urlstore_router_map_version{cluster=\"%V\"} %uL\n",
               &ctx->zone->name, survey->map->version);

    for (k = 0; k < 2; k++) {

        if (rc == NGX_OK) {
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_LINE,
                   "# HELP urlstore_router_shard_%s Whether a shard %s.\n"
                   "# TYPE urlstore_router_shard_%s gauge\n", words[k],
                   k ? "accepts new URLs" : "answers", words[k]);
        }

        for (i = 0; rc == NGX_OK && i < survey->map->nshards; i++) {
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_LINE,
                   "urlstore_router_shard_%s{cluster=\"%V\",shard=\"%uD\"} "
                   "%ui\n", words[k], &ctx->zone->name,
                   survey->map->shards[i].number,
                   k ? ngx_http_urlstore_survey_writable(&survey->calls[i])
                     : ngx_http_urlstore_survey_ready(&survey->calls[i]));
        }
    }

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_survey_calls(r);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_LINE,
               "# HELP urlstore_router_urls_total URLs by their answer.\n"
               "# TYPE urlstore_router_urls_total counter\n");
    }

    for (i = US_ANSWER_NEW; rc == NGX_OK && i <= US_ANSWERS_COUNTED; i++) {
        rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_LINE,
               "urlstore_router_urls_total{cluster=\"%V\",status=\"%s\"} "
               "%uL\n", &ctx->zone->name, us_answer_words[i].data,
               n[us_counter_of(i)]);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_out_printf(out, 3 * NGX_HTTP_URLSTORE_LINE,
               "urlstore_router_urls_total{cluster=\"%V\","
               "status=\"unavailable\"} %uL\n"
               "# HELP urlstore_router_unready_total Requests answered 503.\n"
               "# TYPE urlstore_router_unready_total counter\n"
               "urlstore_router_unready_total{cluster=\"%V\"} %uL\n"
               "# HELP urlstore_router_over_quota_total Requests refused "
               "by a quota.\n"
               "# TYPE urlstore_router_over_quota_total counter\n"
               "urlstore_router_over_quota_total{cluster=\"%V\"} %uL\n",
               &ctx->zone->name, n[US_N_UNAVAILABLE], &ctx->zone->name,
               n[US_N_UNREADY], &ctx->zone->name, n[US_N_QUOTA]);
    }

    return rc == NGX_OK ? ngx_http_urlstore_send(r)
                        : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_urlstore_route_metrics(ngx_http_request_t *r)
{
    return ngx_http_urlstore_survey(r, "/health?write=1",
                                    ngx_http_urlstore_survey_metrics);
}
