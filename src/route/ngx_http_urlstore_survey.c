
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
 *     /set        PUT and DELETE go to all shards, each of which has its part
 *                 of a set; GET adds the parts up
 *
 * Shards are asked for /health?write=1.  Only the node that accepts changes
 * answers by 200, so all nodes of a shard are asked until it is found.
 */


#include "ngx_http_urlstore_route.h"
#include "../api/us_answer.h"
#include "../us_text.h"


/* bytes that are written at once: a cluster's name and a line beside it */
#define NGX_HTTP_URLSTORE_LINE     1024


typedef struct ngx_http_urlstore_survey_s  ngx_http_urlstore_survey_t;

typedef void (*ngx_http_urlstore_report_pt)(ngx_http_urlstore_survey_t *survey);

struct ngx_http_urlstore_survey_s {
    ngx_http_urlstore_ctx_t        *ctx;
    const us_map_t                 *map;
    ngx_http_urlstore_fan_t        *fan;      /* a call for each shard */
    ngx_uint_t                      ready;    /* shards that are */
    ngx_uint_t                      writable;
    const char                     *word;     /* for these */
    ngx_http_urlstore_out_t        *out;
    ngx_int_t                       rc;       /* NGX_ERROR: a line is missing */
    ngx_http_urlstore_report_pt     report;
};


/* a line of the reply, unless one before it had no room */

static void
ngx_http_urlstore_survey_put(ngx_http_urlstore_survey_t *survey,
    const char *fmt, ...)
{
    va_list                   args;
    ngx_http_urlstore_out_t  *out;

    out = survey->out;

    if (survey->rc == NGX_OK) {
        survey->rc = ngx_http_urlstore_out_room(out, NGX_HTTP_URLSTORE_LINE);
    }

    if (survey->rc == NGX_OK) {
        va_start(args, fmt);
        out->pos = ngx_vslprintf(out->pos, out->pos + NGX_HTTP_URLSTORE_LINE,
                                 fmt, args);
        va_end(args);
    }
}


/* what the last node that has answered reports */

static us_str_t
ngx_http_urlstore_survey_text(ngx_http_urlstore_call_t *call)
{
    return call->end.status ? call->end.text : call->before;
}


/* whether it reports one of these members */

