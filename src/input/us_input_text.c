
/*
 * Text: one item a line.  See us_input.h.
 *
 * A line that a piece of the body has cut is kept in in->carry, up to one byte
 * more than an item may have.
 */


#include "us_input_private.h"


static int us_input_line(us_input_t *in, us_str_t line);


int
us_input_text(us_input_t *in, const uint8_t *p, size_t len)
{
    us_str_t        line;
    const uint8_t  *lf, *end;

    end = p + len;

    while (p < end) {
        lf = memchr(p, '\n', end - p);

        if (lf == NULL) {
            if (in->skip) {
                return 0;
            }

            /* one byte more than the limit shows that the line is too long */

            len = end - p;

            if (len > in->max + 2 - in->carry.len) {
                len = in->max + 2 - in->carry.len;
                in->skip = 1;
            }

            return us_input_append(in, &in->carry, p, len);
        }

        line.data = p;
        line.len = lf - p;

        if (in->carry.len) {
            if (!in->skip) {
                if (line.len > in->max + 2 - in->carry.len) {
                    line.len = in->max + 2 - in->carry.len;
                }

                if (us_input_append(in, &in->carry, line.data, line.len)
                    != 0)
                {
                    return -1;
                }
            }

            line.data = in->carry.data;
            line.len = in->carry.len;
        }

        if (us_input_line(in, line) != 0) {
            return -1;
        }

        p = lf + 1;
    }

    return 0;
}


int
us_input_text_end(us_input_t *in)
{
    us_str_t  line;

    line.data = in->carry.data;
    line.len = in->carry.len;

    return us_input_line(in, line);
}


static int
us_input_line(us_input_t *in, us_str_t line)
{
    us_input_kind_t  kind;

    in->carry.len = 0;
    in->skip = 0;

    if (line.len && line.data[line.len - 1] == '\r') {
        line.len--;
    }

    if (line.len == 0) {
        return 0;
    }

    kind = US_INPUT_URL;

    if (line.len > in->max) {
        kind = US_INPUT_LONG;
    }

    return us_input_emit(in, kind, line, NULL, NULL);
}
