
/*
 * Pieces of a query.  See us_query.h.
 */


#include "us_query.h"

#include <stdlib.h>


typedef int (*us_piece_pt)(const void *data, us_str_t piece);


struct us_arg_s {
    us_arg_t         *next;
    size_t            len;
    unsigned          glob;
    uint8_t           name[];
};


/* the name of a piece: up to the '=' or the end */

static us_str_t
us_piece_name(us_str_t piece)
{
    const uint8_t  *eq;

    eq = memchr(piece.data, '=', piece.len);

    if (eq) {
        piece.len = eq - piece.data;
    }

    return piece;
}


static us_str_t
us_piece_next(const uint8_t **p, const uint8_t *end)
{
    us_str_t        piece;
    const uint8_t  *amp;

    amp = memchr(*p, '&', end - *p);

    if (amp == NULL) {
        amp = end;
    }

    piece.data = *p;
    piece.len = amp - *p;

    *p = amp < end ? amp + 1 : end;

    return piece;
}


/* the query has been rewritten up to out: moves what follows, fixes offsets */

static void
us_query_end(us_url_t *url, uint8_t *out, const uint8_t *end)
{
    size_t          gone;
    const uint8_t  *search, *tail;

    search = url->href.data + url->search_start;
    tail = url->href.data + url->href.len;

    if (out == search + 1) {
        out--;
        url->search_start = US_URL_OMITTED;
    }

    gone = end - out;

    memmove(out, end, tail - end);

    url->href.len -= gone;

    if (url->hash_start != US_URL_OMITTED) {
        url->hash_start -= gone;
    }
}


/* drops the pieces for which the function answers 1 */

static void
us_query_filter(us_url_t *url, us_piece_pt drop, const void *data)
{
    uint8_t        *out, *first;
    us_str_t        search, piece;
    const uint8_t  *p, *end;

    search = us_url_search(url);

    if (search.len == 0) {
        return;
    }

    p = search.data + 1;
    end = search.data + search.len;
    first = (uint8_t *) p;

    /* nothing is written until a piece is dropped */

    do {
        out = (uint8_t *) p;

        if (p == end) {
            return;
        }

        piece = us_piece_next(&p, end);

    } while (!drop(data, piece));

    out -= out > first;

    while (p < end) {
        piece = us_piece_next(&p, end);

        if (drop(data, piece)) {
            continue;
        }

        if (out > first) {
            *out++ = '&';
        }

        memmove(out, piece.data, piece.len);
        out += piece.len;
    }

    us_query_end(url, out, end);
}


unsigned
us_query_count(const us_url_t *url)
{
    unsigned        n;
    us_str_t        search;
    const uint8_t  *p, *end;

    search = us_url_search(url);
    p = search.data + (search.len != 0);
    end = search.data + search.len;

    for (n = 0; p < end; /* void */ ) {
        n += us_piece_next(&p, end).len != 0;
    }

    return n;
}


/* '*' stands for any bytes; time is bounded by glob.len * s.len */

int
us_glob(us_str_t glob, us_str_t s)
{
    size_t  g, i, star, mark;

    star = glob.len;
    mark = 0;

    for (g = 0, i = 0; i < s.len; /* void */ ) {

        if (g < glob.len && glob.data[g] == '*') {
            star = g++;
            mark = i;

        } else if (g < glob.len && glob.data[g] == s.data[i]) {
            g++;
            i++;

        } else if (star < glob.len) {
            g = star + 1;
            i = ++mark;

        } else {
            return 0;
        }
    }

    while (g < glob.len && glob.data[g] == '*') {
        g++;
    }

    return g == glob.len;
}


int
us_args_add(us_args_t *args, us_str_t name)
{
    us_arg_t  *arg;

    if (name.len == 0) {
        return -1;
    }

    arg = malloc(sizeof(us_arg_t) + name.len);

    if (arg == NULL) {
        return -1;
    }

    memcpy(arg->name, name.data, name.len);
    arg->len = name.len;
    arg->glob = memchr(name.data, '*', name.len) != NULL;
    arg->next = args->first[name.data[0]];

    args->first[name.data[0]] = arg;

    return 0;
}


void
us_args_free(us_args_t *args)
{
    size_t     i;
    us_arg_t  *arg, *next;

    for (i = 0; i < 256; i++) {
        for (arg = args->first[i]; arg; arg = next) {
            next = arg->next;
            free(arg);
        }
    }
}


