
/*
 * Limits.  See us_limits.h.
 *
 * depth    segments that are not empty: /a/b/c.html has 3, /a/b/ has 2
 * args     pieces of the query
 * repeat   how often a group of segments may stand in a row, whatever its
 *          length: with 2, /a/b/a/b/x passes and /a/b/a/b/a/b/x does not
 */


#include "us_limits.h"
#include "us_query.h"


static unsigned us_path_depth(us_str_t path);
static int us_path_repeats(us_str_t path, unsigned max);


us_verdict_t
us_limits_check(const us_limits_t *limits, const us_url_t *url)
{
    if (limits->depth && us_path_depth(us_url_pathname(url)) > limits->depth) {
        return US_URL_DEPTH;
    }

    if (limits->args && us_query_count(url) > limits->args) {
        return US_URL_ARGS;
    }

    if (limits->repeat
        && us_path_repeats(us_url_pathname(url), limits->repeat))
    {
        return US_URL_REPEAT;
    }

    return US_URL_OK;
}


static unsigned
us_path_depth(us_str_t path)
{
    size_t    i;
    unsigned  n;

    for (n = 0, i = 0; i + 1 < path.len; i++) {
        n += path.data[i] == '/' && path.data[i + 1] != '/';
    }

    return n;
}


/*
 * Segment i begins at the slash at[i].  A run of period p is a stretch in
 * which segment i equals segment i + p: its bytes are then the same p
 * segments further on.  It holds max + 1 groups when p * max segments in a row
 * are equal to those p further.  At most US_LIMITS_SEGMENTS ^ 2 / (max + 1)
 * comparisons, nearly all of them of one hash.
 */

static int
us_path_repeats(us_str_t path, unsigned max)
{
    int        len;
    size_t     i, p, n, run;
    uint32_t   h;
    uint16_t   at[US_LIMITS_SEGMENTS + 1];
    uint32_t   hash[US_LIMITS_SEGMENTS];

    for (n = 0, i = 0; i < path.len && n < US_LIMITS_SEGMENTS; n++) {
        at[n] = (uint16_t) i;

        for (h = 2166136261u, i++; i < path.len && path.data[i] != '/'; i++) {
            h = (h ^ path.data[i]) * 16777619;
        }

        hash[n] = h;
    }

    at[n] = (uint16_t) i;

    for (p = 1; p <= n / ((size_t) max + 1); p++) {

        for (run = 0, i = 0; i + p < n; i++) {

            if (hash[i] != hash[i + p]) {
                run = 0;
                continue;
            }

            if (++run < p * max) {
                continue;
            }

            len = at[i + 1] - at[i + 1 - run];

            if (at[i + 1 + p] - at[i + 1 - run + p] == len
                && memcmp(path.data + at[i + 1 - run],
                          path.data + at[i + 1 - run + p], (size_t) len) == 0)
            {
                return 1;
            }

            run = 0;
        }
    }

    return 0;
}
