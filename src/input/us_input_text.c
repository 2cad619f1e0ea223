
/*
 * Text: one item a line.  See us_input.h.
 *
 * A line that a piece of the body has cut is kept in in->carry, up to one byte
 * more than an item may have.
 */


#include "us_input_private.h"


static int us_input_line(us_input_t *in, us_str_t line);


int
us_input_text(us_input_t *in)
{
    int             rc;
    us_str_t        line;
    const uint8_t  *lf, *end;

    if (in->carried) {
        in->carried = 0;
        in->carry.len = 0;
    }

    for ( ;; ) {

        if (in->p == in->last && in->rest) {

            /* those that showed that it is text were the piece until now */

            in->p = in->rest;
            in->last = in->rest_last;
            in->rest = NULL;
        }

        lf = in->p == in->last ? NULL : memchr(in->p, '\n', in->last - in->p);
        end = lf ? lf : in->last;

        line.data = in->p;
        line.len = end - in->p;

        if (lf == NULL || in->carry.len) {

            /* one byte more than the limit shows that the line is too long */

            if (line.len > in->max + 2 - in->carry.len) {
                line.len = in->max + 2 - in->carry.len;
            }

            if (us_input_append(in, &in->carry, line.data, line.len) != 0) {
                return -1;
            }

            line.data = in->carry.data;
            line.len = in->carry.len;
        }

        in->p = lf ? lf + 1 : in->last;

        if (lf == NULL && in->rest) {
            continue;
        }

        if (lf == NULL) {
            if (!in->ended) {
                return 0;
            }

            in->done = 1;

            return us_input_line(in, line);
        }

        rc = us_input_line(in, line);

        if (rc != 0) {
            in->carried = 1;
            return rc;
        }

        in->carry.len = 0;
    }
}


/* an empty one is no item */

static int
us_input_line(us_input_t *in, us_str_t line)
{
    if (line.len && line.data[line.len - 1] == '\r') {
        line.len--;
    }

    if (line.len == 0) {
        return 0;
    }

    return us_input_emit(in, line.len > in->max ? US_INPUT_LONG : US_INPUT_URL,
                         line, NULL, NULL);
}
