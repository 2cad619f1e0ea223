
/*
 * Errors are application/problem+json (RFC 9457), ours and those that nginx
 * itself makes in our locations: access rules, limit_req, a body over
 * client_max_body_size, a request line that is too long.  For the latter a
 * filter replaces nginx's HTML page; requests of other locations pass it at
 * once.
 *
 * The reason why an input was refused has two forms: a word, for an item of a
 * batch in every format, and a sentence, for the problem document of a single
 * input.
 */


#include "ngx_http_urlstore_request.h"


#define NGX_HTTP_URLSTORE_DETAIL   256

/* of a rule's name */
#define NGX_HTTP_URLSTORE_RULE      64
#define NGX_HTTP_URLSTORE_SENTENCE  256


static ngx_str_t *ngx_http_urlstore_line(ngx_uint_t status);
static ngx_int_t ngx_http_urlstore_problem_head(ngx_http_request_t *r,
    ngx_uint_t status, const char *members, const char *fmt, va_list args);
static ngx_int_t ngx_http_urlstore_problem_text(
    ngx_http_urlstore_out_t *out, ngx_uint_t status, const char *members,
    ngx_str_t *detail);
static size_t ngx_http_urlstore_sentence(ngx_http_request_t *r, u_char *p,
    ngx_http_urlstore_refusal_t *refusal);
static ngx_int_t ngx_http_urlstore_problem_header_filter(
    ngx_http_request_t *r);
static ngx_uint_t ngx_http_urlstore_problem_ours(ngx_http_request_t *r,
    ngx_http_urlstore_loc_conf_t *ulcf);
static ngx_int_t ngx_http_urlstore_problem_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


/* status lines; the title is what follows the code */

static ngx_str_t  ngx_http_urlstore_lines[] = {
    ngx_string("400 Bad Request"),
    ngx_string("401 Unauthorized"),
    ngx_string("403 Forbidden"),
    ngx_string("404 Not Found"),
    ngx_string("405 Method Not Allowed"),
    ngx_string("408 Request Timeout"),
    ngx_string("410 Gone"),
    ngx_string("411 Length Required"),
    ngx_string("413 Content Too Large"),
    ngx_string("414 URI Too Long"),
    ngx_string("415 Unsupported Media Type"),
    ngx_string("416 Range Not Satisfiable"),
    ngx_string("422 Unprocessable Content"),
    ngx_string("429 Too Many Requests"),
    ngx_string("500 Internal Server Error"),
    ngx_string("503 Service Unavailable"),
    ngx_string("507 Insufficient Storage"),
    ngx_null_string
};


ngx_int_t
ngx_http_urlstore_problem(ngx_http_request_t *r, ngx_uint_t status,
    const char *members, const char *fmt, ...)
{
    va_list                   args;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    va_start(args, fmt);
    rc = ngx_http_urlstore_problem_head(r, status, members, fmt, args);
    va_end(args);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_out_printf(&ctx->out, 2, "}\n") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}


ngx_int_t
ngx_http_urlstore_problem_begin(ngx_http_request_t *r, ngx_uint_t status,
    const char *members, const char *fmt, ...)
{
    va_list    args;
    ngx_int_t  rc;

    va_start(args, fmt);
    rc = ngx_http_urlstore_problem_head(r, status, members, fmt, args);
    va_end(args);

    return rc;
}


/* in ctx->out, and without the end of the object */

static ngx_int_t
ngx_http_urlstore_problem_head(ngx_http_request_t *r, ngx_uint_t status,
    const char *members, const char *fmt, va_list args)
{
    u_char                    buf[NGX_HTTP_URLSTORE_DETAIL];
    ngx_int_t                 rc;
    ngx_str_t                 detail;
    ngx_http_urlstore_ctx_t  *ctx;

    detail.data = buf;
    detail.len = ngx_vslprintf(buf, buf + sizeof(buf), fmt, args) - buf;

    if (r->headers_in.expect && !r->expect_tested
        && r->http_version == NGX_HTTP_VERSION_11)
    {
        /* the client has not sent its body yet, and need not any more */

        r->expect_tested = 1;
        r->keepalive = 0;

    } else {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK && rc != NGX_AGAIN) {
            return rc;
        }
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 2048) != NGX_OK
        || ngx_http_urlstore_problem_text(&ctx->out, status, members, &detail)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->status = status;
    ctx->cacheable = 0;

    /* nginx has no words for some of them */

    if (ngx_http_urlstore_line(status)->data[0] != ' ') {
        r->headers_out.status_line = *ngx_http_urlstore_line(status);
    }

    ngx_str_set(&ctx->type, "application/problem+json");

    return NGX_OK;
}


/* the text for batch and body; the status */

