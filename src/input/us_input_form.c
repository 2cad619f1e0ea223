
/*
 * Forms: url=U&url=U&base=B&ref=R.  See us_input.h.
 *
 * The first pass finds the base, which may come after its URLs, and counts
 * them.  Values are decoded in place.  A body that begins with none of the
 * names is read as text: `curl --data-binary @urls.txt` calls a list of URLs a
 * form.
 */


#include "us_input_private.h"
#include "us_json_quote.h"
#include "../us_text.h"


/* what a field costs, however short it is: as much as so many bytes */
#define US_INPUT_FORM_FIELD  16


static us_input_rc_t us_input_form_begins(us_input_t *in);
static us_input_rc_t us_input_form_read(us_input_t *in);
static us_input_rc_t us_input_form_base(us_input_t *in, us_str_t value);
static us_input_rc_t us_input_form_ref(us_input_t *in, us_str_t value);
static us_input_rc_t us_input_form_item(us_input_t *in);
static us_input_rc_t us_input_form_field(us_input_t *in, us_str_t *name,
    us_str_t *value);


us_input_rc_t
us_input_form(us_input_t *in)
{
    us_input_rc_t  rc;

    if (!in->read) {

        if (!in->form) {
            rc = us_input_form_begins(in);

            if (rc != US_INPUT_ITEM) {
                return rc;
            }

            if (!in->form) {
                in->format = US_INPUT_TEXT;
                return us_input_text(in);
            }
        }

        if (!in->begun) {
            rc = us_input_keep(in);

            if (rc != US_INPUT_ITEM) {
                return rc;
            }

            /* line ends that an editor or echo appends to the last value */

            while (in->kept.data[in->kept.len - 1] == '\n'
                   || in->kept.data[in->kept.len - 1] == '\r')
            {
                in->kept.len--;
            }

            in->begun = 1;
            in->field_at = in->kept.data;
        }

        rc = us_input_form_read(in);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        in->read = 1;
        in->field_at = in->kept.data;
    }

    return us_input_form_item(in);
}


/*
 * Keeps bytes as long as they may become a name, which has no line end in it.
 * US_INPUT_ITEM: it is known whether this is a form.
 */

static us_input_rc_t
us_input_form_begins(us_input_t *in)
{
    int          may;
    size_t       i, len;
    const char  *name;

    static const char  *const names[] = { "url=", "base=", "ref=", "id=" };

    while (in->p < in->last) {
        may = 0;
        len = in->kept.len;

        for (i = 0; i < (in->ids ? 4 : 3); i++) {
            name = names[i];

            if ((len == 0 || strncmp(name, (char *) in->kept.data, len) == 0)
                && (uint8_t) name[len] == *in->p)
            {
                may = 1;
                in->form = (name[len + 1] == '\0');
            }
        }

        if (!may) {
            return US_INPUT_ITEM;
        }

        if (us_input_append(in, &in->kept, in->p++, 1) != 0) {
            return US_INPUT_ERROR;
        }

        if (in->form) {
            return US_INPUT_ITEM;
        }
    }

    return in->ended ? US_INPUT_ITEM : US_INPUT_MORE;
}


static us_input_rc_t
us_input_form_read(us_input_t *in)
{
    us_str_t       name, value;
    us_input_rc_t  rc;

    for ( ;; ) {
        rc = us_input_form_field(in, &name, &value);

        if (rc == US_INPUT_ITEM && us_input_is(name, "base")) {
            rc = us_input_form_base(in, value);

        } else if (rc == US_INPUT_ITEM && us_input_is(name, "ref")) {
            rc = us_input_form_ref(in, value);

        } else if (rc == US_INPUT_ITEM && us_input_is_item(in, name)) {
            in->known++;
        }

        if (rc == US_INPUT_MORE) {
            break;
        }

        if (rc != US_INPUT_ITEM) {
            return rc;
        }
    }

    if (us_input_has(in, US_INPUT_F_REF) && in->known > 1) {
        return us_input_fail(in, "\"ref\" is for a single URL in a form");
    }

    if (in->known == 0 && in->have) {
        return us_input_fail(in, "no \"url\"");
    }

    in->single = (in->known == 1);

    return US_INPUT_ITEM;
}