static ngx_uint_t
ngx_http_urlstore_survey_has(ngx_http_urlstore_call_t *call,
    const char *const *members)
{
    us_str_t  text;

    text = ngx_http_urlstore_survey_text(call);

    for ( /* void */ ; text.len && *members; members++) {
        if (memmem(text.data, text.len, *members, ngx_strlen(*members))) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_urlstore_survey_ready(ngx_http_urlstore_call_t *call)
{
    static const char *const  members[] = {
        "\"status\":\"ready\"", "\"status\":\"read-only\"",
        "\"status\":\"full\"", "\"ready\":true", NULL
    };

    return ngx_http_urlstore_survey_has(call, members);
}


static ngx_uint_t
ngx_http_urlstore_survey_writable(ngx_http_urlstore_call_t *call)
{
    static const char *const  members[] = { "\"writable\":true", NULL };

    return ngx_http_urlstore_survey_has(call, members);
}


/* of the fan */

static ngx_int_t
ngx_http_urlstore_survey_done(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_uint_t                   i;
    ngx_http_urlstore_call_t    *call;
    ngx_http_urlstore_survey_t  *survey;

    survey = ctx->data;

    for (i = 0; i < survey->map->nshards; i++) {
        call = &survey->fan->calls[i];
        survey->ready += ngx_http_urlstore_survey_ready(call);
        survey->writable += ngx_http_urlstore_survey_writable(call);
    }

    survey->word = survey->ready == survey->map->nshards ? "ready"
                   : survey->ready ? "degraded" : "unavailable";

    survey->rc = ngx_http_urlstore_out_init(survey->out, ctx->r->pool, 0);
    survey->report(survey);

    return survey->rc == NGX_OK ? ngx_http_urlstore_send(ctx)
                                : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* what each shard has answered, and the end of the object */

static void
ngx_http_urlstore_survey_shards(ngx_http_urlstore_survey_t *survey)
{
    us_str_t                   text, node, address;
    us_json_t                  j;
    ngx_uint_t                 i;
    const char                *why;
    us_json_event_t            event;
    ngx_http_upstream_t       *u;
    ngx_http_urlstore_out_t   *out;
    ngx_http_urlstore_call_t  *call;

    out = survey->out;

    for (i = 0; i < survey->map->nshards; i++) {
        call = &survey->fan->calls[i];
        text = ngx_http_urlstore_survey_text(call);

        ngx_http_urlstore_survey_put(survey, "%s\"%uD\":",
                                     i ? "," : ",\"shards\":{",
                                     survey->map->shards[i].number);
        if (survey->rc != NGX_OK) {
            return;
        }

        /* a whole object; a problem of it is JSON as well */

        us_json_init(&j, 0);
        us_json_text(&j, text);

        do {
            event = us_json_next(&j);
        } while (event != US_JSON_END && event != US_JSON_ERROR);

        us_json_free(&j);

        if (event != US_JSON_ERROR && text.data[0] == '{') {
            text.len -= (text.data[text.len - 1] == '\n');
            survey->rc = ngx_http_urlstore_out_room(out, text.len);

            if (survey->rc == NGX_OK) {
                out->pos = us_put_str(out->pos, text);
            }

            continue;
        }

        /* the node that was asked last, and why it has no answer */

        node = call->map->shards[call->shard].nodes[call->node];
        u = call->sr ? call->sr->upstream : NULL;
        address = u && u->state && u->state->peer
                  ? ngx_http_urlstore_str(u->state->peer) : us_string("");

        why = call->end.status ? "its answer is of no shard"
              : call->foreign ? "it is another shard, or none"
              : call->rc == NGX_HTTP_GATEWAY_TIME_OUT
              ? (call->end.sent ? "it does not answer in time"
                            : "it could not be connected in time")
              : call->end.sent ? "it has closed the connection"
              : "it could not be connected";

        survey->rc = ngx_http_urlstore_out_room(out, 256
                                            + us_json_quoted_max(node.len)
                                            + us_json_quoted_max(address.len));

        if (survey->rc == NGX_OK) {
            out->pos = us_json_printf(out->pos, "{\"status\":\"unavailable\","
                                      "\"writable\":false,\"node\":%q,"
                                      "\"address\":%q,\"reason\":\"%s\"}",
                                      node, address, why);
        }
    }

    ngx_http_urlstore_survey_put(survey, "}}\n");
}


static void
ngx_http_urlstore_survey_health(ngx_http_urlstore_survey_t *survey)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = survey->ctx;

    if (survey->ready == 0
        || (survey->writable == 0
            && ngx_http_urlstore_flag(survey->ctx->r, "write")))
    {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    ngx_http_urlstore_accept(survey->ctx, US_FORMAT_JSON);

    if (ctx->format == US_FORMAT_TEXT) {
        ngx_http_urlstore_survey_put(survey, "%s\n", survey->word);
        return;
    }

    ngx_http_urlstore_survey_put(survey, "{\"status\":\"%s\",\"writable\":%s,"
                                 "\"map\":%uL", survey->word,
                                 survey->writable ? "true" : "false",
                                 survey->map->version);
    ngx_http_urlstore_survey_shards(survey);
}


static void
ngx_http_urlstore_survey_stats(ngx_http_urlstore_survey_t *survey)
{
    size_t                    i;
    uint64_t                  n[US_N];
    u_char                    digest[32];
    const us_map_t           *map;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = survey->ctx;
    map = survey->map;

    us_tally_sums(ctx->zone->sh->tallies, n);
    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);
    ngx_hex_dump(digest, (u_char *) map->digest, 16);

    ngx_http_urlstore_survey_put(survey,
                                 "{\"cluster\":\"%V\",\"status\":\"%s\","
                                 "\"map\":%uL,\"digest\":\"%*s\","
                                 "\"key\":\"%s\",\"normalization\":\"%*s\"",
                                 &ctx->zone->name, survey->word, map->version,
                                 (size_t) 32, digest,
                                 map->key == US_KEY_SITE ? "site" : "url",
                                 map->norm.len, map->norm.data);

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        ngx_http_urlstore_survey_put(survey, ",\"%s\":%uL",
                                     us_answer_words[i].data,
                                     n[us_counter_of(i)]);
    }

    ngx_http_urlstore_survey_put(survey, ",\"unavailable\":%uL",
                                 n[US_N_UNAVAILABLE]);
    ngx_http_urlstore_survey_shards(survey);
}


/* a figure's head */

static void
ngx_http_urlstore_survey_head(ngx_http_urlstore_survey_t *survey,
    const char *name, const char *type, const char *help)
{
    ngx_http_urlstore_survey_put(survey, "# HELP urlstore_router_%s %s\n"
                                 "# TYPE urlstore_router_%s %s\n", name, help,
                                 name, type);
}


static void
ngx_http_urlstore_survey_metrics(ngx_http_urlstore_survey_t *survey)
{
    size_t                      i, k;
    uint64_t                    n[US_N], value;
    uint32_t                    shard;
    ngx_str_t                  *name;
    ngx_http_urlstore_calls_t  *calls;

    /* of each shard: what it is, or the place of a sum of the calls to it */

    static const struct {
        const char  *name;
        const char  *type;
        const char  *help;
        ngx_uint_t (*is)(ngx_http_urlstore_call_t *call);
        size_t       offset;
        unsigned     seconds;         /* it is in us */
    } figures[] = {
        { "shard_ready", "gauge", "Whether a shard answers.",
          ngx_http_urlstore_survey_ready, 0, 0 },
        { "shard_writable", "gauge", "Whether a shard accepts new URLs.",
          ngx_http_urlstore_survey_writable, 0, 0 },
        { "calls_total", "counter", "Requests to a shard.", NULL,
          offsetof(ngx_http_urlstore_calls_t, calls), 0 },
        { "failed_calls_total", "counter",
          "Requests that a shard did not answer.", NULL,
          offsetof(ngx_http_urlstore_calls_t, failed), 0 },
        { "unknown_calls_total", "counter",
          "Changes that a shard did not answer: they may be done.", NULL,
          offsetof(ngx_http_urlstore_calls_t, unknown), 0 },
        { "unanswered_total", "counter",
          "URLs and ids that a shard did not answer.", NULL,
          offsetof(ngx_http_urlstore_calls_t, items), 0 },
        { "call_seconds_total", "counter",
          "Duration of all requests to a shard.", NULL,
          offsetof(ngx_http_urlstore_calls_t, time), 1 }
    };

    /* of the router: its counters */

    static const struct {
        const char  *name;
        const char  *help;
        unsigned     counter;
    } counters[] = {
        { "unready_total", "Requests answered 503.", US_N_UNREADY },
        { "over_quota_total", "Requests refused by a quota.", US_N_QUOTA }
    };

    name = &survey->ctx->zone->name;

    us_tally_sums(survey->ctx->zone->sh->tallies, n);
    ngx_str_set(&survey->ctx->type, "text/plain; version=0.0.4; charset=utf-8");

    ngx_http_urlstore_survey_head(survey, "map_version", "gauge",
                                  "Version of the map.");
    ngx_http_urlstore_survey_put(survey, "urlstore_router_map_version{"
                                 "cluster=\"%V\"} %uL\n", name,
                                 survey->map->version);

    for (k = 0; k < sizeof(figures) / sizeof(figures[0]); k++) {
        ngx_http_urlstore_survey_head(survey, figures[k].name, figures[k].type,
                                      figures[k].help);

        for (i = 0; i < survey->map->nshards; i++) {
            shard = survey->map->shards[i].number;
            calls = &survey->ctx->zone->sh->calls[shard];

            value = figures[k].is ? figures[k].is(&survey->fan->calls[i])
                    : *(ngx_atomic_t *) ((u_char *) calls + figures[k].offset);

            ngx_http_urlstore_survey_put(survey,
                                         "urlstore_router_%s{cluster=\"%V\","
                                         "shard=\"%uD\"} ",
                                         figures[k].name, name, shard);
            ngx_http_urlstore_survey_put(survey, figures[k].seconds
                                                 ? "%uL.%06uL\n" : "%uL\n",
                                         figures[k].seconds
                                         ? value / 1000000 : value,
                                         value % 1000000);
        }
    }

    ngx_http_urlstore_survey_head(survey, "urls_total", "counter",
                                  "URLs by their answer.");

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        ngx_http_urlstore_survey_put(survey, "urlstore_router_urls_total{"
                                     "cluster=\"%V\",status=\"%s\"} %uL\n",
                                     name, us_answer_words[i].data,
                                     n[us_counter_of(i)]);
    }

    ngx_http_urlstore_survey_put(survey, "urlstore_router_urls_total{"
                                 "cluster=\"%V\",status=\"unavailable\"} "
                                 "%uL\n", name, n[US_N_UNAVAILABLE]);

    for (k = 0; k < sizeof(counters) / sizeof(counters[0]); k++) {
        ngx_http_urlstore_survey_head(survey, counters[k].name, "counter",
                                      counters[k].help);
        ngx_http_urlstore_survey_put(survey, "urlstore_router_%s{"
                                     "cluster=\"%V\"} %uL\n",
                                     counters[k].name, name,
                                     n[counters[k].counter]);
    }
}