ngx_int_t
ngx_http_urlstore_fault(ngx_http_request_t *r, ngx_uint_t status,
    const char *fmt, ...)
{
    u_char                   *p;
    va_list                   args;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    p = ngx_pnalloc(r->pool, NGX_HTTP_URLSTORE_DETAIL);

    if (p) {
        ctx->fault.data = p;

        va_start(args, fmt);
        ctx->fault.len = ngx_vslprintf(p, p + NGX_HTTP_URLSTORE_DETAIL, fmt,
                                       args) - p;
        va_end(args);
    }

    return status;
}


/* detail may hold what a client sent */

static ngx_int_t
ngx_http_urlstore_problem_text(ngx_http_urlstore_out_t *out,
    ngx_uint_t status, const char *members, ngx_str_t *detail)
{
    us_str_t  s;

    if (ngx_http_urlstore_out_printf(out, 256,
                                     "{\"type\":\"about:blank\","
                                     "\"title\":\"%s\",\"status\":%ui",
                                     ngx_http_urlstore_line(status)->data + 4,
                                     status)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (detail->len) {
        s.data = detail->data;
        s.len = detail->len;

        if (!us_utf8_valid(s)) {
            for (s.len = 0; s.len < detail->len; s.len++) {
                if (detail->data[s.len] >= 0x80) {
                    detail->data[s.len] = '?';
                }
            }
        }

        if (ngx_http_urlstore_out_room(out, us_json_quoted_max(s.len) + 16)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, ",\"detail\":", 10);
        out->pos = us_json_quote(out->pos, s);
    }

    return ngx_http_urlstore_out_printf(out,
                                        members ? ngx_strlen(members) + 8 : 8,
                                        "%s%s", members ? "," : "",
                                        members ? members : "");
}


static ngx_str_t *
ngx_http_urlstore_line(ngx_uint_t status)
{
    ngx_str_t  *line;

    static ngx_str_t  other = ngx_string("    Error");

    for (line = ngx_http_urlstore_lines; line->len; line++) {
        if (ngx_atoi(line->data, 3) == (ngx_int_t) status) {
            return line;
        }
    }

    return &other;
}


u_char *
ngx_http_urlstore_reason(u_char *p, ngx_http_urlstore_refusal_t *refusal)
{
    const char  *name;

    if (refusal->kind == US_INPUT_BAD) {
        return ngx_cpymem(p, "json", 4);
    }

    if (refusal->kind == US_INPUT_LONG) {
        return ngx_cpymem(p, "length", 6);
    }

    if (refusal->verdict == US_URL_RULE) {
        p = ngx_cpymem(p, "rule:", 5);

        return ngx_cpymem(p, refusal->rule.data,
                          ngx_min(refusal->rule.len, NGX_HTTP_URLSTORE_RULE));
    }

    name = us_verdict_name(refusal->verdict);

    return ngx_cpymem(p, name, ngx_strlen(name));
}


ngx_int_t
ngx_http_urlstore_refused(ngx_http_request_t *r,
    ngx_http_urlstore_refusal_t *refusal, ngx_str_t *ref, ngx_array_t *steps)
{
    u_char     *p, *members;
    size_t      len;
    us_str_t    text;
    u_char      word[NGX_HTTP_URLSTORE_REASON];
    u_char      detail[NGX_HTTP_URLSTORE_SENTENCE];

    len = sizeof("\"id\":null,\"reason\":,\"ref\":")
          + us_json_quoted_max(NGX_HTTP_URLSTORE_REASON)
          + (ref ? ref->len : 0) + (steps ? steps->nelts : 0);

    members = ngx_pnalloc(r->pool, len);
    if (members == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_cpymem(members, "\"id\":null", 9);

    if (refusal) {
        text.data = word;
        text.len = ngx_http_urlstore_reason(word, refusal) - word;

        p = ngx_cpymem(p, ",\"reason\":", 10);
        p = us_json_quote(p, text);
    }

    /* JSON as it is, of which the parser has seen that it has no NUL */

    if (ref && ref->len) {
        p = ngx_cpymem(p, ",\"ref\":", 7);
        p = ngx_cpymem(p, ref->data, ref->len);
    }

    if (steps) {
        p = ngx_cpymem(p, steps->elts, steps->nelts);
    }

    *p = '\0';

    if (refusal == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_INSUFFICIENT_STORAGE,
                                         (char *) members, "the zone is full: "
                                         "new URLs are refused, known ones "
                                         "are answered");
    }

    len = ngx_http_urlstore_sentence(r, detail, refusal);

    return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_UNPROCESSABLE,
                                     (char *) members, "%*s", len, detail);
}


/* what was wrong, and what is allowed */

