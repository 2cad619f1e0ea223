/*
 * Errors are application/problem+json (RFC 9457), ours and those that nginx
 * itself makes in our locations: access rules, limit_req, a body over
 * client_max_body_size, a request line that is too long.  For the latter a
 * filter replaces nginx's HTML page; requests of other locations pass it at
 * once.
 */


#include "ngx_http_urlstore_request.h"
#include "../us_text.h"


#define NGX_HTTP_URLSTORE_DETAIL   256


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


ngx_int_t
ngx_http_urlstore_no_body(ngx_http_request_t *r)
{
    if (r->headers_in.expect && !r->expect_tested
        && r->http_version == NGX_HTTP_VERSION_11)
    {
        /* the client has not sent its body yet, and need not any more */

        r->expect_tested = 1;
        r->keepalive = 0;
        r->headers_in.content_length_n = 0;
        r->headers_in.chunked = 0;

        return NGX_OK;
    }

    return ngx_http_discard_request_body(r);
}


/* in ctx->out */

static ngx_int_t
ngx_http_urlstore_problem_text(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t status,
    const char *members, ngx_str_t *detail)
{
    size_t                    n;
    ngx_http_urlstore_out_t  *out;

    out = &ctx->out;

    n = us_problem_max(detail->len, members ? ngx_strlen(members) : 0);

    if (ngx_http_urlstore_out_init(out, ctx->r->pool, n) != NGX_OK) {
        return NGX_ERROR;
    }

    out->pos = us_problem_begin(out->pos, status, detail->data, detail->len,
                                members);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_problem_begin(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t status,
    const char *members, ngx_str_t *detail)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_no_body(ctx->r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_problem_text(ctx, status, members, detail) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->status = status;
    ctx->cacheable = 0;
    ctx->more = NULL;

    ngx_http_urlstore_problem_line(ctx->r, status);

    ngx_str_set(&ctx->type, "application/problem+json");

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_problem(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t status,
    const char *members, const char *fmt, ...)
{
    u_char     buf[NGX_HTTP_URLSTORE_DETAIL];
    va_list    args;
    ngx_int_t  rc;
    ngx_str_t  detail;

    va_start(args, fmt);
    detail.data = buf;
    detail.len = ngx_vslprintf(buf, buf + sizeof(buf), fmt, args) - buf;
    va_end(args);

    rc = ngx_http_urlstore_problem_begin(ctx, status, members, &detail);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_out_printf(&ctx->out, 2, "}\n") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(ctx);
}


ngx_int_t
ngx_http_urlstore_faulty(ngx_http_urlstore_ctx_t *ctx, ngx_int_t status,
    const char *members)
{
    return status == NGX_HTTP_SERVICE_UNAVAILABLE
           ? ngx_http_urlstore_unready(ctx, members)
           : ctx->fault.len
           ? ngx_http_urlstore_problem(ctx, status, members, "%V", &ctx->fault)
           : status;
}


void
ngx_http_urlstore_problem_line(ngx_http_request_t *r, ngx_uint_t status)
{
    us_str_t  line;

    line = us_problem_line(status);

    if (line.len) {
        r->headers_out.status_line.data = (u_char *) line.data;
        r->headers_out.status_line.len = line.len;
    }
}


ngx_int_t
ngx_http_urlstore_fault(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t status,
    const char *fmt, ...)
{
    u_char  *p;
    va_list  args;

    p = ngx_pnalloc(ctx->r->pool, NGX_HTTP_URLSTORE_DETAIL);

    if (p) {
        ctx->fault.data = p;

        va_start(args, fmt);
        ctx->fault.len = ngx_vslprintf(p, p + NGX_HTTP_URLSTORE_DETAIL, fmt,
                                       args) - p;
        va_end(args);
    }

    return status;
}


ngx_int_t
ngx_http_urlstore_stored(ngx_http_urlstore_ctx_t *ctx,
    us_store_status_t status)
{
    switch (status) {

    case US_BUSY:
        return NGX_BUSY;

    case US_FENCED:

        /* the node was deposed; what the request has changed may be lost */

        return NGX_HTTP_SERVICE_UNAVAILABLE;

    case US_FULL:
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_INSUFFICIENT_STORAGE,
                                       "the zone is full, it has no room for "
                                       "this change");

    default:
        return NGX_OK;
    }
}


ngx_int_t
ngx_http_urlstore_refused(ngx_http_urlstore_ctx_t *ctx,
    us_refusal_t *refusal, ngx_str_t *ref, ngx_array_t *steps)
{
    u_char    *p, *members;
    size_t     len;
    us_str_t   text;
    u_char     word[US_REFUSAL_WORD];
    u_char     detail[US_REFUSAL_SENTENCE];

    len = sizeof("\"id\":null,\"reason\":,\"ref\":")
          + us_json_quoted_max(US_REFUSAL_WORD)
          + (ref ? ref->len : 0) + (steps ? steps->nelts : 0);

    members = ngx_pnalloc(ctx->r->pool, len);
    if (members == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = us_put(members, "\"id\":null");

    if (refusal) {
        text.data = word;
        text.len = us_refusal_word(word, refusal) - word;

        p = us_json_printf(p, ",\"reason\":%q", text);
    }

    /* JSON as it is, of which the parser has seen that it has no NUL */

    if (ref && ref->len) {
        p = us_json_printf(p, ",\"ref\":%V", ngx_http_urlstore_str(ref));
    }

    if (steps) {
        p = ngx_cpymem(p, steps->elts, steps->nelts);
    }

    *p = '\0';

    if (refusal == NULL) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_INSUFFICIENT_STORAGE,
                                         (char *) members, "the zone is full: "
                                         "new URLs are refused, known ones "
                                         "are answered");
    }

    len = us_refusal_sentence(detail, refusal, ctx->conf->max_url) - detail;

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_UNPROCESSABLE,
                                     (char *) members, "%*s", len, detail);
}


