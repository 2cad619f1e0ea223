
/*
 * See us_json.h.  A push-down machine: one state, one bit for each level
 * ({ or [), and a buffer for the token that the end of a piece has cut.
 *
 *     feed --+-- in a string -----------> us_json_string --.
 *            |-- in a number -----------> us_json_number --+--> emit
 *            |-- in a word, an escape --> us_json_inside --'
 *            `-- else ------------------> us_json_between
 *                    { [ or a first byte --> us_json_value
 *                    } ] ------------------> us_json_close
 *
 * A part of a string that lies in the piece is copied only if the string has
 * an escape or is cut:
 *
 *     " plain bytes \ escape plain bytes "
 *       `---------'   |     `---------'
 *        where they   |      after it, in the buffer
 *        lie          `-- n, ", ... or uXXXX; a high surrogate \ u low one
 */


#include "us_json_private.h"
#include "us_json_quote.h"

#include <stdlib.h>


static int us_json_append_char(us_json_t *j, uint32_t c);
static const uint8_t *us_json_between(us_json_t *j, const uint8_t *p);
static const uint8_t *us_json_inside(us_json_t *j, const uint8_t *p);
static int us_json_value(us_json_t *j, uint8_t c);
static int us_json_close(us_json_t *j, uint8_t c);
static const uint8_t *us_json_string(us_json_t *j, const uint8_t *p,
    const uint8_t *end);
static int us_json_escape(us_json_t *j, uint8_t c);
static int us_json_hex(us_json_t *j, uint8_t c);
static int us_json_lone(us_json_t *j);


void
us_json_init(us_json_t *j, us_json_pt event, void *data, size_t max)
{
    memset(j, 0, sizeof(us_json_t));

    j->event = event;
    j->data = data;
    j->max = max;
}


void
us_json_free(us_json_t *j)
{
    free(j->buf);
    j->buf = NULL;
    j->size = 0;
}


void
us_json_reset(us_json_t *j)
{
    j->len = 0;
    j->depth = 0;
    j->state = US_JSON_S_VALUE;
    j->cut = 0;
    j->utf8.need = 0;
    j->high = 0;
    j->error = NULL;
}


const uint8_t *
us_json_feed(us_json_t *j, const uint8_t *p, const uint8_t *end)
{
    if (j->error) {
        return NULL;
    }

    j->paused = 0;

    while (p < end && !j->paused) {

        if (j->state == US_JSON_S_STRING) {
            p = us_json_string(j, p, end);

        } else if (j->state >= US_JSON_S_MINUS) {
            p = us_json_number(j, p, end);

        } else if (j->state >= US_JSON_S_ESCAPE) {
            p = us_json_inside(j, p);

        } else {
            p = us_json_between(j, p);
        }

        if (p == NULL) {
            return NULL;
        }
    }

    return p;
}


/* a byte between two tokens, or the first of one; returns where to go on */

static const uint8_t *
us_json_between(us_json_t *j, const uint8_t *p)
{
    int      rc;
    uint8_t  c;

    c = *p;

    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        return p + 1;
    }

    rc = 0;

    switch (j->state) {

    case US_JSON_S_FIRST:
        if (c == ']') {
            rc = us_json_close(j, c);
            break;
        }

        /* fall through */

    case US_JSON_S_VALUE:
        rc = us_json_value(j, c);

        if (j->state >= US_JSON_S_MINUS) {
            /* the number starts with this byte */
            return p;
        }

        break;

    case US_JSON_S_FIELD:
        if (c == '}') {
            rc = us_json_close(j, c);
            break;
        }

        /* fall through */

    case US_JSON_S_KEY:
        if (c != '"') {
            rc = us_json_fail(j, "a key was expected");
            break;
        }

        j->key = 1;
        j->state = US_JSON_S_STRING;
        break;

    case US_JSON_S_COLON:
        if (c != ':') {
            rc = us_json_fail(j, "a colon was expected");
            break;
        }

        j->state = US_JSON_S_VALUE;
        break;

    case US_JSON_S_NEXT:
        if (c == ',') {
            j->state = (j->arrays & 1) ? US_JSON_S_VALUE : US_JSON_S_KEY;
            break;
        }

        rc = us_json_close(j, c);
        break;

    default: /* US_JSON_S_DONE */
        rc = us_json_fail(j, "something follows the value");
    }

    return rc == 0 ? p + 1 : NULL;
}


