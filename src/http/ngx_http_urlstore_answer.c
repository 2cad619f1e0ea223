
/*
 * The answers of /add, /seen and /mark, in order of the input.
 *
 *     text     ID STATUS URL [site-...] [INDEX], tabs between
 *     JSON     {"results": [{"id", "status", "url", ...}, ...], "new", ...}
 *     NDJSON   {"id", "status", "url", ...} a line
 *
 * A single item (query, form, one JSON object) gets one object and a status
 * code of its own.
 */


#include "ngx_http_urlstore.h"


/* the longest answer without its URL and ref */
#define NGX_HTTP_URLSTORE_FIXED   256

/* of a rule, what a reason tells */
#define NGX_HTTP_URLSTORE_RULE    128


static ngx_int_t ngx_http_urlstore_answer_text(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_json(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_json_url(
    ngx_http_urlstore_ctx_t *ctx, ngx_http_urlstore_entry_t *e,
    ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_json_rest(
    ngx_http_urlstore_ctx_t *ctx, ngx_http_urlstore_entry_t *e,
    ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_single(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_location(ngx_http_request_t *r);
static ngx_uint_t ngx_http_urlstore_answer_of(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e);
static ngx_uint_t ngx_http_urlstore_answer_has_url(
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_escape(ngx_http_urlstore_ctx_t *ctx,
    u_char *start);
static uint64_t ngx_http_urlstore_answer_id(ngx_http_urlstore_entry_t *e,
    ngx_uint_t answer);
static ngx_int_t ngx_http_urlstore_answer_summary(ngx_http_request_t *r);
static u_char *ngx_http_urlstore_next_id(u_char *p,
    ngx_http_urlstore_ctx_t *ctx);
static void ngx_http_urlstore_answer_remember(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer);


static ngx_str_t  ngx_http_urlstore_answers[] = {
    ngx_string("new"),
    ngx_string("seen"),
    ngx_string("unseen"),
    ngx_string("invalid"),
    ngx_string("rejected"),
    ngx_string("full"),
    ngx_string("set"),
    ngx_string("clear"),
    ngx_string("unknown"),
    ngx_string("deleted")
};


/* before the first answer, and once */

ngx_int_t
ngx_http_urlstore_answer_begin(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_format_t   format;

    static const ngx_http_urlstore_format_t  presets[] = {
        NGX_HTTP_URLSTORE_TEXT,       /* US_INPUT_TEXT */
        NGX_HTTP_URLSTORE_NDJSON,     /* US_INPUT_NDJSON */
        NGX_HTTP_URLSTORE_JSON,       /* US_INPUT_JSON */
        NGX_HTTP_URLSTORE_JSON        /* US_INPUT_FORM */
    };

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    format = ngx_http_urlstore_accept(r, ctx->input
                                         ? presets[ctx->input->format]
                                         : NGX_HTTP_URLSTORE_JSON);

    ngx_http_urlstore_type(ctx, format);

    if (format == NGX_HTTP_URLSTORE_JSON && !ctx->single) {
        return ngx_http_urlstore_out_printf(&ctx->out, 16, "{\"results\":[");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_answer(ngx_http_request_t *r, ngx_http_urlstore_entry_t *e)
{
    ngx_int_t                 rc;
    ngx_uint_t                answer;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    answer = ngx_http_urlstore_answer_of(ctx, e);

    if (answer == NGX_HTTP_URLSTORE_A_SEEN) {
        ctx->top = ngx_max(ctx->top, e->item->id + 1);
    }

    if (ctx->single) {
        rc = ngx_http_urlstore_answer_single(r, e, answer);

    } else if (ctx->only_new && answer != NGX_HTTP_URLSTORE_A_NEW) {
        rc = NGX_OK;

    } else if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        rc = ngx_http_urlstore_answer_text(r, e, answer);

    } else {
        rc = ngx_http_urlstore_answer_json(r, e, answer);
    }

    if (rc == NGX_OK) {
        ctx->counts[answer]++;
    }

    return rc;
}


/* what closes a batch */

ngx_int_t
ngx_http_urlstore_answer_end(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->processed == 0 && ngx_http_urlstore_answer_begin(r) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->single) {
        return (ctx->status == NGX_HTTP_CREATED && ctx->zone->store)
               ? ngx_http_urlstore_answer_location(r) : NGX_OK;
    }

    return ngx_http_urlstore_answer_summary(r);
}


/* of a new URL, once it is sure that there is nothing wrong behind it */

static ngx_int_t
ngx_http_urlstore_answer_location(ngx_http_request_t *r)
{
    ngx_str_t                 location;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    location.data = ngx_pnalloc(r->pool, NGX_INT64_LEN + 4);
    if (location.data == NULL) {
        return NGX_ERROR;
    }

    location.len = ngx_sprintf(location.data, "url/%uL", ctx->id)
                   - location.data;

    return ngx_http_urlstore_header(r, "Location", &location);
}


/* for the metrics: all that was processed, whatever the reply is */

void
ngx_http_urlstore_answer_count(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_uint_t  i;

    for (i = NGX_HTTP_URLSTORE_A_NEW; i <= NGX_HTTP_URLSTORE_A_FULL; i++) {
        if (ctx->counts[i]) {
            ngx_http_urlstore_count(ctx->zone, NGX_HTTP_URLSTORE_N_NEW + i,
                                    ctx->counts[i]);
        }
    }
}


static ngx_uint_t
ngx_http_urlstore_answer_of(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e)
{
    us_store_status_t  status;

    if (!e->by_id && e->item == NULL) {

        if (e->kind == US_INPUT_URL && us_verdict_rejected(e->verdict)) {
            return NGX_HTTP_URLSTORE_A_REJECTED;
        }

        return NGX_HTTP_URLSTORE_A_INVALID;
    }

    status = (ctx->action == NGX_HTTP_URLSTORE_MARK) ? e->status
                                                     : e->item->status;

    switch (status) {

    case US_NEW:
        return NGX_HTTP_URLSTORE_A_NEW;

    case US_SEEN:
        return NGX_HTTP_URLSTORE_A_SEEN;

    case US_UNSEEN:
        ctx->negative = 1;
        ctx->absent = 1;
        return NGX_HTTP_URLSTORE_A_UNSEEN;

    case US_OK:
        return ctx->clear ? NGX_HTTP_URLSTORE_A_CLEAR
                          : NGX_HTTP_URLSTORE_A_SET;

    case US_UNKNOWN:
        ctx->negative = 1;
        return NGX_HTTP_URLSTORE_A_UNKNOWN;

    case US_DELETED:
        return NGX_HTTP_URLSTORE_A_DELETED;

    default: /* US_FULL */
        return NGX_HTTP_URLSTORE_A_FULL;
    }
}


static ngx_int_t
ngx_http_urlstore_answer_text(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    uint64_t                  id;
    ngx_str_t                *name;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    if (ngx_http_urlstore_out_room(out, NGX_HTTP_URLSTORE_FIXED) != NGX_OK) {
        return NGX_ERROR;
    }

    id = ngx_http_urlstore_answer_id(e, answer);

    if (id != US_STORE_NO_ID) {
        out->pos = ngx_http_urlstore_u64(out->pos, id);

    } else {
        *out->pos++ = '-';
    }

    name = &ngx_http_urlstore_answers[answer];

    *out->pos++ = '\t';
    out->pos = ngx_cpymem(out->pos, name->data, name->len);

    if (!ctx->brief) {
        *out->pos++ = '\t';

        if (answer == NGX_HTTP_URLSTORE_A_INVALID
            || answer == NGX_HTTP_URLSTORE_A_REJECTED)
        {
            out->pos = ngx_http_urlstore_reason(out->pos, e);

        } else if (ngx_http_urlstore_answer_has_url(e, answer)) {

            if (ngx_http_urlstore_answer_url(ctx, e, answer) != NGX_OK) {
                return NGX_ERROR;
            }

        } else {
            *out->pos++ = '-';
        }
    }

    if (ctx->sites) {
        switch (answer) {

        case NGX_HTTP_URLSTORE_A_NEW:
            out->pos = e->item->new_site
                       ? ngx_cpymem(out->pos, "\tsite-new", 9)
                       : ngx_cpymem(out->pos, "\tsite-known", 11);
            break;

        case NGX_HTTP_URLSTORE_A_SEEN:
            out->pos = ngx_cpymem(out->pos, "\tsite-known", 11);
            break;

        default:
            out->pos = ngx_cpymem(out->pos, "\t-", 2);
        }
    }

    if (ctx->only_new) {
        *out->pos++ = '\t';
        out->pos = ngx_http_urlstore_u64(out->pos, ctx->processed);
    }

    *out->pos++ = '\n';

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_answer_json(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    uint64_t                  id;
    ngx_str_t                *name;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    if (ngx_http_urlstore_out_room(out, NGX_HTTP_URLSTORE_FIXED) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->shown++ && ctx->format == NGX_HTTP_URLSTORE_JSON) {
        *out->pos++ = ',';
    }

    id = ngx_http_urlstore_answer_id(e, answer);

    if (id != US_STORE_NO_ID) {
        out->pos = ngx_cpymem(out->pos, "{\"id\":", 6);
        out->pos = ngx_http_urlstore_u64(out->pos, id);

    } else {
        out->pos = ngx_cpymem(out->pos, "{\"id\":null", 10);
    }

    name = &ngx_http_urlstore_answers[answer];

    out->pos = ngx_cpymem(out->pos, ",\"status\":\"", 11);
    out->pos = ngx_cpymem(out->pos, name->data, name->len);
    *out->pos++ = '"';

    if (ngx_http_urlstore_answer_json_url(ctx, e, answer) != NGX_OK
        || ngx_http_urlstore_answer_json_rest(ctx, e, answer) != NGX_OK)
    {
        return NGX_ERROR;
    }

    *out->pos++ = '}';

    if (ctx->format != NGX_HTTP_URLSTORE_JSON || ctx->single) {
        *out->pos++ = '\n';
    }

    return NGX_OK;
}


/* "url", or "reason" in its place */

static ngx_int_t
ngx_http_urlstore_answer_json_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    u_char                   *start;
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;

    if (answer == NGX_HTTP_URLSTORE_A_INVALID
        || answer == NGX_HTTP_URLSTORE_A_REJECTED)
    {
        out->pos = ngx_cpymem(out->pos, ",\"reason\":\"", 11);
        start = out->pos;
        out->pos = ngx_http_urlstore_reason(out->pos, e);

        if (ngx_http_urlstore_answer_escape(ctx, start) != NGX_OK) {
            return NGX_ERROR;
        }

        *out->pos++ = '"';

    } else if (!ngx_http_urlstore_answer_has_url(e, answer)) {
        out->pos = ngx_cpymem(out->pos, ",\"url\":null", 11);

    } else {
        out->pos = ngx_cpymem(out->pos, ",\"url\":\"", 8);

        /* the room may be in another piece than what is before it */

        if (ngx_http_urlstore_answer_url(ctx, e, answer) != NGX_OK) {
            return NGX_ERROR;
        }

        *out->pos++ = '"';
    }

    return NGX_OK;
}


/* the members that a client asked for, or sent */

static ngx_int_t
ngx_http_urlstore_answer_json_rest(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;

    if (ctx->sites && (answer == NGX_HTTP_URLSTORE_A_NEW
                       || answer == NGX_HTTP_URLSTORE_A_SEEN))
    {
        out->pos = (answer == NGX_HTTP_URLSTORE_A_NEW && e->item->new_site)
                   ? ngx_cpymem(out->pos, ",\"new_site\":true", 16)
                   : ngx_cpymem(out->pos, ",\"new_site\":false", 17);
    }

    if (ctx->only_new) {
        out->pos = ngx_cpymem(out->pos, ",\"index\":", 9);
        out->pos = ngx_http_urlstore_u64(out->pos, ctx->processed);
    }

    if (e->ref.len) {
        if (ngx_http_urlstore_out_room(out, e->ref.len
                                            + NGX_HTTP_URLSTORE_FIXED)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, ",\"ref\":", 7);
        out->pos = ngx_cpymem(out->pos, e->ref.data, e->ref.len);
    }

    if (ctx->single) {
        out->pos = ngx_cpymem(out->pos, ",\"next_id\":", 11);
        out->pos = ngx_http_urlstore_next_id(out->pos, ctx);
        out->pos = ngx_cpymem(out->pos, ",\"epoch\":", 9);
        out->pos = ngx_http_urlstore_u64(out->pos, ctx->zone->conf.epoch);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_answer_single(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_answer_remember(r, e, answer);

    switch (answer) {

    case NGX_HTTP_URLSTORE_A_INVALID:
    case NGX_HTTP_URLSTORE_A_REJECTED:
    case NGX_HTTP_URLSTORE_A_FULL:
        ctx->refused = *e;
        ctx->status = answer == NGX_HTTP_URLSTORE_A_FULL
                      ? NGX_HTTP_INSUFFICIENT_STORAGE
                      : NGX_HTTP_URLSTORE_UNPROCESSABLE;

        /* until the body has ended, others may use the group that holds it */

        if (e->ref.len) {
            ctx->refused.ref.data = ngx_pstrdup(r->pool, &ctx->refused.ref);
            if (ctx->refused.ref.data == NULL) {
                return NGX_ERROR;
            }
        }

        return NGX_OK;

    case NGX_HTTP_URLSTORE_A_NEW:
        ctx->status = NGX_HTTP_CREATED;
        break;

    default:
        break;
    }

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        return ngx_http_urlstore_answer_text(r, e, answer);
    }

    return ngx_http_urlstore_answer_json(r, e, answer);
}


static uint64_t
ngx_http_urlstore_answer_id(ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    switch (answer) {

    case NGX_HTTP_URLSTORE_A_NEW:
    case NGX_HTTP_URLSTORE_A_SEEN:
        return e->item->id;

    case NGX_HTTP_URLSTORE_A_SET:
    case NGX_HTTP_URLSTORE_A_CLEAR:
    case NGX_HTTP_URLSTORE_A_DELETED:
        return e->id;

    default:
        return US_STORE_NO_ID;
    }
}


/* not the URL of a mark by an id that is unknown or deleted */

static ngx_uint_t
ngx_http_urlstore_answer_has_url(ngx_http_urlstore_entry_t *e,
    ngx_uint_t answer)
{
    return e->item || answer == NGX_HTTP_URLSTORE_A_SET
           || answer == NGX_HTTP_URLSTORE_A_CLEAR;
}


/* writes the canonical URL, with room for NGX_HTTP_URLSTORE_FIXED behind it */

static ngx_int_t
ngx_http_urlstore_answer_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    size_t                    len;
    u_char                   *start;
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;
    len = e->item ? e->item->url.len : US_URL_MAX;

    if (ngx_http_urlstore_out_room(out, len + 8 + NGX_HTTP_URLSTORE_FIXED)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    start = out->pos;

    if (e->item == NULL) {

        /* a mark by id */

        if (us_store_get(ctx->zone->store, e->id, out->pos, &len) == US_OK) {
            out->pos += len;
        }

    } else {
        if (ctx->zone->filter == NULL
            && (answer == NGX_HTTP_URLSTORE_A_UNSEEN
                || answer == NGX_HTTP_URLSTORE_A_FULL
                || answer == NGX_HTTP_URLSTORE_A_UNKNOWN))
        {
            us_store_spell(ctx->zone->store, e->item);
        }

        out->pos += us_store_item_url(e->item, out->pos);
    }

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        return NGX_OK;
    }

    return ngx_http_urlstore_answer_escape(ctx, start);
}


/*
 * What stands from start on becomes part of a JSON string.  Canonical URLs
 * hardly ever need it: a backslash is all that could be in one.
 */

static ngx_int_t
ngx_http_urlstore_answer_escape(ngx_http_urlstore_ctx_t *ctx, u_char *start)
{
    size_t                    len;
    u_char                   *p, *copy;
    us_str_t                  text;
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;
    len = out->pos - start;

    if (memchr(start, '\\', len) == NULL && memchr(start, '"', len) == NULL) {
        return NGX_OK;
    }

    copy = ngx_pnalloc(out->pool, len);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy, start, len);
    out->pos = start;

    if (ngx_http_urlstore_out_room(out, us_json_quoted_max(len)
                                        + NGX_HTTP_URLSTORE_FIXED)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    text.data = copy;
    text.len = len;

    /* without the quotes of us_json_quote(): they are there already */

    p = out->pos;
    out->pos = us_json_quote(p, text) - 2;
    ngx_memmove(p, p + 1, out->pos - p);

    return NGX_OK;
}


u_char *
ngx_http_urlstore_reason(u_char *p, ngx_http_urlstore_entry_t *e)
{
    u_char       c;
    size_t       i;
    us_str_t     rule;
    ngx_uint_t   utf8;
    const char  *name;

    if (e->kind == US_INPUT_BAD) {
        return ngx_cpymem(p, "json", 4);
    }

    if (e->kind == US_INPUT_LONG) {
        return ngx_cpymem(p, "length", 6);
    }

    if (e->verdict == US_URL_RULE) {
        p = ngx_cpymem(p, "rule:", 5);

        /* a regex may hold any byte; it is to be a field, and JSON */

        rule.data = e->rule.data;
        rule.len = ngx_min(e->rule.len, NGX_HTTP_URLSTORE_RULE);

        while (rule.len && rule.len < e->rule.len
               && (rule.data[rule.len] & 0xc0) == 0x80)
        {
            rule.len--;
        }

        utf8 = us_utf8_valid(rule);

        for (i = 0; i < rule.len; i++) {
            c = rule.data[i];
            *p++ = (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8)) ? '?' : c;
        }

        return p;
    }

    name = us_verdict_name(e->verdict);

    return ngx_cpymem(p, name, ngx_strlen(name));
}


static ngx_int_t
ngx_http_urlstore_answer_summary(ngx_http_request_t *r)
{
    u_char                    next_id[NGX_INT64_LEN + 1];
    const char               *fmt;
    ngx_uint_t                errors;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    if (ctx->format == NGX_HTTP_URLSTORE_JSON) {
        if (ngx_http_urlstore_out_printf(out, 4, "],") != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (!ctx->summary) {
        return NGX_OK;

    } else if (ctx->format == NGX_HTTP_URLSTORE_NDJSON) {
        if (ngx_http_urlstore_out_printf(out, 4, "{") != NGX_OK) {
            return NGX_ERROR;
        }
    }

    *ngx_http_urlstore_next_id(next_id, ctx) = '\0';

    errors = ctx->counts[NGX_HTTP_URLSTORE_A_INVALID]
             + ctx->counts[NGX_HTTP_URLSTORE_A_REJECTED]
             + ctx->counts[NGX_HTTP_URLSTORE_A_FULL];

    if (ctx->action == NGX_HTTP_URLSTORE_MARK) {

        fmt = (ctx->format == NGX_HTTP_URLSTORE_TEXT)
              ? "# set=%ui clear=%ui unknown=%ui deleted=%ui errors=%ui"
                " next_id=%s epoch=%uL\n"
              : "\"set\":%ui,\"clear\":%ui,\"unknown\":%ui,\"deleted\":%ui,"
                "\"errors\":%ui,\"next_id\":%s,\"epoch\":%uL}\n";

        return ngx_http_urlstore_out_printf(out, 512, fmt,
                                   ctx->counts[NGX_HTTP_URLSTORE_A_SET],
                                   ctx->counts[NGX_HTTP_URLSTORE_A_CLEAR],
                                   ctx->counts[NGX_HTTP_URLSTORE_A_UNKNOWN],
                                   ctx->counts[NGX_HTTP_URLSTORE_A_DELETED],
                                   errors, next_id,
                                   ctx->zone->conf.epoch);
    }

    fmt = (ctx->format == NGX_HTTP_URLSTORE_TEXT)
          ? "# new=%ui seen=%ui unseen=%ui errors=%ui next_id=%s"
            " epoch=%uL\n"
          : "\"new\":%ui,\"seen\":%ui,\"unseen\":%ui,\"errors\":%ui,"
            "\"next_id\":%s,\"epoch\":%uL}\n";

    return ngx_http_urlstore_out_printf(out, 512, fmt,
                                   ctx->counts[NGX_HTTP_URLSTORE_A_NEW],
                                   ctx->counts[NGX_HTTP_URLSTORE_A_SEEN],
                                   ctx->counts[NGX_HTTP_URLSTORE_A_UNSEEN],
                                   errors, next_id,
                                   ctx->zone->conf.epoch);
}


/* a server that does not own the directory does not know it */

static u_char *
ngx_http_urlstore_next_id(u_char *p, ngx_http_urlstore_ctx_t *ctx)
{
    if (ctx->next_id != US_STORE_NO_ID) {
        return ngx_http_urlstore_u64(p, ctx->next_id);
    }

    return ctx->format == NGX_HTTP_URLSTORE_TEXT
           ? ngx_cpymem(p, "-", 1) : ngx_cpymem(p, "null", 4);
}


/* an error is answered instead */

void
ngx_http_urlstore_answer_forget(ngx_http_urlstore_ctx_t *ctx)
{
    ctx->id = US_STORE_NO_ID;
    ngx_str_null(&ctx->status_name);
    ngx_str_null(&ctx->url);
}


/* for the variables */

static void
ngx_http_urlstore_answer_remember(ngx_http_request_t *r,
    ngx_http_urlstore_entry_t *e, ngx_uint_t answer)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->id = ngx_http_urlstore_answer_id(e, answer);
    ctx->status_name = ngx_http_urlstore_answers[answer];

    if (e->item == NULL) {
        return;
    }

    ctx->url.data = ngx_pnalloc(r->pool, e->item->url.len + 8);

    if (ctx->url.data) {
        ctx->url.len = us_store_item_url(e->item, ctx->url.data);
    }
}
