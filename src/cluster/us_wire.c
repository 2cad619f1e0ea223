
/*
 * See us_wire.h.
 */


#include "us_wire.h"


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
    int             ended;            /* the line has */
} us_wire_cursor_t;


/* the beginning of a line, and what it has without a column for it */

static void
us_wire_begin(us_wire_cursor_t *c, us_str_t text, us_wire_line_t *line)
{
    c->p = text.data;
    c->end = text.data + text.len;
    c->ended = 0;

    line->site = US_WIRE_NO_SITE;
    line->stored = US_ANSWER_NONE;
    line->time = 0;
}


/* the column that ends at p, and what ends it */

static int
us_wire_column(us_wire_cursor_t *c, const uint8_t *p, us_str_t *column)
{
    if (p == c->end) {
        return 0;
    }

    column->data = c->p;
    column->len = p - c->p;

    c->ended = (*p == '\n');
    c->p = p + 1;

    return 1;
}


/*
 * The next column, of a few bytes.  The last one of a line ends at the newline,
 * after which there is no other.  0: there is none, or it has no end.
 */

static int
us_wire_word(us_wire_cursor_t *c, us_str_t *column)
{
    const uint8_t  *p;

    if (c->ended) {
        return 0;
    }

    for (p = c->p; p < c->end && *p != '\t' && *p != '\n'; p++) {
        /* void */
    }

    return us_wire_column(c, p, column);
}


/* a column of any length */

static int
us_wire_text(us_wire_cursor_t *c, us_str_t *column)
{
    const uint8_t  *p, *tab;

    if (c->ended) {
        return 0;
    }

    if (c->end - c->p >= 2 && *c->p == '=' && c->p[1] <= '\n') {
        return us_wire_word(c, column);
    }

    p = memchr(c->p, '\n', c->end - c->p);

    if (p == NULL) {
        return 0;
    }

    tab = memchr(c->p, '\t', p - c->p);

    return us_wire_column(c, tab ? tab : p, column);
}


/* up to 19 digits, so that no number is too large */

static int
us_wire_number(us_str_t text, uint64_t *n)
{
    size_t  i;

    if (text.len == 0 || text.len > 19) {
        return 0;
    }

    *n = 0;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }

        *n = *n * 10 + (text.data[i] - '0');
    }

    return 1;
}


/* "-" is `none` */

static int
us_wire_or_none(us_str_t text, uint64_t none, uint64_t *n)
{
    if (text.len == 1 && text.data[0] == '-') {
        *n = none;
        return 1;
    }

    return us_wire_number(text, n);
}


/* a column with an id, or "-" */

static int
us_wire_id(us_wire_cursor_t *c, uint64_t *id)
{
    us_str_t        column;
    const uint8_t  *p;

    *id = 0;

    for (p = c->p; p < c->end && *p >= '0' && *p <= '9'; p++) {
        *id = *id * 10 + (*p - '0');
    }

    /* up to 19 digits, so that no number is too large */

    if (p > c->p && p - c->p <= 19) {
        return p < c->end && (*p == '\t' || *p == '\n')
               && us_wire_column(c, p, &column);
    }

    return us_wire_word(c, &column)
           && us_wire_or_none(column, US_WIRE_NO_ID, id);
}


size_t
us_wire_line(us_str_t text, us_wire_columns_t columns, us_wire_line_t *line)
{
    us_str_t          column;
    us_wire_cursor_t  c;

    us_wire_begin(&c, text, line);

    if (!us_wire_id(&c, &line->id)
        || !us_wire_word(&c, &column)
        || !us_wire_text(&c, &line->text))
    {
        return 0;
    }

    line->status = us_answer_parse(column);

    if (line->status == US_ANSWER_NONE) {
        return 0;
    }

    if (columns.sites) {

        if (!us_wire_word(&c, &column)) {
            return 0;
        }

        line->site = us_str_compare(column, us_string("site-known")) == 0
                     ? US_WIRE_SITE_KNOWN
                     : us_str_compare(column, us_string("site-new")) == 0
                     ? US_WIRE_SITE_NEW : US_WIRE_NO_SITE;

        if (line->site == US_WIRE_NO_SITE
            && us_str_compare(column, us_string("-")) != 0)
        {
            return 0;
        }
    }

    if (columns.times
        && (!us_wire_word(&c, &column)
            || !us_wire_or_none(column, 0, &line->time)))
    {
        return 0;
    }

    if (columns.stored) {

        if (!us_wire_word(&c, &column)) {
            return 0;
        }

        line->stored = us_answer_parse(column);

        if (line->stored == US_ANSWER_NONE
            && us_str_compare(column, us_string("-")) != 0)
        {
            return 0;
        }
    }

    return c.ended ? (size_t) (c.p - text.data) : 0;
}


size_t
us_wire_list_line(us_str_t text, us_wire_columns_t columns,
    us_wire_line_t *line)
{
    us_str_t          column;
    us_wire_cursor_t  c;

    us_wire_begin(&c, text, line);
    line->status = US_ANSWER_SEEN;

    if (!us_wire_word(&c, &column) || !us_wire_number(column, &line->id)
        || !us_wire_text(&c, &line->text))
    {
        return 0;
    }

    if (line->text.len == 1 && line->text.data[0] == '-' && columns.urls) {
        line->status = US_ANSWER_DELETED;

    } else if (line->text.len == 1 && line->text.data[0] == '-') {

        if (!us_wire_word(&c, &column)) {
            return 0;
        }

        line->status = us_answer_parse(column);

        if (line->status == US_ANSWER_NONE) {
            return 0;
        }

    } else if (columns.times
               && (!us_wire_word(&c, &column)
                   || !us_wire_or_none(column, 0, &line->time)))
    {
        return 0;
    }

    return c.ended ? (size_t) (c.p - text.data) : 0;
}


int
us_wire_next(us_str_t text, uint64_t *next)
{
    us_str_t  value;

    if (text.len < 9 || memcmp(text.data, "# next=", 7) != 0
        || text.data[text.len - 1] != '\n')
    {
        return 0;
    }

    value.data = text.data + 7;
    value.len = text.len - 8;

    return us_wire_number(value, next);
}


int
us_wire_summary(us_str_t text, uint64_t *next_id, uint64_t *epoch)
{
    us_str_t        value;
    const uint8_t  *p, *end;

    if (text.len < 2 || text.data[0] != '#'
        || text.data[text.len - 1] != '\n')
    {
        return 0;
    }

    end = text.data + text.len - 1;

    if (memchr(text.data, '\n', end - text.data)) {
        return 0;
    }

    p = memmem(text.data, end - text.data, " next_id=", 9);

    if (p == NULL) {
        return 0;
    }

    value.data = p + 9;
    p = memchr(value.data, ' ', end - value.data);

    if (p == NULL || end - p < 8 || memcmp(p, " epoch=", 7) != 0) {
        return 0;
    }

    value.len = p - value.data;

    if (!us_wire_or_none(value, US_WIRE_NO_ID, next_id)) {
        return 0;
    }

    value.data = p + 7;
    value.len = end - value.data;

    return us_wire_number(value, epoch);
}


uint64_t
us_wire_erasure(us_str_t text)
{
    us_str_t        value;
    uint64_t        number;
    const uint8_t  *p, *end;

    p = memmem(text.data, text.len, " erasure=", 9);

    if (p == NULL) {
        return 0;
    }

    value.data = p + 9;
    end = memchr(value.data, ' ', text.data + text.len - value.data);

    if (end == NULL) {
        return 0;
    }

    value.len = end - value.data;

    return us_wire_number(value, &number) ? number : 0;
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
