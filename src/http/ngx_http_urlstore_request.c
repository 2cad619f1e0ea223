
/*
 * The parameters of a request: query arguments (decoded once), the answer
 * formats that it accepts, ids.
 */


#include "ngx_http_urlstore_request.h"


static ngx_int_t ngx_http_urlstore_raw_arg(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_media(u_char *p, size_t len,
    ngx_http_urlstore_format_t preset, ngx_http_urlstore_format_t *format);
static ngx_uint_t ngx_http_urlstore_quality(u_char *p, u_char *last);


/* the request's, which begins here; NULL: no memory */

ngx_http_urlstore_ctx_t *
ngx_http_urlstore_ctx(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     ctx->format = NGX_HTTP_URLSTORE_TEXT;
     *     ctx->lsn = 0;
     *     ...
     */

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    ctx->zone = ulcf->zone;
    ctx->status = NGX_HTTP_OK;
    ctx->id = US_STORE_NO_ID;

    ngx_http_set_ctx(r, ctx, ngx_http_urlstore_module);

    return ctx;
}


/*
 * The first NAME=VALUE.  ngx_http_arg() looks for the name at each byte, in
 * any case; a single look-up asks for six names.
 */

static ngx_int_t
ngx_http_urlstore_raw_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    size_t   len;
    u_char  *p, *next, *last;

    len = ngx_strlen(name);
    p = r->args.data;
    last = p + r->args.len;

    for ( /* void */ ; p < last; p = next + 1) {

        next = memchr(p, '&', last - p);
        if (next == NULL) {
            next = last;
        }

        if ((size_t) (next - p) > len && p[len] == '='
            && ngx_memcmp(p, name, len) == 0)
        {
            value->data = p + len + 1;
            value->len = next - value->data;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_str_t  raw;

    value->len = 0;
    value->data = NULL;

    if (ngx_http_urlstore_raw_arg(r, name, &raw) != NGX_OK) {
        return NGX_DECLINED;
    }

    value->data = ngx_pnalloc(r->pool, raw.len + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = us_input_unescape(value->data, raw.data, raw.len);
    value->data[value->len] = '\0';

    return NGX_OK;
}


/* NAME=1: set; NAME=0, NAME= and no NAME: not */

ngx_int_t
ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name)
{
    ngx_str_t  value;

    return ngx_http_urlstore_raw_arg(r, name, &value) == NGX_OK
           && value.len
           && !(value.len == 1 && value.data[0] == '0');
}


/* the first header of this name, in lower case; NULL: there is none */

ngx_str_t *
ngx_http_urlstore_header_in(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == len
            && ngx_strncmp(h[i].lowcase_key, name, len) == 0)
        {
            return &h[i].value;
        }
    }
}


/*
 * The format of the answer: the best that `Accept` names, `preset` if it
 * names none that there is.
 */

ngx_http_urlstore_format_t
ngx_http_urlstore_accept(ngx_http_request_t *r,
    ngx_http_urlstore_format_t preset)
{
    u_char                      *p, *last, *comma;
    ngx_str_t                   *value;
    ngx_uint_t                   q, best;
    ngx_http_urlstore_format_t   format, found;

    value = ngx_http_urlstore_header_in(r, "accept");

    if (value == NULL) {
        return preset;
    }

    p = value->data;
    last = p + value->len;
    best = 0;
    found = preset;

    while (p < last) {
        comma = ngx_strlchr(p, last, ',');
        if (comma == NULL) {
            comma = last;
        }

        if (ngx_http_urlstore_media(p, comma - p, preset, &format) == NGX_OK) {
            q = ngx_http_urlstore_quality(p, comma);

            if (q > best) {
                best = q;
                found = format;
            }
        }

        p = comma + 1;
    }

    return found;
}


static ngx_int_t
ngx_http_urlstore_media(u_char *p, size_t len,
    ngx_http_urlstore_format_t preset, ngx_http_urlstore_format_t *format)
{
    u_char      *last;
    ngx_uint_t   i;

    static const struct {
        ngx_str_t                    name;
        ngx_http_urlstore_format_t   format;
    } types[] = {
        { ngx_string("application/json"), NGX_HTTP_URLSTORE_JSON },
        { ngx_string("application/x-ndjson"), NGX_HTTP_URLSTORE_NDJSON },
        { ngx_string("application/ndjson"), NGX_HTTP_URLSTORE_NDJSON },
        { ngx_string("application/jsonl"), NGX_HTTP_URLSTORE_NDJSON },
        { ngx_string("text/plain"), NGX_HTTP_URLSTORE_TEXT },
        { ngx_string("text/*"), NGX_HTTP_URLSTORE_TEXT }
    };

    while (len && (*p == ' ' || *p == '\t')) {
        p++;
        len--;
    }

    last = ngx_strlchr(p, p + len, ';');

    if (last) {
        len = last - p;
    }

    while (len && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
        len--;
    }

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].name.len == len
            && ngx_strncasecmp(types[i].name.data, p, len) == 0)
        {
            *format = types[i].format;
            return NGX_OK;
        }
    }

    if ((len == 3 && ngx_strncmp(p, "*/*", 3) == 0)
        || (len == 13 && ngx_strncasecmp(p, (u_char *) "application/*", 13)
                         == 0
            && preset != NGX_HTTP_URLSTORE_TEXT))
    {
        *format = preset;
        return NGX_OK;
    }

    return NGX_DECLINED;
}


/* the q of a media range, in thousandths */

static ngx_uint_t
ngx_http_urlstore_quality(u_char *p, u_char *last)
{
    ngx_uint_t  q, unit;

    for ( ;; ) {
        p = ngx_strlchr(p, last, ';');

        if (p == NULL) {
            return 1000;
        }

        p++;

        while (p < last && (*p == ' ' || *p == '\t')) {
            p++;
        }

        if (last - p > 2 && (p[0] == 'q' || p[0] == 'Q') && p[1] == '=') {
            break;
        }
    }

    p += 2;

    if (*p == '1') {
        return 1000;
    }

    if (*p != '0') {
        return 0;
    }

    q = 0;
    unit = 100;

    for (p += 2; p < last && *p >= '0' && *p <= '9' && unit; p++) {
        q += (*p - '0') * unit;
        unit /= 10;
    }

    return q;
}


ngx_int_t
ngx_http_urlstore_id(const u_char *p, size_t len, uint64_t *id)
{
    size_t    i;
    uint64_t  n;

    if (len == 0 || (p[0] == '0' && len > 1)) {
        return NGX_ERROR;
    }

    n = 0;

    for (i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return NGX_ERROR;
        }

        /* no id reaches 2^52: stay there */

        if (i < 16) {
            n = n * 10 + (p[i] - '0');
        }
    }

    *id = n;

    return len > 16 ? NGX_DECLINED : NGX_OK;
}


/* whether urlstore_allow_origin names it */

ngx_uint_t
ngx_http_urlstore_origin_allowed(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_str_t                     *allowed;
    ngx_uint_t                     i;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ulcf->origins == NULL) {
        return 0;
    }

    allowed = ulcf->origins->elts;

    for (i = 0; i < ulcf->origins->nelts; i++) {

        if ((allowed[i].len == 1 && allowed[i].data[0] == '*')
            || (allowed[i].len == origin->len
                && ngx_strncasecmp(allowed[i].data, origin->data, origin->len)
                   == 0))
        {
            return 1;
        }
    }

    return 0;
}
