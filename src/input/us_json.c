
/*
 * See us_json.h.  A state says what may stand between two tokens, and a bit
 * for each level whether it is an array:
 *
 *     next --> us_json_token --+-- { [ } ]
 *                |             |-- us_json_number, us_json_word
 *                `-- in a string: us_json_string <--> us_json_escape
 *
 * Only a string, and white space, may be longer than the work of a call, so
 * only these are left and taken up again in the middle.
 */


#include "us_json.h"
#include "../us_text.h"
#include "../us_utf8.h"

#include <stdarg.h>


typedef enum {
    US_JSON_S_VALUE = 0,              /* a value must come */
    US_JSON_S_FIRST,                  /* after [ : a value or ] */
    US_JSON_S_FIELD,                  /* after { : a key or } */
    US_JSON_S_KEY,                    /* after , in an object: a key */
    US_JSON_S_COLON,
    US_JSON_S_NEXT,                   /* after a value: , or the end */
    US_JSON_S_DONE                    /* nothing but white space */
} us_json_state_t;


void
us_json_text(us_json_t *j, us_str_t text)
{
    j->p = text.data;
    j->end = text.len ? text.data + text.len : text.data;
    j->error = NULL;
    j->depth = 0;
    j->state = US_JSON_S_VALUE;
    j->string = 0;
}


static const uint8_t *
us_json_last(us_json_t *j)
{
    return (size_t) (j->end - j->p) > j->work ? j->p + j->work : j->end;
}


static us_json_event_t
us_json_fail(us_json_t *j, const char *error)
{
    j->error = error;

    return US_JSON_ERROR;
}


int
us_json_buf_add(us_json_buf_t *b, const uint8_t *p, size_t len)
{
    size_t    size;
    uint8_t  *data;

    if (b->data == NULL || b->len + len > b->size) {
        size = b->size ? b->size * 2 : 256;

        while (size < b->len + len) {
            size *= 2;
        }

        data = realloc(b->data, size);

        if (data == NULL) {
            return -1;
        }

        b->data = data;
        b->size = size;
    }

    if (p && len) {
        memcpy(b->data + b->len, p, len);
    }

    b->len += len;

    return 0;
}


static int
us_json_append(us_json_t *j, const uint8_t *p, size_t len)
{
    if (j->cut || len > j->max - j->buf.len) {
        j->cut = 1;
        return 0;
    }

    if (us_json_buf_add(&j->buf, p, len) != 0) {
        us_json_fail(j, "out of memory");
        return -1;
    }

    return 0;
}


/* the four digits of \uXXXX; -1 and the reason */

static int32_t
us_json_unit(us_json_t *j, const uint8_t *p)
{
    int      i, digit;
    int32_t  n;

    n = 0;

    for (i = 0; i < 4; i++) {

        if (p + i == j->end) {
            us_json_fail(j, "the text ends too early");
            return -1;
        }

        digit = us_hex_value(p[i]);

        if (digit == -1) {
            us_json_fail(j, "a hexadecimal digit was expected");
            return -1;
        }

        n = n << 4 | digit;
    }

    return n;
}


/* j->p is at the backslash; 0 or -1 */