/* /health, /stats and /metrics */

ngx_int_t
ngx_http_urlstore_survey(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_http_urlstore_fan_t     *fan;
    ngx_http_urlstore_survey_t  *survey;

    /* what the shards are asked, by endpoint */

    static const struct {
        ngx_str_t                    path;
        ngx_http_urlstore_report_pt  report;
    } rows[] = {
        [NGX_HTTP_URLSTORE_E_HEALTH] = { ngx_string("/health?write=1"),
                                         ngx_http_urlstore_survey_health },
        [NGX_HTTP_URLSTORE_E_STATS] = { ngx_string("/stats"),
                                        ngx_http_urlstore_survey_stats },
        [NGX_HTTP_URLSTORE_E_METRICS] = { ngx_string("/health?write=1"),
                                          ngx_http_urlstore_survey_metrics }
    };

    rc = ngx_http_urlstore_fan(ctx, &fan);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    survey = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_survey_t));
    if (survey == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    i = ctx->endpoint - ngx_http_urlstore_endpoints;

    survey->ctx = ctx;
    survey->map = fan->map;
    survey->fan = fan;
    survey->out = &ctx->out;
    survey->report = rows[i].report;

    ctx->data = survey;
    fan->done = ngx_http_urlstore_survey_done;

    return ngx_http_urlstore_fan_all(fan, &rows[i].path, NGX_HTTP_GET, 1);
}


