
/*
 * Forms: url=U&url=U&base=B&ref=R.  See us_input.h.
 *
 * A form is kept until its end, in in->carry, for a base may come behind its
 * URLs; values are decoded there, where they lie.  What begins with none of
 * the names is no form but text.
 */


#include "us_input_private.h"
#include "us_json_quote.h"

#include <stdlib.h>


/* the longest of the names, "base=", tells a form from text */
#define US_INPUT_FORM_SNIFF  (sizeof("base=") - 1)


static int us_input_form_begins(us_input_t *in, const char *name);
static int us_input_form_ref(us_input_t *in, us_str_t value);
static int us_input_form_field(us_str_t *name, us_str_t *value, uint8_t **p,
    uint8_t *end);


int
us_input_form(us_input_t *in, const uint8_t *p, size_t len)
{
    if (us_input_append(in, &in->carry, p, len) != 0) {
        return -1;
    }

    if (!in->sniffed && in->carry.len >= US_INPUT_FORM_SNIFF) {
        return us_input_form_sniff(in);
    }

    return 0;
}


/* `curl --data-binary @urls.txt` calls a list of URLs a form */

int
us_input_form_sniff(us_input_t *in)
{
    int             rc;
    us_input_buf_t  b;

    in->sniffed = 1;

    if (us_input_form_begins(in, "url=") || us_input_form_begins(in, "base=")
        || us_input_form_begins(in, "ref=")
        || (in->ids && us_input_form_begins(in, "id=")))
    {
        return 0;
    }

    b = in->carry;

    memset(&in->carry, 0, sizeof(us_input_buf_t));

    in->format = US_INPUT_TEXT;

    rc = b.len ? us_input_text(in, b.data, b.len) : 0;

    free(b.data);

    return rc;
}


static int
us_input_form_begins(us_input_t *in, const char *name)
{
    size_t  len;

    len = strlen(name);

    return in->carry.len >= len && memcmp(in->carry.data, name, len) == 0;
}


/* two passes, for a base may come behind its URLs */

int
us_input_form_end(us_input_t *in)
{
    int              rc;
    uint8_t         *p, *end;
    unsigned         urls;
    us_str_t         name, value;
    us_input_buf_t  *base, *ref;

    urls = 0;
    base = NULL;
    ref = NULL;

    p = in->carry.data;
    end = p + in->carry.len;

    while (us_input_form_field(&name, &value, &p, end)) {

        if (us_input_is(name, "base")) {
            if (base) {
                return us_input_fail(in, "more than one \"base\"");
            }

            base = &in->base;

            if (us_input_append(in, base, value.data, value.len) != 0) {
                return -1;
            }

            base->len = us_input_unescape(base->data, base->data, base->len);

        } else if (us_input_is(name, "ref")) {
            if (ref) {
                return us_input_fail(in, "more than one \"ref\"");
            }

            ref = &in->ref;

            if (us_input_form_ref(in, value) != 0) {
                return -1;
            }

        } else if (us_input_is_item(in, name)) {
            urls++;
        }
    }

    if (ref && urls > 1) {
        return us_input_fail(in, "\"ref\" is for a single URL in a form");
    }

    if (urls == 0 && (ref || base)) {
        return us_input_fail(in, "no \"url\"");
    }

    in->single = (urls == 1);

    p = in->carry.data;

    while (us_input_form_field(&name, &value, &p, end)) {

        if (!us_input_is_item(in, name)) {
            continue;
        }

        value.len = us_input_unescape((uint8_t *) value.data, value.data,
                                      value.len);

        if (value.len > in->max || (base && base->len > in->max)) {
            value.len = 0;
            rc = us_input_emit(in, US_INPUT_LONG, value, NULL, ref);

        } else {
            rc = us_input_emit(in, US_INPUT_URL, value, base, ref);
        }

        if (rc != 0) {
            return -1;
        }
    }

    return 0;
}


/* the ref of a form is a JSON string */

static int
us_input_form_ref(us_input_t *in, us_str_t value)
{
    size_t    len;
    us_str_t  s;

    in->text.len = 0;

    if (us_input_append(in, &in->text, value.data, value.len) != 0) {
        return -1;
    }

    s.data = in->text.data;
    s.len = us_input_unescape(in->text.data, in->text.data, in->text.len);

    len = us_json_quoted_len(s);

    if (len > US_INPUT_REF) {
        return us_input_fail(in, "\"ref\" is too long");
    }

    if (!us_utf8_valid(s)) {
        return us_input_fail(in, "\"ref\" is not UTF-8");
    }

    in->ref.len = 0;

    if (us_input_append(in, &in->ref, NULL, len) != 0) {
        return -1;
    }

    in->ref.len = us_json_quote(in->ref.data, s) - in->ref.data;

    return 0;
}


/* the next NAME=VALUE, as it was sent; 0: there is none */

static int
us_input_form_field(us_str_t *name, us_str_t *value, uint8_t **p,
    uint8_t *end)
{
    uint8_t  *start, *eq, *last;

    start = *p;

    if (start >= end) {
        return 0;
    }

    last = memchr(start, '&', end - start);

    if (last == NULL) {
        last = end;

        /* what an editor or echo puts behind the last value */

        while (end - start > 0 && (end[-1] == '\n' || end[-1] == '\r')) {
            end--;
        }
    }

    *p = last + 1;

    if (last > end) {
        last = end;
    }

    eq = memchr(start, '=', last - start);

    if (eq == NULL) {
        eq = last;
    }

    name->data = start;
    name->len = eq - start;

    value->data = eq < last ? eq + 1 : last;
    value->len = last - value->data;

    return 1;
}


size_t
us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len)
{
    int             i, n, c;
    uint8_t        *d;
    const uint8_t  *last;

    d = dst;
    last = src + len;

    while (src < last) {

        if (*src == '+') {
            *d++ = ' ';
            src++;
            continue;
        }

        if (*src != '%' || last - src < 3) {
            *d++ = *src++;
            continue;
        }

        n = 0;

        for (i = 1; i < 3; i++) {
            c = src[i];

            if (c >= '0' && c <= '9') {
                n = n * 16 + c - '0';

            } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
                n = n * 16 + (c | 0x20) - 'a' + 10;

            } else {
                break;
            }
        }

        if (i < 3) {
            /* not an escape: it stays as it is */
            *d++ = *src++;
            continue;
        }

        *d++ = n;
        src += 3;
    }

    return d - dst;
}
