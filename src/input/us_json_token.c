
/*
 * The token of the JSON reader: the part of it that earlier pieces had, and its
 * end, where it is handed over.  See us_json_private.h.
 */


#include "us_json_private.h"

#include <stdlib.h>


int
us_json_fail(us_json_t *j, const char *error)
{
    j->error = error;
    return -1;
}


/* of the token; us_json_number() refuses a number over it, never cuts it */

static inline size_t
us_json_limit(const us_json_t *j)
{
    return j->state >= US_JSON_S_MINUS ? US_JSON_NUMBER : j->max;
}


int
us_json_append(us_json_t *j, const uint8_t *p, size_t len)
{
    size_t    size;
    uint8_t  *buf;

    if (j->cut) {
        return 0;
    }

    if (len > us_json_limit(j) - j->len) {
        j->cut = 1;
        j->len = 0;
        return 0;
    }

    if (j->len + len > j->size) {
        size = j->size ? j->size * 2 : 256;

        while (size < j->len + len) {
            size *= 2;
        }

        buf = realloc(j->buf, size);

        if (buf == NULL) {
            return us_json_fail(j, "out of memory");
        }

        j->buf = buf;
        j->size = size;
    }

    if (len) {
        memcpy(j->buf + j->len, p, len);
        j->len += len;
    }

    return 0;
}


int
us_json_emit(us_json_t *j, us_json_event_t event, const uint8_t *start,
    const uint8_t *end)
{
    int       cut;
    us_str_t  text;

    if (j->len || j->cut) {
        if (us_json_append(j, start, end - start) != 0) {
            return -1;
        }

        text.data = j->buf;
        text.len = j->len;

    } else {
        text.data = start;
        text.len = end - start;

        if (text.len > us_json_limit(j)) {
            j->cut = 1;
        }
    }

    cut = j->cut;

    if (cut) {
        text.len = 0;
    }

    j->len = 0;
    j->cut = 0;

    if (event == US_JSON_KEY) {
        j->state = US_JSON_S_COLON;

    } else {
        j->state = j->depth ? US_JSON_S_NEXT : US_JSON_S_DONE;
    }

    return us_json_event(j, event, text, cut);
}


int
us_json_event(us_json_t *j, us_json_event_t event, us_str_t text, int cut)
{
    int  rc;

    rc = j->event(j->data, event, text, cut);

    if (rc < 0) {
        return us_json_fail(j, "stopped");
    }

    if (rc > 0) {
        j->paused = 1;
    }

    return 0;
}