/* a byte of a word, or of an escape; returns where to go on */

static const uint8_t *
us_json_inside(us_json_t *j, const uint8_t *p)
{
    int  rc;

    rc = 0;

    switch (j->state) {

    case US_JSON_S_ESCAPE:
        rc = us_json_escape(j, *p);
        break;

    case US_JSON_S_HEX:
        rc = us_json_hex(j, *p);
        break;

    case US_JSON_S_LOW:
        if (*p != '\\') {
            j->state = US_JSON_S_STRING;
            return us_json_lone(j) == 0 ? p : NULL;
        }

        j->state = US_JSON_S_LOW_U;
        break;

    case US_JSON_S_LOW_U:
        if (*p != 'u') {
            j->state = US_JSON_S_ESCAPE;
            return us_json_lone(j) == 0 ? p : NULL;
        }

        j->state = US_JSON_S_HEX;
        break;

    default: /* US_JSON_S_LITERAL */

        if (*p != (uint8_t) *j->literal) {
            rc = us_json_fail(j, "an unknown word");

        } else if (*++j->literal == '\0') {
            rc = us_json_emit(j, j->literal_event, p, p);
        }
    }

    return rc == 0 ? p + 1 : NULL;
}


int
us_json_end(us_json_t *j)
{
    if (j->error) {
        return -1;
    }

    /* only a number has no end of its own: the next byte ends it */

    if (j->state == US_JSON_S_ZERO || j->state == US_JSON_S_INT
        || j->state == US_JSON_S_FRAC || j->state == US_JSON_S_EXP)
    {
        if (us_json_emit(j, US_JSON_NUM, NULL, NULL) != 0) {
            return -1;
        }
    }

    if (j->state != US_JSON_S_DONE) {
        return us_json_fail(j, "the text ends too early");
    }

    return 0;
}


static int
us_json_append_char(us_json_t *j, uint32_t c)
{
    uint8_t  s[4];

    if (c < 0x80) {
        s[0] = c;
        return us_json_append(j, s, 1);
    }

    if (c < 0x800) {
        s[0] = 0xc0 | (c >> 6);
        s[1] = 0x80 | (c & 0x3f);
        return us_json_append(j, s, 2);
    }

    if (c < 0x10000) {
        s[0] = 0xe0 | (c >> 12);
        s[1] = 0x80 | ((c >> 6) & 0x3f);
        s[2] = 0x80 | (c & 0x3f);
        return us_json_append(j, s, 3);
    }

    s[0] = 0xf0 | (c >> 18);
    s[1] = 0x80 | ((c >> 12) & 0x3f);
    s[2] = 0x80 | ((c >> 6) & 0x3f);
    s[3] = 0x80 | (c & 0x3f);

    return us_json_append(j, s, 4);
}


static int
us_json_value(us_json_t *j, uint8_t c)
{
    us_str_t  none;

    switch (c) {

    case '"':
        j->key = 0;
        j->state = US_JSON_S_STRING;
        return 0;

    case '{':
    case '[':
        if (j->depth == US_JSON_DEPTH) {
            return us_json_fail(j, "nested too deeply");
        }

        j->depth++;
        j->arrays = j->arrays << 1 | (c == '[');
        j->state = (c == '[') ? US_JSON_S_FIRST : US_JSON_S_FIELD;

        none.len = 0;
        none.data = NULL;

        return us_json_event(j, c == '[' ? US_JSON_ARRAY : US_JSON_OBJECT,
                             none, 0);

    case 't':
        j->literal = "rue";
        j->literal_event = US_JSON_TRUE;
        j->state = US_JSON_S_LITERAL;
        return 0;

    case 'f':
        j->literal = "alse";
        j->literal_event = US_JSON_FALSE;
        j->state = US_JSON_S_LITERAL;
        return 0;

    case 'n':
        j->literal = "ull";
        j->literal_event = US_JSON_NULL;
        j->state = US_JSON_S_LITERAL;
        return 0;

    case '-':
        j->state = US_JSON_S_MINUS;
        return 0;

    case '0':
        j->state = US_JSON_S_ZERO;
        return 0;

    default:
        if (c >= '1' && c <= '9') {
            j->state = US_JSON_S_INT;
            return 0;
        }

        return us_json_fail(j, "a value was expected");
    }
}


