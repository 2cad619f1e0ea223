
/*
 * User rules, limits and a URL:
 *
 *   depth args repeat www \n host \n regex \n replacement \n reject \n accept
 *   \n strip \n URL
 *
 * The first four are one byte each.  What is normalized stays what it is,
 * whatever the rules are.
 */


#include "laws.h"

#include <stdlib.h>


#define FIELDS  8


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
rules_check(const us_norm_t *n, us_str_t url)
{
    us_str_t        href;
    us_canon_t      a, b;
    us_norm_ws_t   *ws;
    static uint8_t  text[US_URL_MAX];

    ws = us_norm_ws_create(n);

    if (ws == NULL) {
        return;
    }

    if (us_normalize(n, ws, url, NULL, &a) == US_URL_OK) {
        href.data = text;
        href.len = a.url.href.len;
        memcpy(text, a.url.href.data, href.len);

        if (us_normalize(n, ws, href, NULL, &b) != US_URL_OK
            || b.url.href.len != href.len
            || memcmp(b.url.href.data, text, href.len) != 0)
        {
            us_laws_broken("idempotent with rules", url, NULL, href,
                           b.url.href);
        }
    }

    us_norm_ws_destroy(ws);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t            i;
    us_str_t          f[FIELDS];
    us_norm_t        *n;
    const uint8_t    *end, *nl;
    us_rule_error_t   err;

    end = data + size;

    for (i = 0; i < FIELDS; i++) {
        nl = i < FIELDS - 1 ? memchr(data, '\n', end - data) : end;

        if (nl == NULL) {
            return -1;
        }

        f[i].data = data;
        f[i].len = nl - data;
        data = nl + (i < FIELDS - 1);
    }

    if (f[0].len < 4) {
        return -1;
    }

    n = us_norm_create(f[0].data[0] & 1 ? US_PROFILE_AGGRESSIVE
                                        : US_PROFILE_CRAWLER);

    if (n == NULL) {
        return -1;
    }

    us_norm_set_max_depth(n, f[0].data[0] >> 1 & 15);
    us_norm_set_max_args(n, f[0].data[1] & 7);
    us_norm_set_max_repeat(n, f[0].data[2] & 7);
    us_norm_set_www(n, US_WWW_KEEP);

    (void) us_norm_add_rewrite(n, us_string(""), f[1], f[2], f[3], &err);

    if (f[4].len) {
        (void) us_norm_add_reject(n, us_string(""), f[4], &err);
    }

    if (f[5].len) {
        (void) us_norm_add_accept(n, us_string(""), f[5], &err);
    }

    if (f[6].len) {
        (void) us_norm_add_strip_arg(n, f[6]);
    }

    rules_check(n, f[7]);
    us_norm_destroy(n);

    return 0;
}
