
/*
 * What the tests of URLs share: a normalizer and its workspace, and what it
 * makes of a link.
 *
 *     create(), settings, seal(), becomes() ..., teardown()
 */


#ifndef _URL_NORM_H_INCLUDED_
#define _URL_NORM_H_INCLUDED_


#include "us_base.h"
#include "url/us_normalize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


static us_norm_t     *norm;
static us_norm_ws_t  *ws;


static inline us_str_t
str(const char *s)
{
    us_str_t  v;

    v.data = (const uint8_t *) s;
    v.len = strlen(s);

    return v;
}


static inline void
create(us_profile_t profile)
{
    norm = us_norm_create(profile);
    assert_non_null(norm);
}


static inline void
seal(void)
{
    ws = us_norm_ws_create(norm);
    assert_non_null(ws);
}


static inline void
open_profile(us_profile_t profile)
{
    create(profile);
    seal();
}


static inline int
teardown(void **state)
{
    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);
    ws = NULL;
    norm = NULL;

    return 0;
}


/* want is the URL, or "!" and the reason */

static inline void
link_is(const char *base, const char *in, const char *want)
{
    us_base_t     *b;
    us_canon_t     out;
    us_verdict_t   rc;

    b = NULL;
    rc = US_URL_OK;

    if (base) {
        b = us_base_create(norm, ws, str(base), &rc);
    }

    if (rc == US_URL_OK) {
        rc = us_normalize(norm, ws, str(in), b, &out);
    }

    if (rc != US_URL_OK) {
        if (*want != '!' || strcmp(want + 1, us_verdict_name(rc)) != 0) {
            fail_msg("%s: !%s, not %s", in, us_verdict_name(rc), want);
        }

    } else if (out.url.href.len != strlen(want)
               || memcmp(out.url.href.data, want, strlen(want)) != 0)
    {
        fail_msg("%s: %.*s, not %s", in, (int) out.url.href.len,
                 out.url.href.data, want);
    }

    us_base_destroy(b);
}


static inline void
becomes(const char *in, const char *want)
{
    link_is(NULL, in, want);
}


#endif /* _URL_NORM_H_INCLUDED_ */