/* of the names of sets */

static int ngx_libc_cdecl
ngx_http_urlstore_survey_order(const void *one, const void *two)
{
    const us_store_set_info_t  *a, *b;

    a = one;
    b = two;

    return us_str_compare(a->name, b->name);
}


ngx_uint_t
ngx_http_urlstore_survey_answers(ngx_http_urlstore_call_t *call)
{
    return call->end.status && call->received == call->end.text.len
           && (call->end.status < NGX_HTTP_INTERNAL_SERVER_ERROR
               || call->end.status == NGX_HTTP_INSUFFICIENT_STORAGE)
           && call->end.status != NGX_HTTP_URLSTORE_MISDIRECTED;
}


u_char *
ngx_http_urlstore_survey_lost(u_char *p, us_format_t format,
    const ngx_str_t *silent)
{
    return silent->len == 0 ? p
           : ngx_sprintf(p, format == US_FORMAT_TEXT ? "# unavailable=%*s\n"
                            : format == US_FORMAT_JSON
                            ? ",\"unavailable\":[%*s]"
                            : "{\"unavailable\":[%*s]}\n",
                         silent->len - 1, silent->data + 1);
}


ngx_int_t
ngx_http_urlstore_survey_best(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *silent,
    ngx_http_urlstore_call_t **found)
{
    u_char                    *p, *members;
    ngx_uint_t                 i, number, reads, unsure;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call, *best;

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);

    p = ngx_pnalloc(ctx->r->pool, fan->n * (NGX_INT32_LEN + 1) + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    silent->data = p;

    /* what matters: refused; made, or dropped; it is there; it is not */

    best = NULL;
    number = 0;
    unsure = 0;

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        if (!ngx_http_urlstore_survey_answers(call)) {
            number = fan->map->shards[call->shard].number;
            p = ngx_sprintf(p, ",%ui", number);
            unsure |= us_wire_unsure(&call->end);
            continue;
        }

        if (best == NULL || best->end.status == NGX_HTTP_NOT_FOUND
            || (call->end.status >= NGX_HTTP_BAD_REQUEST
                && call->end.status != NGX_HTTP_NOT_FOUND)
            || (best->end.status == NGX_HTTP_OK
                && call->end.status == NGX_HTTP_CREATED))
        {
            best = call;
        }
    }

    silent->len = p - silent->data;
    reads = fan->calls[0].end.reads;

    if ((best == NULL && !unsure)
        || (reads && silent->len && best->end.status == NGX_HTTP_NOT_FOUND))
    {
        /* one that does not answer may have a part */

        return ngx_http_urlstore_route_silent(ctx, number);
    }

    if (silent->len && !reads) {

        members = ngx_pnalloc(ctx->r->pool, silent->len + 32);

        if (members == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_http_urlstore_retry_after(ctx, 1);

        ngx_sprintf(members, "\"unavailable\":[%*s]%Z", silent->len - 1,
                    silent->data + 1);

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_GATEWAY_TIME_OUT,
                                         (char *) members, "not all shards "
                                         "have answered, so they may have "
                                         "done it or not; the others have: "
                                         "send the request again");
    }

    if (best->end.status >= NGX_HTTP_BAD_REQUEST
        || best->end.status == NGX_HTTP_NO_CONTENT)
    {
        return ngx_http_urlstore_relay_reply(ctx, best);
    }

    *found = best;

    return NGX_DECLINED;
}


