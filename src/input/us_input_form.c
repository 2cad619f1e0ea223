
/*
 * Forms: url=U&url=U&base=B&ref=R.  See us_input.h.
 *
 * A form is kept until its end, in in->carry, since a base may come after its
 * URLs.  Values are decoded in place.  A body that begins with none of the
 * names is read as text.
 */


#include "us_input_private.h"
#include "us_json_quote.h"


/* the longest of the names, "base=", distinguishes a form from text */
#define US_INPUT_FORM_SNIFF  (sizeof("base=") - 1)


static int us_input_form_sniff(us_input_t *in);
static int us_input_form_begins(us_input_t *in, const char *name);
static int us_input_form_begin(us_input_t *in);
static int us_input_form_item(us_input_t *in);
static int us_input_form_ref(us_input_t *in, us_str_t value);
static int us_input_form_field(us_str_t *name, us_str_t *value, uint8_t **p,
    uint8_t *end);


int
us_input_form(us_input_t *in)
{
    if (!in->sniffed) {
        if (!us_input_form_sniff(in)) {
            return 0;
        }

        if (in->format == US_INPUT_TEXT) {
            return us_input_text(in);
        }

        if (us_input_append(in, &in->carry, in->sniff, in->nsniff) != 0) {
            return -1;
        }
    }

    if (in->p < in->last) {
        if (us_input_append(in, &in->carry, in->p, in->last - in->p) != 0) {
            return -1;
        }

        in->p = in->last;
    }

    if (!in->ended) {
        return 0;
    }

    if (in->field_at == NULL && us_input_form_begin(in) != 0) {
        return -1;
    }

    return us_input_form_item(in);
}


/*
 * 1: it is known whether this is a form.  If it is not, but text, the bytes
 * that show it are the piece now, and what followed them is next: `curl
 * --data-binary @urls.txt` calls a list of URLs a form.
 */

static int
us_input_form_sniff(us_input_t *in)
{
    while (in->nsniff < US_INPUT_FORM_SNIFF && in->p < in->last) {
        in->sniff[in->nsniff++] = *in->p++;
    }

    if (in->nsniff < US_INPUT_FORM_SNIFF && !in->ended) {
        return 0;
    }

    in->sniffed = 1;

    if (us_input_form_begins(in, "url=") || us_input_form_begins(in, "base=")
        || us_input_form_begins(in, "ref=")
        || (in->ids && us_input_form_begins(in, "id=")))
    {
        return 1;
    }

    in->format = US_INPUT_TEXT;

    in->rest = in->p;
    in->rest_last = in->last;
    in->p = in->sniff;
    in->last = in->sniff + in->nsniff;

    return 1;
}


static int
us_input_form_begins(us_input_t *in, const char *name)
{
    size_t  len;

    len = strlen(name);

    return in->nsniff >= len && memcmp(in->sniff, name, len) == 0;
}


/* the first pass, since a base may come after its URLs; 0 or -1 */

static int
us_input_form_begin(us_input_t *in)
{
    uint8_t   *p, *end;
    us_str_t   name, value;

    p = in->carry.data;
    end = p + in->carry.len;

    while (us_input_form_field(&name, &value, &p, end)) {

        if (us_input_is(name, "base")) {
            if (in->has_base) {
                return us_input_fail(in, "more than one \"base\"");
            }

            in->has_base = 1;

            if (us_input_append(in, &in->base, value.data, value.len) != 0) {
                return -1;
            }

            in->base.len = us_input_unescape(in->base.data, in->base.data,
                                             in->base.len);

        } else if (us_input_is(name, "ref")) {
            if (in->has_ref) {
                return us_input_fail(in, "more than one \"ref\"");
            }

            in->has_ref = 1;

            if (us_input_form_ref(in, value) != 0) {
                return -1;
            }

        } else if (us_input_is_item(in, name)) {
            in->known++;
        }
    }

    if (in->has_ref && in->known > 1) {
        return us_input_fail(in, "\"ref\" is for a single URL in a form");
    }

    if (in->known == 0 && (in->has_ref || in->has_base)) {
        return us_input_fail(in, "no \"url\"");
    }

    in->single = (in->known == 1);
    in->field_at = in->carry.data;

    return 0;
}


/* the second: values are decoded where they lie */

static int
us_input_form_item(us_input_t *in)
{
    uint8_t         *end;
    us_str_t         name, value;
    us_input_buf_t  *base, *ref;

    base = in->has_base ? &in->base : NULL;
    ref = in->has_ref ? &in->ref : NULL;

    end = in->carry.data + in->carry.len;

    while (us_input_form_field(&name, &value, &in->field_at, end)) {

        if (!us_input_is_item(in, name)) {
            continue;
        }

        value.len = us_input_unescape((uint8_t *) value.data, value.data,
                                      value.len);

        if (value.len > in->max || (base && base->len > in->max)) {
            value.len = 0;
            return us_input_emit(in, US_INPUT_LONG, value, NULL, ref);
        }

        return us_input_emit(in, US_INPUT_URL, value, base, ref);
    }

    in->done = 1;

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

        /* line ends that an editor or echo appends to the last value */

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
