
/*
 * See us_refusal.h.
 */


#include "us_refusal.h"
#include "../us_text.h"


/* of a rule's name */
#define US_REFUSAL_RULE  64


static us_str_t
us_refusal_cut(us_str_t s, size_t max)
{
    return (us_str_t) { s.len < max ? s.len : max, s.data };
}


uint8_t *
us_refusal_word(uint8_t *p, const us_refusal_t *refusal)
{
    if (refusal->kind == US_INPUT_BAD) {
        return us_put(p, "json");
    }

    if (refusal->kind == US_INPUT_LONG) {
        return us_put(p, "length");
    }

    if (refusal->verdict == US_URL_RULE) {
        p = us_put(p, "rule:");

        return us_put_str(p, us_refusal_cut(refusal->rule, US_REFUSAL_RULE));
    }

    return us_put(p, us_verdict_name(refusal->verdict));
}


uint8_t *
us_refusal_sentence(uint8_t *p, const us_refusal_t *refusal, uint64_t max_url)
{
    us_str_t  why;

    static const char *const  sentences[] = {
        [US_URL_SCHEME] = "the scheme is neither http nor https",
        [US_URL_HOST] = "the host is empty or malformed",
        [US_URL_PORT] = "the port is not a number up to 65535",
        [US_URL_UTF8] = "the URL is not UTF-8",
        [US_URL_CONTROL] = "the URL has a control byte",
        [US_URL_NO_BASE] = "the URL is relative, and there is no base",
        [US_URL_BASE] = "the base is not an absolute URL",
        [US_URL_DEPTH] = "the path has more segments than urlstore_max_depth "
                         "allows",
        [US_URL_ARGS] = "the query has more arguments than urlstore_max_args "
                        "allows",
        [US_URL_REPEAT] = "a group of path segments is repeated more often "
                          "than urlstore_max_repeat allows",
        [US_URL_REWRITE_LOOP] = "the rewrite rules of the zone change the URL "
                                "without end",
        [US_URL_BUDGET] = "the rules of the zone have used up the time of the "
                          "request: send fewer URLs at a time"
    };

    if (refusal->kind == US_INPUT_BAD) {
        why.data = (const uint8_t *) refusal->why;
        why.len = strlen(refusal->why);

        return us_put_str(p, us_refusal_cut(why, US_REFUSAL_SENTENCE));
    }

    if (refusal->kind == US_INPUT_LONG || refusal->verdict == US_URL_LENGTH) {
        p = us_put(p, "a URL, or its base, has at most ");
        p = us_put_u64(p, max_url);

        return us_put(p, " bytes (urlstore_max_url)");
    }

    if (refusal->verdict == US_URL_RULE) {
        p = us_put(p, "the rule \"");
        p = us_put_str(p, us_refusal_cut(refusal->rule, US_REFUSAL_RULE));

        return us_put(p, "\" of the zone refuses the URL");
    }

    return us_put(p, sentences[refusal->verdict]);
}