/* of the fan: the parts of each set, added up */

static ngx_int_t
ngx_http_urlstore_survey_sets(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t                   text;
    ngx_int_t                  rc;
    ngx_str_t                  silent;
    ngx_uint_t                 i, n;
    ngx_array_t                sets;
    us_store_set_info_t       *set, *last;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_out_t   *out;
    ngx_http_urlstore_call_t  *best;

    rc = ngx_http_urlstore_survey_best(ctx, &silent, &best);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->status = best->end.status;
    ctx->wrote = (ctx->r->method == NGX_HTTP_PUT);

    fan = ngx_http_get_module_ctx(ctx->r, ngx_http_urlstore_route_module);
    out = &ctx->out;

    if (ngx_array_init(&sets, ctx->r->pool, 64, sizeof(us_store_set_info_t))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        text = fan->calls[i].end.text;

        while (fan->calls[i].end.status < NGX_HTTP_BAD_REQUEST
               && ngx_http_urlstore_survey_answers(&fan->calls[i])
               && text.len)
        {

            set = ngx_array_push(&sets);
            if (set == NULL) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (!us_list_set_read(&text, set)) {
                sets.nelts--;
                break;
            }
        }
    }

    set = sets.elts;
    n = sets.nelts;
    last = NULL;

    ngx_qsort(set, n, sizeof(us_store_set_info_t),
              ngx_http_urlstore_survey_order);

    for (i = 0; i < n; i++) {

        if (last == NULL || us_str_compare(last->name, set[i].name) != 0) {
            last = last ? last + 1 : set;
            *last = set[i];
            continue;
        }

        last->members += set[i].members;
        last->bytes += set[i].bytes;
        last->asked += set[i].asked;
        last->created = ngx_min(last->created, set[i].created);
    }

    n = last ? last + 1 - set : 0;

    if (ctx->set_name.len && n != 1) {
        return ngx_http_urlstore_route_silent(ctx, fan->map->shards[0].number);
    }

    if (ngx_http_urlstore_out_init(out, ctx->r->pool, 0) != NGX_OK
        || ngx_http_urlstore_out_room(out, 64 + silent.len
                                           + n * US_LIST_SET)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == US_FORMAT_JSON && ctx->set_name.len == 0) {
        out->pos = us_put(out->pos, "{\"sets\":[");
    }

    for (i = 0; i < n; i++) {
        if (i && ctx->format == US_FORMAT_JSON) {
            *out->pos++ = ',';
        }

        out->pos = us_list_set(out->pos, ctx->format, &set[i]);
    }

    if (ctx->format == US_FORMAT_JSON && ctx->set_name.len) {
        out->pos--;

    } else if (ctx->format == US_FORMAT_JSON) {
        *out->pos++ = ']';
    }

    out->pos = ngx_http_urlstore_survey_lost(out->pos, ctx->format, &silent);

    if (ctx->format == US_FORMAT_JSON) {
        out->pos = us_put(out->pos, "}\n");
    }

    return ngx_http_urlstore_send(ctx);
}


/* GET /set; PUT, GET and DELETE /set/NAME */

ngx_int_t
ngx_http_urlstore_route_set(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_str_t                 path;
    ngx_http_urlstore_fan_t  *fan;

    rc = ngx_http_urlstore_set_batch(ctx);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_fan(ctx, &fan);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_urlstore_route_path(ctx, &path, "/set%s%V",
                                     ctx->set_name.len ? "/" : "",
                                     &ctx->set_name)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_accept(ctx, US_FORMAT_JSON);

    fan->done = ngx_http_urlstore_survey_sets;

    return ngx_http_urlstore_fan_all(fan, &path, ctx->r->method, 0);
}