static int
us_arg_find(const us_arg_t *arg, us_str_t name)
{
    us_str_t  glob;

    for ( /* void */ ; arg; arg = arg->next) {

        if (arg->glob) {
            glob.data = arg->name;
            glob.len = arg->len;

            if (us_glob(glob, name)) {
                return 1;
            }

        } else if (arg->len == name.len
                   && memcmp(arg->name, name.data, name.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static int
us_args_match(const void *data, us_str_t piece)
{
    us_str_t          name;
    const us_args_t  *args;

    args = data;

    if (piece.len == 0
        || (args->first[piece.data[0]] == NULL && args->first['*'] == NULL))
    {
        return 0;
    }

    name = us_piece_name(piece);

    return name.len != 0 && (us_arg_find(args->first[name.data[0]], name)
                             || us_arg_find(args->first['*'], name));
}


void
us_query_strip(us_url_t *url, const us_args_t *args)
{
    us_query_filter(url, us_args_match, args);
}


static int
us_name_is(us_str_t name, const char *lower, size_t len)
{
    size_t  i;

    if (name.len < len) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if ((name.data[i] | 0x20) != lower[i]) {
            return 0;
        }
    }

    return 1;
}


/*
 * Session ids by name and shape, because names alone hit too much: "sid" only
 * with a value of 16 or more letters and digits.
 */

static int
us_session_match(const void *data, us_str_t piece)
{
    size_t    i;
    uint8_t   c;
    us_str_t  name;

    name = us_piece_name(piece);

    switch (name.len) {

    case 3:
        if (!us_name_is(name, "sid", 3) || piece.len < name.len + 1 + 16) {
            return 0;
        }

        for (i = name.len + 1; i < piece.len; i++) {
            c = piece.data[i] | 0x20;

            if ((uint8_t) (c - 'a') > 25 && (uint8_t) (c - '0') > 9) {
                return 0;
            }
        }

        return 1;

    case 4:
        return us_name_is(name, "cfid", 4);

    case 7:
        return us_name_is(name, "cftoken", 7);

    case 9:
        return us_name_is(name, "phpsessid", 9);

    case 10:
        return us_name_is(name, "jsessionid", 10);

    case 20:
        if (!us_name_is(name, "aspsessionid", 12)) {
            return 0;
        }

        for (i = 12; i < 20; i++) {
            if ((uint8_t) ((name.data[i] | 0x20) - 'a') > 25) {
                return 0;
            }
        }

        return 1;
    }

    return 0;
}


void
us_query_strip_sessions(us_url_t *url)
{
    us_query_filter(url, us_session_match, NULL);
}


static int
us_name_compare(us_str_t a, us_str_t b)
{
    return us_str_compare(us_piece_name(a), us_piece_name(b));
}


/* stable merge sort, bottom up; the result is in ws->piece */

static void
us_pieces_sort(us_query_ws_t *ws, size_t n,
    int (*compare)(us_str_t a, us_str_t b))
{
    size_t     width, from, mid, to, i, j, k;
    us_str_t  *a, *b;

    a = ws->piece;
    b = ws->other;

    for (width = 1; width < n; width *= 2) {

        for (from = 0; from < n; from = to) {
            mid = from + width < n ? from + width : n;
            to = mid + width < n ? mid + width : n;

            i = from;
            j = mid;

            for (k = from; k < to; k++) {
                if (i < mid && (j == to || compare(a[i], a[j]) <= 0)) {
                    b[k] = a[i++];

                } else {
                    b[k] = a[j++];
                }
            }
        }

        memcpy(a, b, n * sizeof(us_str_t));
    }
}


/* copies the query to ws->text and splits it; 0: too many pieces */

static size_t
us_pieces_split(us_url_t *url, us_query_ws_t *ws)
{
    size_t          n;
    us_str_t        search;
    const uint8_t  *p, *end;

    search = us_url_search(url);

    if (search.len < 2 || search.len > sizeof(ws->text)
        || memchr(search.data, '&', search.len) == NULL)
    {
        return 0;
    }

    memcpy(ws->text, search.data, search.len);

    p = ws->text + 1;
    end = ws->text + search.len;

    for (n = 0; p < end; n++) {
        if (n == US_QUERY_PIECES) {
            return 0;
        }

        ws->piece[n] = us_piece_next(&p, end);
    }

    return n;
}


static void
us_pieces_join(us_url_t *url, us_query_ws_t *ws, size_t n)
{
    size_t     i;
    uint8_t   *out;
    us_str_t   search;

    search = us_url_search(url);
    out = (uint8_t *) search.data + 1;

    for (i = 0; i < n; i++) {
        if (i) {
            *out++ = '&';
        }

        memcpy(out, ws->piece[i].data, ws->piece[i].len);
        out += ws->piece[i].len;
    }

    us_query_end(url, out, search.data + search.len);
}


/* stable by name; only if every piece has a '=', others are not arguments */

void
us_query_sort(us_url_t *url, us_query_ws_t *ws)
{
    size_t  i, n;

    n = us_pieces_split(url, ws);

    for (i = 0; i < n; i++) {
        if (memchr(ws->piece[i].data, '=', ws->piece[i].len) == NULL) {
            return;
        }
    }

    if (n > 1) {
        us_pieces_sort(ws, n, us_name_compare);
        us_pieces_join(url, ws, n);
    }
}


static int
us_address_compare(us_str_t a, us_str_t b)
{
    return (a.data > b.data) - (a.data < b.data);
}


/* the first of equal pieces stays, where it is */

void
us_query_drop_duplicates(us_url_t *url, us_query_ws_t *ws)
{
    size_t  i, n, kept;

    n = us_pieces_split(url, ws);

    if (n < 2) {
        return;
    }

    us_pieces_sort(ws, n, us_str_compare);

    for (kept = 1, i = 1; i < n; i++) {
        if (us_str_compare(ws->piece[i], ws->piece[kept - 1]) != 0) {
            ws->piece[kept++] = ws->piece[i];
        }
    }

    if (kept == n) {
        return;
    }

    us_pieces_sort(ws, kept, us_address_compare);
    us_pieces_join(url, ws, kept);
}
