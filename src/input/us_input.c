
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().
 *
 *     text     us_input_text -> us_input_line ---------------------.
 *     NDJSON   us_input_ndjson -> us_json_feed -> us_input_event   |
 *                    `-> us_input_ndjson_line ---------------------+-> emit
 *     JSON     us_json_feed -> us_input_event -> _element ---------|
 *                                             `-> _object_end -----|
 *     form     us_input_form (keeps) -> us_input_form_end ---------'
 */


#include "us_input_private.h"

#include <stdlib.h>


void
us_input_init(us_input_t *in, us_input_format_t format, size_t max,
    us_input_pt item, void *data)
{
    memset(in, 0, sizeof(us_input_t));

    in->item = item;
    in->data = data;
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


int
us_input_feed(us_input_t *in, const uint8_t *p, size_t len)
{
    switch (in->format) {

    case US_INPUT_TEXT:
        return us_input_text(in, p, len);

    case US_INPUT_NDJSON:
        return us_input_ndjson(in, p, len);

    case US_INPUT_FORM:
        return us_input_form(in, p, len);

    default: /* US_INPUT_JSON */

        if (us_json_feed(&in->json, p, len) != 0) {
            return us_input_fail(in, in->json.error);
        }

        return 0;
    }
}


int
us_input_end(us_input_t *in)
{
    if (in->format == US_INPUT_FORM && !in->sniffed) {
        if (us_input_form_sniff(in) != 0) {
            return -1;
        }
    }

    switch (in->format) {

    case US_INPUT_TEXT:
        return us_input_text_end(in);

    case US_INPUT_NDJSON:
        return us_input_ndjson_line(in);

    case US_INPUT_FORM:
        return us_input_form_end(in);

    default: /* US_INPUT_JSON */

        if (us_json_end(&in->json) != 0) {
            return us_input_fail(in, in->json.error);
        }

        return 0;
    }
}
