
/*
 * The body reader on any bytes, in all formats:
 *
 *   input   | format: 2, ids: 1 bit | max: 1 | cuts: 1 | body
 *
 *   cut      wherever a body is cut, and reading rests, its items are those of
 *            the whole, and so is the reason if it is refused
 *   bounds   no text, base or ref is over its limit, a ref is JSON
 *   known    if a number of items is known before the first, they are as many
 *   decoded  decoding a form's value gives no more bytes than there were
 */


#include "pieces.h"
#include "input/us_input.h"


typedef struct {
    us_input_t   in;
    size_t       work;                /* bytes until a rest */
    size_t       items;
    size_t       known;

    uint8_t     *log;
    size_t       len;
    size_t       size;
} reading_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static reading_t  whole, other;


/* | length: 8 | bytes | ; absent is not the same as empty */

static void
put(reading_t *r, us_str_t s, int there)
{
    uint64_t  len;

    len = there ? s.len : UINT64_MAX;
    s.len = there ? s.len : 0;

    if (r->len + sizeof(len) + s.len > r->size) {
        r->size = 2 * (r->len + sizeof(len) + s.len);
        r->log = realloc(r->log, r->size);
    }

    memcpy(r->log + r->len, &len, sizeof(len));
    r->len += sizeof(len);

    if (s.len) {
        memcpy(r->log + r->len, s.data, s.len);
        r->len += s.len;
    }
}


static void
bounds(const us_input_t *in, const us_input_item_t *item)
{
    us_json_t        j;
    us_json_event_t  event;

    switch (item->kind) {

    case US_INPUT_URL:
        if (item->text.len > in->max || item->base.len > in->max) {
            broken("bounds: URL", item->text);
        }

        break;

    case US_INPUT_NUMBER:
        if ((item->text.len > US_JSON_NUMBER && item->text.len > in->max)
            || item->base.len > in->max)
        {
            broken("bounds: number", item->text);
        }

        break;

    default:
        break;
    }

    if (item->ref.data == NULL) {
        return;
    }

    us_json_init(&j, US_INPUT_REF);
    us_json_text(&j, item->ref);

    do {
        event = us_json_next(&j);

    } while (event < US_JSON_END && !j.cut);

    if (item->ref.len > US_INPUT_REF || event != US_JSON_END) {
        broken("bounds: ref", item->ref);
    }

    us_json_free(&j);
}


static void
record(reading_t *r, const us_input_item_t *item)
{
    us_str_t  kind;
    uint8_t   k;

    bounds(&r->in, item);

    if ((item->kind == US_INPUT_BAD) != (item->why != NULL)) {
        broken("an item that is none has its reason", item->text);
    }

    k = (uint8_t) item->kind;
    kind.data = &k;
    kind.len = 1;

    put(r, kind, 1);
    put(r, item->text, item->kind <= US_INPUT_NUMBER);
    put(r, item->base, item->base.data != NULL);
    put(r, item->ref, item->ref.data != NULL);

    if (r->items++ == 0) {
        r->known = r->in.known;
    }
}


static int
take(reading_t *r)
{
    us_input_rc_t     rc;
    us_input_item_t   item;

    do {
        r->in.work = r->work;
        rc = us_input_next(&r->in, &item);

        if (rc == US_INPUT_ITEM) {
            record(r, &item);
        }

    } while (rc == US_INPUT_ITEM || rc == US_INPUT_REST);

    return rc == US_INPUT_MORE ? 0 : -1;
}


static int
feed(void *data, const uint8_t *p, size_t len)
{
    reading_t *r = data;

    us_input_piece(&r->in, p, len);

    return take(r);
}


static int
read_body(reading_t *r, us_str_t body, unsigned how, size_t max, uint32_t seed)
{
    int  rc;

    r->len = 0;
    r->items = 0;
    r->known = 0;
    r->work = seed ? seed % 61 + 1 : SIZE_MAX;

    us_input_init(&r->in, how & 3, max);
    r->in.ids = how >> 2 & 1;

    rc = pieces_feed(body.data, body.len, seed, feed, r);

    if (rc == 0) {
        us_input_piece(&r->in, NULL, 0);
        us_input_end(&r->in);
        rc = take(r);
    }

    if ((rc == 0) != (r->in.error == NULL)) {
        broken("a refusal has its reason", body);
    }

    if (rc == 0 && r->known && r->known != r->items) {
        broken("known", body);
    }

    us_input_free(&r->in);

    return rc;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                  rc;
    size_t               max, len;
    uint8_t             *value;
    us_str_t             body;
    static const size_t  limits[] = { 8192, 64, 16, 1 };

    if (size < 3) {
        return -1;
    }

    max = limits[data[1] & 3];
    body.data = data + 3;
    body.len = size - 3;

    rc = read_body(&whole, body, data[0], max, 0);

    if (read_body(&other, body, data[0], max, 1 + data[2]) != rc
        || whole.in.error != other.in.error
        || (rc == 0 && whole.in.single != other.in.single))
    {
        broken("cut: verdict", body);
    }

    if (whole.len != other.len
        || (whole.len && memcmp(whole.log, other.log, whole.len) != 0))
    {
        broken("cut", body);
    }

    value = malloc(body.len);
    len = us_input_unescape(value, body.data, body.len);

    if (len > body.len) {
        broken("decoded", body);
    }

    free(value);

    return 0;
}
