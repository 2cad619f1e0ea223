
/*
 * Why an input was refused: a word for the item, in every format, and a
 * sentence for the problem document of a single one.
 */


#include "ngx_http_urlstore.h"


/* of a rule's name */
#define NGX_HTTP_URLSTORE_RULE      64
#define NGX_HTTP_URLSTORE_SENTENCE  256


static size_t ngx_http_urlstore_sentence(ngx_http_request_t *r, u_char *p,
    ngx_http_urlstore_refusal_t *refusal);


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
        "a segment of the path is there more often than urlstore_max_repeat "
        "allows",
        "the rewrite rules of the zone find no end",
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
