
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().
 *
 *     text     us_input_text -> us_input_line ---------------------.
 *     NDJSON   us_input_ndjson -> us_json_feed -> us_input_event   |
 *                    `-> us_input_ndjson_line ---------------------+-> emit
 *     JSON     us_input_json -> us_json_feed -> us_input_event     |
 *                  |                 `-> _element, _object_end ----|
 *                  `-> us_input_release (what was held) -----------|
 *     form     us_input_form (keeps) -> us_input_form_item --------'
 */


#include "us_input_private.h"

#include <stdlib.h>


void
us_input_init(us_input_t *in, us_input_format_t format, size_t max)
{
    memset(in, 0, sizeof(us_input_t));

    in->format = format;
    in->max = max;

    us_json_init(&in->json, us_input_event, in, max);
}


void
us_input_free(us_input_t *in)
{
    us_json_free(&in->json);

    free(in->carry.data);
    free(in->text.data);
    free(in->base.data);
    free(in->ref.data);
    free(in->held.data);
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


int
us_input_next(us_input_t *in, us_input_item_t *item)
{
    if (in->error) {
        return -1;
    }

    if (in->done) {
        return 0;
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