static int
us_json_escape(us_json_t *j)
{
    size_t          len;
    int32_t         n, low;
    uint8_t         s[4];
    const char     *found;
    const uint8_t  *p;

    static const char  letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";

    p = j->p + 1;

    if (p == j->end) {
        us_json_fail(j, "the text ends too early");
        return -1;
    }

    if (*p != 'u') {
        found = memchr(letters, *p, sizeof(letters) - 1);

        if (found == NULL) {
            us_json_fail(j, "an unknown escape");
            return -1;
        }

        j->p = p + 1;

        return us_json_append(j, (const uint8_t *) bytes + (found - letters),
                              1);
    }

    n = us_json_unit(j, p + 1);

    if (n == -1) {
        return -1;
    }

    p += 5;

    if (n >= 0xd800 && n <= 0xdbff && j->end - p >= 2 && p[0] == '\\'
        && p[1] == 'u')
    {
        low = us_json_unit(j, p + 2);

        if (low == -1) {
            return -1;
        }

        if (low >= 0xdc00 && low <= 0xdfff) {
            n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }

    if (n >= 0xd800 && n <= 0xdfff) {

        /* a surrogate without the other half */

        if (!j->lone) {
            us_json_fail(j, "a lone surrogate");
            return -1;
        }

        n = 0xfffd;
    }

    j->p = p;

    /* as UTF-8 */

    if (n < 0x80) {
        s[0] = n;
        return us_json_append(j, s, 1);
    }

    len = n < 0x800 ? 2 : n < 0x10000 ? 3 : 4;

    s[0] = (0xf00 >> len) | (n >> 6 * (len - 1));
    s[1] = 0x80 | ((n >> 6 * (len - 2)) & 0x3f);
    s[2] = 0x80 | ((len == 3 ? n : n >> 6) & 0x3f);
    s[3] = 0x80 | (n & 0x3f);

    return us_json_append(j, s, len);
}


/* the end of any value; j->p is after it */

static us_json_event_t
us_json_done(us_json_t *j, us_json_event_t event)
{
    j->state = j->depth ? US_JSON_S_NEXT : US_JSON_S_DONE;

    return event;
}


/* from where it was left; j->at is at its quotation mark */

static us_json_event_t
us_json_string(us_json_t *j)
{
    uint8_t         c;
    const uint8_t  *p, *last;

    last = us_json_last(j);

    for ( ;; ) {

        for (p = j->p; p < last; p++) {
            c = *p;

            if (us_json_plain[c] && j->utf8.need == 0) {
                continue;
            }

            if (c < 0x80 && j->utf8.need == 0) {
                break;
            }

            if (us_utf8_byte(&j->utf8, c) != 0) {
                return us_json_fail(j, "broken UTF-8");
            }
        }

        if (j->copied && us_json_append(j, j->p, p - j->p) != 0) {
            return US_JSON_ERROR;
        }

        j->p = p;

        if (p >= last) {
            return p < j->end ? US_JSON_REST
                              : us_json_fail(j, "the text ends too early");
        }

        if (*p == '"') {
            break;
        }

        if (*p != '\\') {
            return us_json_fail(j, "a control byte in a string");
        }

        if (!j->copied) {
            j->copied = 1;

            if (us_json_append(j, j->at + 1, p - j->at - 1) != 0) {
                return US_JSON_ERROR;
            }
        }

        if (us_json_escape(j) != 0) {
            return US_JSON_ERROR;
        }
    }

    j->text.data = j->copied ? j->buf.data : j->at + 1;
    j->text.len = j->copied ? j->buf.len : (size_t) (p - j->at - 1);

    if (j->cut || j->text.len > j->max) {
        j->cut = 1;
        j->text.len = 0;
    }

    j->p++;
    j->string = 0;

    if (j->state == US_JSON_S_FIELD || j->state == US_JSON_S_KEY) {
        j->state = US_JSON_S_COLON;
        return US_JSON_KEY;
    }

    return us_json_done(j, US_JSON_STRING);
}


static us_json_event_t
us_json_close(us_json_t *j)
{
    unsigned  array;

    array = j->arrays & 1;

    if (j->depth == 0 || *j->p != (array ? ']' : '}')) {
        return us_json_fail(j, "a comma or the end was expected");
    }

    j->p++;
    j->depth--;
    j->arrays >>= 1;

    return us_json_done(j, array ? US_JSON_ARRAY_END : US_JSON_OBJECT_END);
}


static us_json_event_t
us_json_word(us_json_t *j, const char *word, us_json_event_t event)
{
    size_t  len, n;

    len = strlen(word);
    n = (size_t) (j->end - j->p) < len ? (size_t) (j->end - j->p) : len;

    if (memcmp(j->p, word, n) != 0) {
        return us_json_fail(j, "an unknown word");
    }

    if (n < len) {
        return us_json_fail(j, "the text ends too early");
    }

    j->p += len;

    return us_json_done(j, event);
}


/* returns their end; NULL: there is none */

static const uint8_t *
us_json_digits(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *start;

    for (start = p; p < end && *p >= '0' && *p <= '9'; p++) { /* void */ }

    return p > start ? p : NULL;
}


static us_json_event_t
us_json_number(us_json_t *j)
{
    const uint8_t  *p, *end;

    for (end = j->p; end < j->end && end - j->p <= US_JSON_NUMBER; end++) {
        if ((*end < '0' || *end > '9') && *end != '-' && *end != '+'
            && *end != '.' && *end != 'e' && *end != 'E')
        {
            break;
        }
    }

    p = j->p;

    if (p == end || (*p != '-' && (*p < '0' || *p > '9'))) {
        return us_json_fail(j, "a value was expected");
    }

    if (end - p > US_JSON_NUMBER) {
        return us_json_fail(j, "a number that is too long");
    }

    j->text.data = p;
    j->text.len = end - p;

    p = (*p == '-') ? p + 1 : p;
    p = (p < end && *p == '0') ? p + 1 : us_json_digits(p, end);

    if (p && p < end && *p == '.') {
        p = us_json_digits(p + 1, end);
    }

    if (p && p < end && (*p == 'e' || *p == 'E')) {
        p++;

        if (p < end && (*p == '+' || *p == '-')) {
            p++;
        }

        p = us_json_digits(p, end);
    }

    if (p != end) {
        return us_json_fail(j, "a malformed number");
    }

    j->p = end;

    return us_json_done(j, US_JSON_NUM);
}


/* the first byte is that of a value, or the quotation mark of a key */

static us_json_event_t
us_json_value(us_json_t *j)
{
    switch (*j->p) {

    case '"':
        j->p++;
        j->string = 1;
        j->copied = 0;
        j->buf.len = 0;
        j->utf8.need = 0;

        return us_json_string(j);

    case '{':
    case '[':
        if (j->depth == US_JSON_DEPTH) {
            return us_json_fail(j, "nested too deeply");
        }

        j->depth++;
        j->arrays = j->arrays << 1 | (*j->p == '[');
        j->state = (j->arrays & 1) ? US_JSON_S_FIRST : US_JSON_S_FIELD;
        j->p++;

        return (j->arrays & 1) ? US_JSON_ARRAY : US_JSON_OBJECT;

    case 't':
        return us_json_word(j, "true", US_JSON_TRUE);

    case 'f':
        return us_json_word(j, "false", US_JSON_FALSE);

    case 'n':
        return us_json_word(j, "null", US_JSON_NULL);

    default:
        return us_json_number(j);
    }
}


static us_json_event_t
us_json_token(us_json_t *j)
{
    uint8_t         c;
    const uint8_t  *last;

    last = us_json_last(j);

    for ( ;; ) {

        while (j->p < last && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n'
                               || *j->p == '\r'))
        {
            j->p++;
        }

        if (j->p == last) {
            return last < j->end ? US_JSON_REST
                   : j->state == US_JSON_S_DONE ? US_JSON_END
                   : us_json_fail(j, "the text ends too early");
        }

        c = *j->p;
        j->at = j->p;
        j->cut = 0;

        switch (j->state) {

        case US_JSON_S_FIRST:
            if (c == ']') {
                return us_json_close(j);
            }

            /* fall through */

        case US_JSON_S_VALUE:
            return us_json_value(j);

        case US_JSON_S_FIELD:
            if (c == '}') {
                return us_json_close(j);
            }

            /* fall through */

        case US_JSON_S_KEY:
            if (c != '"') {
                return us_json_fail(j, "a key was expected");
            }

            return us_json_value(j);

        case US_JSON_S_COLON:
            if (c != ':') {
                return us_json_fail(j, "a colon was expected");
            }

            j->state = US_JSON_S_VALUE;
            break;

        case US_JSON_S_NEXT:
            if (c != ',') {
                return us_json_close(j);
            }

            j->state = (j->arrays & 1) ? US_JSON_S_VALUE : US_JSON_S_KEY;
            break;

        default: /* US_JSON_S_DONE */
            return us_json_fail(j, "something follows the value");
        }

        j->p++;
    }
}