/*
 * What is wrong, and who has what the client wants: members are extra, which
 * may be NULL, and "primary".
 */

ngx_int_t
ngx_http_urlstore_follow_problem(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t status, const char *extra, const char *detail)
{
    u_char   *p, *members;
    size_t    len;
    us_str_t  name;

    name = us_str_of(ctx->zone->life.conf.follow->name);
    len = extra ? ngx_strlen(extra) : 0;

    members = ngx_pnalloc(ctx->r->pool, len + us_json_quoted_max(name.len)
                                   + sizeof(",\"primary\":"));
    if (members == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = us_json_printf(members, "%s%s\"primary\":%q", len ? extra : "",
                       len ? "," : "", name);
    *p = '\0';

    return ngx_http_urlstore_problem(ctx, status, (char *) members,
                                     "%s; its primary is %s", detail,
                                     ctx->zone->life.conf.follow->name);
}


ngx_int_t
ngx_http_urlstore_unready(ngx_http_urlstore_ctx_t *ctx, const char *extra)
{
    us_unready_t  u;
    u_char        progress[64];

    us_unready(&u, &ctx->zone->life, ngx_http_urlstore_overtaken(ctx));

    if (u.passes) {
        ngx_http_urlstore_retry_after(ctx, 1);
    }

    if (u.primary) {
        return ngx_http_urlstore_follow_problem(ctx,
                                                NGX_HTTP_SERVICE_UNAVAILABLE,
                                                extra, u.detail);
    }

    if (u.loading) {
        ngx_sprintf(progress, "\"progress\":%ui%Z",
                    (ngx_uint_t) u.progress);
        extra = (char *) progress;
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, extra,
                                     "%s", u.detail);
}


ngx_int_t
ngx_http_urlstore_set_none(ngx_http_urlstore_ctx_t *ctx)
{
    unsigned                  i;
    us_store_conf_t          *conf;

    conf = &ctx->zone->life.conf.store;

    for (i = 0; i < conf->nmarks; i++) {

        if (us_str_compare(conf->marks[i],
                           ngx_http_urlstore_str(&ctx->set_name))
            != 0)
        {
            continue;
        }

        ngx_http_urlstore_retry_after(ctx, 1);

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         NULL, "the mark \"%V\" is being added",
                                         &ctx->set_name);
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND,
                                     "\"reason\":\"set\"",
                                     "there is no set \"%V\"",
                                     &ctx->set_name);
}


ngx_int_t
ngx_http_urlstore_url_missing(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                     "the id %*s was not given yet",
                                     ngx_min(ctx->tail.len, 40),
                                     ctx->tail.data);
}


ngx_int_t
ngx_http_urlstore_url_gone(ngx_http_urlstore_ctx_t *ctx)
{
    return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_GONE, NULL,
                                     "the URL of id %uL was deleted",
                                     ctx->id);
}


ngx_int_t
ngx_http_urlstore_url_damaged(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_log_error(NGX_LOG_ALERT, ctx->r->connection->log, 0,
                  "urlstore_zone \"%V\": the record of id %V is damaged",
                  &ctx->zone->name, &ctx->tail);

    return NGX_HTTP_INTERNAL_SERVER_ERROR;
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


/*
 * An error that is not ours, in a location of ours, without an error_page of
 * the operator.
 */

static ngx_int_t
ngx_http_urlstore_problem_header_filter(ngx_http_request_t *r)
{
    u_char                         buf[128];
    ngx_str_t                      detail;
    const char                    *members;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if ((ulcf->handler == NULL && ulcf->ours == NULL) || r != r->main
        || r->headers_out.status < NGX_HTTP_BAD_REQUEST || r->error_page
        || (ulcf->handler == NULL && !ngx_http_urlstore_problem_ours(r, ulcf)))
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

    if (ngx_http_urlstore_problem_text(ctx, r->headers_out.status, members,
                                       &detail)
        != NGX_OK
        || ngx_http_urlstore_out_printf(&ctx->out, 2, "}\n") != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->no_memory = 0;

    if (r->headers_out.status == NGX_HTTP_TOO_MANY_REQUESTS) {

        /* limit_req and limit_conn do not send Retry-After */

        ngx_http_urlstore_retry_after(ctx, 1);
    }

    ngx_http_urlstore_no_store(ctx);

    if (ctx->no_memory) {
        return NGX_ERROR;
    }

    ctx->replaced = 1;

    ngx_http_clear_content_length(r);

    r->headers_out.content_length_n = ngx_http_urlstore_out_size(&ctx->out);

    ngx_str_set(&r->headers_out.content_type, "application/problem+json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    return ngx_http_next_header_filter(r);
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


ngx_int_t
ngx_http_urlstore_problem_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_urlstore_problem_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_urlstore_problem_body_filter;

    return NGX_OK;
}
