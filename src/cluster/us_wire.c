
/*
 * See us_wire.h.
 */


#include "us_wire.h"


/* columns of a line, at most: those of us_wire_line() */
#define US_WIRE_COLUMNS  6


/* the columns of the line at the beginning of text; its bytes, or 0 */

static size_t
us_wire_split(us_str_t text, us_str_t c[US_WIRE_COLUMNS], unsigned *n)
{
    const uint8_t  *p, *tab, *end;

    p = text.data;
    end = text.len ? memchr(p, '\n', text.len) : NULL;
    tab = end;

    for (*n = 0; tab && *n < US_WIRE_COLUMNS; p = tab + 1) {
        tab = memchr(p, '\t', end - p);
        c[(*n)++] = (us_str_t) { (tab ? tab : end) - p, p };
    }

    return end && tab == NULL ? (size_t) (end + 1 - text.data) : 0;
}


static int
us_wire_is(us_str_t text, us_str_t word)
{
    return text.len == word.len
           && memcmp(text.data, word.data, word.len) == 0;
}


/* up to 19 digits, so that no number is too large */

static int
us_wire_number(us_str_t text, uint64_t *n)
{
    size_t    i;
    unsigned  digit;
    uint64_t  number;

    number = 0;

    for (i = 0; i < text.len; i++) {
        digit = text.data[i] - (unsigned) '0';

        if (digit > 9) {
            return 0;
        }

        number = number * 10 + digit;
    }

    *n = number;

    return i >= 1 && i <= 19;
}


/* "-" is `none` */

static int
us_wire_or_none(us_str_t text, uint64_t none, uint64_t *n)
{
    if (us_wire_is(text, us_string("-"))) {
        *n = none;
        return 1;
    }

    return us_wire_number(text, n);
}


static int
us_wire_status(us_str_t text, us_answer_t *status)
{
    *status = us_answer_parse(text);

    return *status != US_ANSWER_NONE;
}


size_t
us_wire_line(us_str_t text, us_wire_columns_t columns, us_wire_line_t *line)
{
    size_t           len;
    us_str_t         c[US_WIRE_COLUMNS];
    unsigned         n;
    const us_str_t  *next;

    line->site = US_WIRE_NO_SITE;
    line->stored = US_ANSWER_NONE;
    line->time = 0;

    len = us_wire_split(text, c, &n);

    if (len == 0 || n != 3u + columns.sites + columns.times + columns.stored
        || !us_wire_or_none(c[0], US_WIRE_NO_ID, &line->id)
        || !us_wire_status(c[1], &line->status))
    {
        return 0;
    }

    line->text = c[2];
    next = &c[3];

    if (columns.sites) {
        line->site = us_wire_is(*next, us_string("site-known"))
                     ? US_WIRE_SITE_KNOWN
                     : us_wire_is(*next, us_string("site-new"))
                     ? US_WIRE_SITE_NEW : US_WIRE_NO_SITE;

        if (line->site == US_WIRE_NO_SITE
            && !us_wire_is(*next, us_string("-")))
        {
            return 0;
        }

        next++;
    }

    if (columns.times && !us_wire_or_none(*next++, 0, &line->time)) {
        return 0;
    }

    return columns.stored && !us_wire_status(*next, &line->stored)
           && !us_wire_is(*next, us_string("-")) ? 0 : len;
}


size_t
us_wire_list_line(us_str_t text, us_wire_columns_t columns,
    us_wire_line_t *line)
{
    int       none;
    size_t    len;
    us_str_t  c[US_WIRE_COLUMNS];
    unsigned  n;

    line->status = US_ANSWER_SEEN;
    line->site = US_WIRE_NO_SITE;
    line->stored = US_ANSWER_NONE;
    line->time = 0;

    len = us_wire_split(text, c, &n);

    if (len == 0 || n < 2 || !us_wire_number(c[0], &line->id)) {
        return 0;
    }

    line->text = c[1];
    none = us_wire_is(c[1], us_string("-"));

    if (none && !columns.urls) {
        return n == 3 && us_wire_status(c[2], &line->status) ? len : 0;
    }

    if (none) {
        line->status = US_ANSWER_DELETED;
    }

    return n == 2u + columns.times
           && (!columns.times || us_wire_or_none(c[2], 0, &line->time))
           ? len : 0;
}


/* a summary is one line, and all of text: its words, after "#" */

static int
us_wire_words(us_str_t text, us_str_t *words)
{
    us_str_t  mark;

    return us_str_cut(&text, '\n', words) && text.len == 0
           && us_str_cut(words, ' ', &mark) && us_wire_is(mark, us_string("#"));
}


static int
us_wire_figure(us_str_t word, us_str_t name, us_str_t *value)
{
    us_str_t  key;

    *value = word;

    return us_str_cut(value, '=', &key) && us_wire_is(key, name);
}


int
us_wire_next(us_str_t text, uint64_t *next)
{
    us_str_t  words, value;

    return us_wire_words(text, &words)
           && us_wire_figure(words, us_string("next"), &value)
           && us_wire_number(value, next);
}


int
us_wire_summary(us_str_t text, us_wire_summary_t *s)
{
    int       more;
    us_str_t  words, word, value;

    s->erasure = 0;

    if (!us_wire_words(text, &words)) {
        return 0;
    }

    do {
        more = us_str_cut(&words, ' ', &word);

        if (us_wire_figure(word, us_string("erasure"), &value)
            && !us_wire_or_none(value, 0, &s->erasure))
        {
            return 0;
        }

    } while (more && !us_wire_figure(word, us_string("next_id"), &value));

    return more && us_wire_or_none(value, US_WIRE_NO_ID, &s->next_id)
           && us_wire_figure(words, us_string("epoch"), &value)
           && us_wire_number(value, &s->epoch);
}


int
us_wire_again(const us_wire_end_t *end)
{
    return end->refused
           || (end->status ? end->reads && end->status == 503
                           : end->reads || !end->sent);
}


int
us_wire_unsure(const us_wire_end_t *end)
{
    if (end->reads || end->refused || !end->sent) {
        return 0;
    }

    switch (end->code) {

    /* what was refused for itself was not done; but for the end of a batch */

    case 507:
        return 0;

    /*
     * A set was dropped: what was done before is in the problem, unless that
     * was cut.
     */

    case 404:
        return end->status == 0
               || (end->text.len
                   && memmem(end->text.data, end->text.len, "\"results\"", 9));

    case 408:
    case 413:
        return 1;

    default:
        return end->code < 400 || end->code >= 500;
    }
}


unsigned
us_wire_node(const us_wire_end_t *end, unsigned node, unsigned first)
{
    if (end->refused || end->status >= 500) {
        return first;
    }

    return end->status ? node : node + 1;
}