us_json_event_t
us_json_next(us_json_t *j)
{
    size_t            used;
    const uint8_t    *start;
    us_json_event_t   event;

    if (j->error) {
        return US_JSON_ERROR;
    }

    start = j->p;
    event = j->string ? us_json_string(j) : us_json_token(j);
    used = j->p - start;

    j->work -= used < j->work ? used : j->work;

    return event;
}


/* bytes that may stand in a string as they are: ASCII, but for " and \ */

const uint8_t  us_json_plain[256] = {
    ['\x20' ... '!'] = 1, ['#' ... '['] = 1, [']' ... '\x7f'] = 1
};


/* broken: the text is not UTF-8 */

static uint8_t *
us_json_write(uint8_t *dst, us_str_t text, int broken)
{
    const char     *found;
    const uint8_t  *p, *last;

    static const char  bytes[] = "\"\\\n\t\r", letters[] = "\"\\ntr";

    last = text.data + text.len;

    *dst++ = '"';

    for (p = text.data; p < last; p++) {

        if (us_json_plain[*p] || (*p >= 0x80 && !broken)) {
            *dst++ = *p;
            continue;
        }

        if (*p >= 0x80) {
            dst = us_put(dst, "\\ufffd");
            continue;
        }

        found = memchr(bytes, *p, sizeof(bytes) - 1);

        if (found) {
            *dst++ = '\\';
            *dst++ = letters[found - bytes];
            continue;
        }

        dst = us_put_hex(us_put(dst, "\\u00"), p, 1);
    }

    *dst++ = '"';

    return dst;
}


uint8_t *
us_json_quote(uint8_t *dst, us_str_t text)
{
    return us_json_write(dst, text, 0);
}


uint8_t *
us_json_quote_bytes(uint8_t *dst, us_str_t text)
{
    return us_json_write(dst, text, !us_utf8_valid(text));
}


uint8_t *
us_json_printf(uint8_t *dst, const char *fmt, ...)
{
    va_list      args;
    const char  *p;

    va_start(args, fmt);

    for (p = fmt; *p; p++) {

        if (*p != '%') {
            *dst++ = (uint8_t) *p;
            continue;
        }

        switch (*++p) {

        case 's':
            dst = us_put(dst, va_arg(args, const char *));
            break;

        case 'V':
            dst = us_put_str(dst, va_arg(args, us_str_t));
            break;

        case 'q':
            dst = us_json_quote_bytes(dst, va_arg(args, us_str_t));
            break;

        default: /* 'u' */
            dst = us_put_u64(dst, va_arg(args, uint64_t));
        }
    }

    va_end(args);

    return dst;
}