static int
us_json_close(us_json_t *j, uint8_t c)
{
    us_str_t  none;

    if (j->depth == 0 || c != ((j->arrays & 1) ? ']' : '}')) {
        return us_json_fail(j, "a comma or the end was expected");
    }

    j->depth--;
    j->arrays >>= 1;
    j->state = j->depth ? US_JSON_S_NEXT : US_JSON_S_DONE;

    none.len = 0;
    none.data = NULL;

    return us_json_event(j, c == ']' ? US_JSON_ARRAY_END : US_JSON_OBJECT_END,
                         none, 0);
}


/* returns where to go on: past the quote, at an escape, or at the end */

static const uint8_t *
us_json_string(us_json_t *j, const uint8_t *p, const uint8_t *end)
{
    uint8_t         c;
    const uint8_t  *start;

    start = p;

    for ( ;; ) {

        if (j->utf8.need == 0) {
            while (p < end && us_json_plain[*p]) {
                p++;
            }
        }

        if (p == end) {
            return us_json_append(j, start, p - start) == 0 ? p : NULL;
        }

        c = *p;

        if (c >= 0x80 || j->utf8.need) {
            if (us_utf8_byte(&j->utf8, c) != 0) {
                us_json_fail(j, "broken UTF-8");
                return NULL;
            }

            p++;
            continue;
        }

        if (c == '"') {
            if (us_json_emit(j, j->key ? US_JSON_KEY : US_JSON_STRING, start,
                             p)
                != 0)
            {
                return NULL;
            }

            return p + 1;
        }

        if (c == '\\') {
            j->state = US_JSON_S_ESCAPE;

            return us_json_append(j, start, p - start) == 0 ? p + 1 : NULL;
        }

        us_json_fail(j, "a control byte in a string");

        return NULL;
    }
}


static int
us_json_escape(us_json_t *j, uint8_t c)
{
    j->state = US_JSON_S_STRING;

    switch (c) {

    case '"':
    case '\\':
    case '/':
        return us_json_append(j, &c, 1);

    case 'b':
        return us_json_append_char(j, '\b');

    case 'f':
        return us_json_append_char(j, '\f');

    case 'n':
        return us_json_append_char(j, '\n');

    case 'r':
        return us_json_append_char(j, '\r');

    case 't':
        return us_json_append_char(j, '\t');

    case 'u':
        j->state = US_JSON_S_HEX;
        j->nhex = 0;
        j->unit = 0;
        return 0;

    default:
        return us_json_fail(j, "an unknown escape");
    }
}


static int
us_json_hex(us_json_t *j, uint8_t c)
{
    uint32_t  n;

    if (c >= '0' && c <= '9') {
        n = c - '0';

    } else {
        c |= 0x20;

        if (c < 'a' || c > 'f') {
            return us_json_fail(j, "a hexadecimal digit was expected");
        }

        n = c - 'a' + 10;
    }

    j->unit = j->unit << 4 | n;

    if (++j->nhex < 4) {
        return 0;
    }

    n = j->unit;

    j->nhex = 0;
    j->unit = 0;
    j->state = US_JSON_S_STRING;

    if (j->high && n >= 0xdc00 && n <= 0xdfff) {
        n = 0x10000 + ((j->high - 0xd800) << 10) + (n - 0xdc00);
        j->high = 0;

        return us_json_append_char(j, n);
    }

    if (j->high && us_json_lone(j) != 0) {
        return -1;
    }

    if (n >= 0xd800 && n <= 0xdbff) {
        j->high = n;
        j->state = US_JSON_S_LOW;
        return 0;
    }

    return (n >= 0xdc00 && n <= 0xdfff) ? us_json_lone(j)
                                        : us_json_append_char(j, n);
}


/* a surrogate without the other half */

static int
us_json_lone(us_json_t *j)
{
    j->high = 0;

    return j->lone ? us_json_append_char(j, 0xfffd)
                   : us_json_fail(j, "a lone surrogate");
}
