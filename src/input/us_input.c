
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().
 *
 *     text     us_input_text <- line ---------------------.
 *     NDJSON   us_input_ndjson <- line                    |
 *                  `-- us_input_object <- us_json_next ---+-> emit
 *     JSON     us_input_json <- keep                      |
 *                  |-- us_input_object <- us_json_next ---+
 *                  `-- us_input_element <- us_json_next --+
 *     form     us_input_form <- keep                      |
 *                  `-- us_input_form_item ----------------'
 */


#include "us_input_private.h"

#include <stdlib.h>


void
us_input_init(us_input_t *in, us_input_format_t format, size_t max)
{
    memset(in, 0, sizeof(us_input_t));

    in->format = format;
    in->max = max;
    in->work = SIZE_MAX;

    us_json_init(&in->json, max);
}


void
us_input_free(us_input_t *in)
{
    size_t  i;

    us_input_buf_t  *bufs[] = { &in->kept, &in->text, &in->base, &in->ref };

    us_json_free(&in->json);

    for (i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
        free(bufs[i]->data);
        memset(bufs[i], 0, sizeof(us_input_buf_t));
    }
}


void
us_input_piece(us_input_t *in, const uint8_t *p, size_t len)
{
    in->p = p;
    in->last = len ? p + len : p;
}


void
us_input_end(us_input_t *in)
{
    in->ended = 1;
}


us_input_rc_t
us_input_next(us_input_t *in, us_input_item_t *item)
{
    if (in->error) {
        return US_INPUT_ERROR;
    }

    if (in->done) {
        return US_INPUT_MORE;
    }

    in->item = item;

    switch (in->format) {

    case US_INPUT_TEXT:
        return us_input_text(in);

    case US_INPUT_NDJSON:
        return us_input_ndjson(in);

    case US_INPUT_FORM:
        return us_input_form(in);

    default: /* US_INPUT_JSON */
        return us_input_json(in);
    }
}
