
/*
 * JSON lines.  See us_cli_json.h.
 */


#include "us_cli_json.h"

#include <stdlib.h>


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
} us_json_t;


static void
us_json_space(us_json_t *j)
{
    while (j->p < j->end && (*j->p == ' ' || (*j->p >= '\t' && *j->p <= '\r')))
    {
        j->p++;
    }
}


static int
us_json_take(us_json_t *j, char c)
{
    us_json_space(j);

    if (j->p == j->end || *j->p != c) {
        return 0;
    }

    j->p++;

    return 1;
}


static long
us_json_hex4(us_json_t *j)
{
    int   i, c;
    long  v;

    if (j->end - j->p < 4) {
        return -1;
    }

    for (v = 0, i = 0; i < 4; i++) {
        c = *j->p++;

        if (c >= '0' && c <= '9') {
            c -= '0';

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            c = (c | 0x20) - 'a' + 10;

        } else {
            return -1;
        }

        v = v << 4 | c;
    }

    return v;
}


static uint8_t *
us_json_utf8(uint8_t *out, long c)
{
    if (c < 0x80) {
        *out++ = (uint8_t) c;

    } else if (c < 0x800) {
        *out++ = (uint8_t) (0xc0 | c >> 6);
        *out++ = (uint8_t) (0x80 | (c & 0x3f));

    } else if (c < 0x10000) {
        *out++ = (uint8_t) (0xe0 | c >> 12);
        *out++ = (uint8_t) (0x80 | (c >> 6 & 0x3f));
        *out++ = (uint8_t) (0x80 | (c & 0x3f));

    } else {
        *out++ = (uint8_t) (0xf0 | c >> 18);
        *out++ = (uint8_t) (0x80 | (c >> 12 & 0x3f));
        *out++ = (uint8_t) (0x80 | (c >> 6 & 0x3f));
        *out++ = (uint8_t) (0x80 | (c & 0x3f));
    }

    return out;
}


/* \uXXXX, the "\u" has been read; pairs of surrogates are one character */

static uint8_t *
us_json_escape_u(us_json_t *j, uint8_t *out)
{
    long            c, low;
    const uint8_t  *mark;

    c = us_json_hex4(j);

    if (c < 0) {
        return NULL;
    }

    if (c >= 0xd800 && c < 0xdc00 && j->end - j->p >= 6 && j->p[0] == '\\'
        && j->p[1] == 'u')
    {
        mark = j->p;
        j->p += 2;
        low = us_json_hex4(j);

        if (low >= 0xdc00 && low < 0xe000) {
            return us_json_utf8(out, 0x10000 + ((c - 0xd800) << 10)
                                     + (low - 0xdc00));
        }

        j->p = mark;
    }

    return us_json_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
}


/* allocates; no escape is longer decoded than written */

static int
us_json_string(us_json_t *j, us_str_t *s)
{
    uint8_t     *text, *out;
    const char  *e;

    static const char  from[] = "\"\\/bfnrt";
    static const char  to[] = "\"\\/\b\f\n\r\t";

    if (!us_json_take(j, '"')) {
        return -1;
    }

    text = malloc(j->end - j->p + 1);

    if (text == NULL) {
        return -1;
    }

    for (out = text; out && j->p < j->end; /* void */ ) {

        if (*j->p == '"') {
            j->p++;
            s->data = text;
            s->len = out - text;
            return 0;
        }

        if (*j->p != '\\') {
            *out++ = *j->p++;
            continue;
        }

        if (++j->p == j->end) {
            break;
        }

        if (*j->p == 'u') {
            j->p++;
            out = us_json_escape_u(j, out);
            continue;
        }

        e = *j->p ? strchr(from, *j->p) : NULL;

        if (e == NULL) {
            break;
        }

        *out++ = to[e - from];
        j->p++;
    }

    free(text);

    return -1;
}


/* a value that is not asked for: balanced brackets, strings as a whole */

static int
us_json_skip(us_json_t *j)
{
    size_t    depth;
    us_str_t  s;

    for (depth = 0; j->p < j->end; j->p++) {

        if (*j->p == '"') {
            if (us_json_string(j, &s) != 0) {
                return -1;
            }

            free((void *) s.data);
            j->p--;

        } else if (*j->p == '{' || *j->p == '[') {
            depth++;

        } else if (*j->p == '}' || *j->p == ']' || *j->p == ',') {

            if (depth == 0) {
                return 0;
            }

            depth -= *j->p != ',';
        }
    }

    return -1;
}


static int
us_json_member(us_json_t *j, const us_str_t *keys, size_t n, us_str_t *values)
{
    size_t    i;
    us_str_t  key;

    if (us_json_string(j, &key) != 0) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        if (key.len == keys[i].len
            && memcmp(key.data, keys[i].data, key.len) == 0)
        {
            break;
        }
    }

    free((void *) key.data);

    if (!us_json_take(j, ':')) {
        return -1;
    }

    us_json_space(j);

    if (i < n && values[i].data == NULL) {

        if (j->end - j->p >= 4 && memcmp(j->p, "null", 4) == 0) {
            j->p += 4;
            return 0;
        }

        return us_json_string(j, &values[i]);
    }

    return us_json_skip(j);
}


int
us_json_object(us_str_t text, const us_str_t *keys, size_t n,
    us_str_t *values)
{
    size_t     i;
    us_json_t  j;

    memset(values, 0, n * sizeof(us_str_t));

    j.p = text.data;
    j.end = text.data + text.len;

    if (!us_json_take(&j, '{')) {
        return -1;
    }

    if (!us_json_take(&j, '}')) {

        do {
            if (us_json_member(&j, keys, n, values) != 0) {
                goto failed;
            }

        } while (us_json_take(&j, ','));

        if (!us_json_take(&j, '}')) {
            goto failed;
        }
    }

    us_json_space(&j);

    if (j.p == j.end) {
        return 0;
    }

failed:

    for (i = 0; i < n; i++) {
        free((void *) values[i].data);
        values[i].data = NULL;
    }

    return -1;
}


void
us_json_write(FILE *f, us_str_t s)
{
    size_t  i;

    putc('"', f);

    for (i = 0; i < s.len; i++) {

        if (s.data[i] < 0x20) {
            fprintf(f, "\\u%04x", s.data[i]);
            continue;
        }

        if (s.data[i] == '"' || s.data[i] == '\\') {
            putc('\\', f);
        }

        putc(s.data[i], f);
    }

    putc('"', f);
}
