
/*
 * See us_args.h.
 */


#include "us_args.h"
#include "../cluster/us_map.h"


/* digits of the longest id: none reaches 2^52 */
#define US_ID_DIGITS  16


static const us_str_t  us_args_flags[] = {
    us_string("brief"), us_string("check"), us_string("clear"),
    us_string("deleted"), us_string("explain"), us_string("new_sites"),
    us_string("redirect"), us_string("same"), us_string("sites"),
    us_string("summary"), us_string("times"), us_string("write")
};


/* its number among the words; -1: it is none of them */

static int
us_args_known(const char *known, us_str_t name)
{
    int     i;
    size_t  n;

    for (i = 0; *known; i++) {
        n = strcspn(known, " ");

        if (n == name.len && memcmp(known, name.data, n) == 0) {
            return i;
        }

        known += n;

        if (*known == ' ') {
            known++;
        }
    }

    return -1;
}


/* whether it is a flag, and has a value that a flag has not */

static int
us_args_no_flag(us_str_t name, us_str_t value)
{
    size_t  i;

    if (value.len == 0
        || (value.len == 1 && (*value.data == '0' || *value.data == '1')))
    {
        return 0;
    }

    for (i = 0; i < sizeof(us_args_flags) / sizeof(us_args_flags[0]); i++) {
        if (us_args_flags[i].len == name.len
            && memcmp(us_args_flags[i].data, name.data, name.len) == 0) {
            return 1;
        }
    }

    return 0;
}


us_args_fault_t
us_args_check(us_str_t query, const char *known, us_str_t *name)
{
    int             n;
    uint64_t        seen;
    const uint8_t  *p, *next, *last, *eq;

    seen = 0;
    last = query.data + query.len;

    for (p = query.data; p < last; p = next + 1) {

        next = memchr(p, '&', last - p);
        if (next == NULL) {
            next = last;
        }

        if (next == p) {
            continue;
        }

        eq = memchr(p, '=', next - p);

        name->data = p;
        name->len = (eq ? eq : next) - p;

        n = us_args_known(known, *name);

        if (n == -1) {
            return US_ARGS_UNKNOWN;
        }

        if (eq == NULL) {
            return US_ARGS_NO_VALUE;
        }

        if (seen & ((uint64_t) 1 << n)) {
            return US_ARGS_TWICE;
        }

        seen |= (uint64_t) 1 << n;

        if (us_args_no_flag(*name, (us_str_t) { next - eq - 1, eq + 1 })) {
            name->len = next - p;
            return US_ARGS_FLAG;
        }
    }

    return US_ARGS_OK;
}


int
us_args_find(us_str_t query, const char *name, us_str_t *value)
{
    size_t          len;
    const uint8_t  *p, *next, *last;

    if (query.len == 0) {
        return 0;
    }

    len = strlen(name);
    last = query.data + query.len;

    for (p = query.data; p < last; p = next + 1) {

        next = memchr(p, '&', last - p);
        if (next == NULL) {
            next = last;
        }

        if ((size_t) (next - p) > len && p[len] == '='
            && memcmp(p, name, len) == 0)
        {
            value->data = p + len + 1;
            value->len = next - value->data;
            return 1;
        }
    }

    return 0;
}


int
us_args_flag(us_str_t query, const char *name)
{
    us_str_t  value;

    return us_args_find(query, name, &value) && value.len == 1
           && *value.data == '1';
}


int
us_id_digits(us_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }
    }

    return text.len != 0;
}


us_id_rc_t
us_id_parse(us_str_t text, uint64_t *id)
{
    size_t    i;
    uint64_t  n;

    if (text.len == 0 || (text.data[0] == '0' && text.len > 1)) {
        return US_ID_BAD;
    }

    n = 0;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return US_ID_BAD;
        }

        if (i < US_ID_DIGITS) {
            n = n * 10 + (text.data[i] - '0');
        }
    }

    *id = text.len > US_ID_DIGITS ? UINT64_MAX : n;

    return text.len > US_ID_DIGITS ? US_ID_NEVER : US_ID_OK;
}


us_id_rc_t
us_id_parse_shard(us_str_t text, uint64_t first, uint64_t *id)
{
    us_id_rc_t  rc;

    rc = us_id_parse(text, id);

    if (rc == US_ID_OK && (*id ^ first) > US_LOCAL_MAX) {
        return US_ID_MOVED;
    }

    *id &= US_LOCAL_MAX;

    return rc;
}