static size_t
ngx_http_urlstore_sentence(ngx_http_request_t *r, u_char *p,
    ngx_http_urlstore_refusal_t *refusal)
{
    u_char                        *last;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    static const char *const  sentences[] = {
        "",
        "the scheme is neither http nor https",
        "the host is empty or malformed",
        "the port is not a number up to 65535",
        "the URL is not UTF-8",
        "the URL has a control byte",
        "",
        "the URL is relative, and there is no base",
        "the base is not an absolute URL",
        "",
        "the path has more segments than urlstore_max_depth allows",
        "the query has more arguments than urlstore_max_args allows",
        "a group of path segments is repeated more often than "
        "urlstore_max_repeat allows",
        "the rewrite rules of the zone change the URL without end",
        "the rules of the zone have used up the time of the request: send "
        "fewer URLs at a time"
    };

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    last = p + NGX_HTTP_URLSTORE_SENTENCE;

    if (refusal->kind == US_INPUT_BAD) {
        return ngx_slprintf(p, last, "%s", refusal->why) - p;
    }

    if (refusal->kind == US_INPUT_LONG || refusal->verdict == US_URL_LENGTH) {
        return ngx_slprintf(p, last, "a URL, or its base, has at most %ui "
                            "bytes (urlstore_max_url)", ulcf->max_url) - p;
    }

    if (refusal->verdict == US_URL_RULE) {
        return ngx_slprintf(p, last, "the rule \"%*s\" of the zone refuses "
                            "the URL",
                            ngx_min(refusal->rule.len, NGX_HTTP_URLSTORE_RULE),
                            refusal->rule.data) - p;
    }

    return ngx_slprintf(p, last, "%s", sentences[refusal->verdict]) - p;
}


ngx_int_t
ngx_http_urlstore_problem_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_urlstore_problem_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_urlstore_problem_body_filter;

    return NGX_OK;
}


/*
 * An error that is not ours, in a location of ours, without an error_page of
 * the operator.
 */

static ngx_int_t
ngx_http_urlstore_problem_header_filter(ngx_http_request_t *r)
{
    u_char                         buf[128];
    ngx_str_t                      detail, value;
    const char                    *members;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if ((ulcf->zone == NULL && ulcf->ours == NULL) || r != r->main
        || r->headers_out.status < NGX_HTTP_BAD_REQUEST || r->error_page
        || (ulcf->zone == NULL && !ngx_http_urlstore_problem_ours(r, ulcf)))
    {
        return ngx_http_next_header_filter(r);
    }

    ctx = ngx_http_urlstore_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    if (ctx->replied) {
        return ngx_http_next_header_filter(r);
    }

    members = NULL;
    ngx_str_null(&detail);

    if (r->headers_out.status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {

        /* nginx has looked at Content-Length, and not called us at all */

        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        members = "\"processed\":0";
        detail.data = buf;
        detail.len = ngx_snprintf(buf, sizeof(buf), "a body has at most %O "
                                  "bytes (client_max_body_size)",
                                  clcf->client_max_body_size) - buf;

    } else if (r->headers_out.status == NGX_HTTP_REQUEST_URI_TOO_LARGE) {
        ngx_str_set(&detail, "the request line does not fit "
                             "large_client_header_buffers: send long URLs by "
                             "POST");
    }

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 512) != NGX_OK
        || ngx_http_urlstore_problem_text(&ctx->out, r->headers_out.status,
                                          members, &detail)
           != NGX_OK
        || ngx_http_urlstore_out_printf(&ctx->out, 2, "}\n") != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (r->headers_out.status == NGX_HTTP_TOO_MANY_REQUESTS) {

        /* limit_req and limit_conn do not send Retry-After */

        ngx_str_set(&value, "1");

        if (ngx_http_urlstore_header(r, "Retry-After", &value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ctx->replaced = 1;

    ngx_http_clear_content_length(r);

    r->headers_out.content_length_n = ngx_http_urlstore_out_size(&ctx->out);

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    return ngx_http_next_header_filter(r);
}


/*
 * A request line that is too long has no location yet: whether the path, as it
 * was sent, begins like one of ours.
 */

static ngx_uint_t
ngx_http_urlstore_problem_ours(ngx_http_request_t *r,
    ngx_http_urlstore_loc_conf_t *ulcf)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    if (r->headers_out.status != NGX_HTTP_REQUEST_URI_TOO_LARGE
        || r->uri_start == NULL || r->header_in == NULL)
    {
        return 0;
    }

    name = ulcf->ours->elts;

    for (i = 0; i < ulcf->ours->nelts; i++) {
        if (r->header_in->last - r->uri_start >= (ssize_t) name[i].len
            && ngx_memcmp(r->uri_start, name[i].data, name[i].len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_urlstore_problem_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_chain_t              *cl, *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx == NULL || !ctx->replaced || in == NULL) {
        return ngx_http_next_body_filter(r, in);
    }

    for (cl = in; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    out = ngx_http_urlstore_out_take(&ctx->out, 0);

    if (out == NULL) {
        return NGX_OK;
    }

    out->buf->last_buf = 1;
    out->buf->last_in_chain = 1;

    return ngx_http_next_body_filter(r, out);
}