static us_input_rc_t
us_input_form_base(us_input_t *in, us_str_t value)
{
    if (us_input_has(in, US_INPUT_F_BASE)) {
        return us_input_fail(in, "more than one \"base\"");
    }

    in->have |= 1 << US_INPUT_F_BASE;

    if (value.len > 3 * in->max) {
        in->too_long = 1;
        return US_INPUT_ITEM;
    }

    if (us_input_append(in, &in->base, value.data, value.len) != 0) {
        return US_INPUT_ERROR;
    }

    in->base.len = us_input_unescape(in->base.data, in->base.data,
                                     in->base.len);
    in->too_long = (in->base.len > in->max);

    return US_INPUT_ITEM;
}


/* the ref of a form is a JSON string */

static us_input_rc_t
us_input_form_ref(us_input_t *in, us_str_t value)
{
    size_t    len;
    us_str_t  s;

    if (us_input_has(in, US_INPUT_F_REF)) {
        return us_input_fail(in, "more than one \"ref\"");
    }

    in->have |= 1 << US_INPUT_F_REF;

    if (value.len > 3 * US_INPUT_REF) {
        return us_input_fail(in, "\"ref\" is too long");
    }

    if (us_input_append(in, &in->text, value.data, value.len) != 0) {
        return US_INPUT_ERROR;
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

    if (us_input_append(in, &in->ref, NULL, len) != 0) {
        return US_INPUT_ERROR;
    }

    us_json_quote(in->ref.data, s);

    return US_INPUT_ITEM;
}


/* the second pass: values are decoded where they lie */

static us_input_rc_t
us_input_form_item(us_input_t *in)
{
    us_str_t       name, value;
    us_input_rc_t  rc;

    do {
        rc = us_input_form_field(in, &name, &value);

        if (rc != US_INPUT_ITEM) {
            in->done = (rc == US_INPUT_MORE);
            return rc;
        }

    } while (!us_input_is_item(in, name));

    if (!in->too_long && value.len <= 3 * in->max) {
        value.len = us_input_unescape((uint8_t *) value.data, value.data,
                                      value.len);
    }

    if (in->too_long || value.len > in->max) {
        value.len = 0;
        return us_input_emit(in, US_INPUT_LONG, value);
    }

    return us_input_emit(in, us_input_is(name, "id") ? US_INPUT_NUMBER
                                                     : US_INPUT_URL, value);
}


/* the next NAME=VALUE, as it was sent; US_INPUT_MORE: there is none */

static us_input_rc_t
us_input_form_field(us_input_t *in, us_str_t *name, us_str_t *value)
{
    size_t    used;
    uint8_t  *start, *eq, *last, *end;

    start = in->field_at;
    end = in->kept.data + in->kept.len;

    if (start >= end) {
        return US_INPUT_MORE;
    }

    if (in->work == 0) {
        return US_INPUT_REST;
    }

    last = memchr(start, '&', end - start);
    last = last ? last : end;
    eq = memchr(start, '=', last - start);
    eq = eq ? eq : last;

    name->data = start;
    name->len = eq - start;

    value->data = eq < last ? eq + 1 : last;
    value->len = last - value->data;

    used = last - start + US_INPUT_FORM_FIELD;

    in->work -= used < in->work ? used : in->work;
    in->field_at = last + 1;

    return US_INPUT_ITEM;
}


size_t
us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len)
{
    int             high, low;
    uint8_t        *d;
    const uint8_t  *last;

    d = dst;
    last = src + len;

    while (src < last) {

        if (*src == '%' && last - src >= 3) {
            high = us_hex_value(src[1]);
            low = us_hex_value(src[2]);

            if (high != -1 && low != -1) {
                *d++ = (uint8_t) (high << 4 | low);
                src += 3;
                continue;
            }

            /* not an escape: it stays as it is */
        }

        *d++ = *src == '+' ? ' ' : *src;
        src++;
    }

    return d - dst;
}
