
/*
 * The fast path.  See us_fast.h.
 *
 *   http:// www.example.com /a/b.html ?q=1&r=2 #f
 *   |       |               |          |
 *   8 bytes 16 at a time: bytes that   16 at a time: bytes that want
 *   compared end a host                attention, one by one in order
 *
 * A block of 16 bytes becomes a mask of bits.  The last block overlaps the one
 * before it, so that no byte outside of the input is read.  Inputs shorter than
 * a block go to the parser.
 *
 * These bytes set a bit: those of a percent-encode set, "%", "?", "#"; a "."
 * that follows a "/"; a "&" that follows a "&".  If one of them is not as it is
 * in a canonical URL, us_whatwg_parse() takes over.
 */


#include "us_fast.h"
#include "../us_vector.h"
#include "us_percent.h"


#define US_BLOCK  16


/* without it, the compiler keeps the state of a scan in memory */
#define us_inline  inline __attribute__((always_inline))


typedef struct {
    unsigned  attention;
    unsigned  slash;
    unsigned  dot;
    unsigned  amp;
} us_masks_t;


/* what follows the host */

typedef struct {
    const uint8_t  *end;              /* less a fragment that is dropped */
    const uint8_t  *search;           /* at the '?', or NULL */
    const uint8_t  *hash;             /* at the '#', or NULL */
    unsigned        steps;
    unsigned        set;              /* bytes that may not be there */
} us_scan_t;


typedef enum {
    US_FAST_ON = 0,                   /* the text is canonical so far */
    US_FAST_DONE,                     /* and that is all */
    US_FAST_NO                        /* the text has to be parsed */
} us_fast_t;


static inline us_bytes_t
us_equal(us_bytes_t c, uint8_t with)
{
    return (us_bytes_t) (c == with);
}


static inline void
us_masks(const uint8_t *p, us_masks_t *m)
{
    us_bytes_t  c;

    c = us_load_bytes(p);

    m->attention = us_bits16(~us_within(c, '!', 'z')   /* C0, space, {|} ~ */
                             | us_equal(c | 1, '#')    /* " # */
                             | us_equal(c | 1, '?')    /* > ? */
                             | us_equal(c | 2, '\'')   /* % ' */
                             | us_equal(c | 2, '>')    /* < > */
                             | us_within(c, '[', '^')
                             | us_equal(c, '`'));
    m->slash = us_bits16(us_equal(c, '/'));
    m->dot = us_bits16(us_equal(c, '.'));
    m->amp = us_bits16(us_equal(c, '&'));
}


/* bytes that are not a-z 0-9 - . _ ; and dots */

static inline unsigned
us_host_masks(const uint8_t *p, unsigned *dot)
{
    us_bytes_t  c;

    c = us_load_bytes(p);
    *dot = us_bits16(us_equal(c, '.'));

    return us_bits16((us_within(c, '-', '9') & ~us_equal(c, '/'))
                     | us_within(c, 'a', 'z') | us_equal(c, '_')) ^ 0xffff;
}


/* where the host ends; NULL: the text has to be parsed */

static inline const uint8_t *
us_fast_host(const uint8_t *p, const uint8_t *end)
{
    unsigned        stop, dot, shift;
    const uint8_t  *host, *label;

    host = p;
    label = p;

    for ( ;; ) {

        shift = 0;

        if (end - p < US_BLOCK) {
            shift = US_BLOCK - (end - p);
            p = end - US_BLOCK;
        }

        stop = us_host_masks(p, &dot) >> shift << shift;
        dot = dot >> shift << shift;

        if (stop) {
            dot &= (stop & -stop) - 1;
        }

        if (dot) {
            label = p + (32 - __builtin_clz(dot));
        }

        if (stop) {
            p += __builtin_ctz(stop);
            break;
        }

        p += US_BLOCK;

        if (p == end) {
            break;
        }
    }

    /* a last label that begins with a digit may make this an IPv4 address */

    if (p == host || label == p || (uint8_t) (*label - '0') <= 9
        || (p < end && *p != '/'))
    {
        return NULL;
    }

    return p;
}


/* a triplet in its unique form; what is not decoded there may stay elsewhere */

static inline int
us_fast_triplet(const uint8_t *p, const uint8_t *end, unsigned steps)
{
    uint8_t  c;

    if (!(steps & US_STEP_PERCENT)) {

        /* only %2e may be (part of) a dot segment */

        return end - p < 3 || p[1] != '2' || (p[2] | 0x20) != 'e';
    }

    if (end - p < 3 || us_hex[p[1]] < 0 || us_hex[p[2]] < 0
        || p[1] >= 'a' || p[2] >= 'a')
    {
        return 0;
    }

    c = (uint8_t) (us_hex[p[1]] << 4 | us_hex[p[2]]);

    return !us_is(c, US_CH_UNRESERVED);
}


static int
us_fast_fragment(const uint8_t *p, const uint8_t *end)
{
    while (p < end && !us_is(*p, US_SET_FRAGMENT)) {
        p++;
    }

    return p == end;
}


/* scheme and host: the offsets up to the path, where it begins, or NULL */

static inline const uint8_t *
us_fast_origin(us_str_t in, us_url_t *url)
{
    const uint8_t  *p;

    p = in.data;

    if (memcmp(p, "http", 4) != 0) {
        return NULL;
    }

    url->protocol_end = 5 + (p[4] == 's');
    p += url->protocol_end;

    if (p[-1] != ':' || p[0] != '/' || p[1] != '/') {
        return NULL;
    }

    url->username_end = url->protocol_end + 2;
    url->host_start = url->username_end;

    p = us_fast_host(p + 2, in.data + in.len);

    if (p == NULL) {
        return NULL;
    }

    url->host_end = p - in.data;
    url->pathname_start = url->host_end;
    url->port = US_URL_OMITTED;
    url->search_start = US_URL_OMITTED;
    url->hash_start = US_URL_OMITTED;

    return p;
}


/* a byte that needs a closer look */

static us_inline us_fast_t
us_fast_byte(us_scan_t *s, const uint8_t *c)
{
    switch (*c) {

    case '.':
        return s->search == NULL
               && (c + 1 == s->end || c[1] == '.' || c[1] == '/'
                   || c[1] == '%' || c[1] == '?' || c[1] == '#')
               ? US_FAST_NO : US_FAST_ON;

    case '&':
        return s->search && (s->steps & US_STEP_QUERY) ? US_FAST_NO
                                                       : US_FAST_ON;

    case '?':
        if (s->search) {
            return US_FAST_ON;
        }

        if ((s->steps & US_STEP_QUERY) && c + 1 < s->end && c[1] == '&') {
            return US_FAST_NO;
        }

        s->search = c;
        s->set = s->steps & US_STEP_PERCENT ? US_SET_UNIQUE_QUERY
                                            : US_SET_SPECIAL_QUERY;
        return US_FAST_ON;

    case '%':
        return us_fast_triplet(c, s->end, s->steps) ? US_FAST_ON : US_FAST_NO;

    case '#':
        if (s->steps & US_STEP_FRAGMENT) {
            s->end = c;
            return US_FAST_DONE;
        }

        if (!us_fast_fragment(c + 1, s->end)) {
            return US_FAST_NO;
        }

        s->hash = c;
        return US_FAST_DONE;

    default:
        return us_is(*c, s->set) ? US_FAST_NO : US_FAST_ON;
    }
}


/* path, query and fragment: 1; 0: they have to be parsed */

static us_inline int
us_fast_scan(us_scan_t *s, const uint8_t *p)
{
    unsigned    shift, carry_slash, carry_amp, bits;
    us_fast_t   rc;
    us_masks_t  m;

    carry_slash = 0;
    carry_amp = 0;

    while (p < s->end) {

        shift = 0;

        if (s->end - p < US_BLOCK) {
            shift = US_BLOCK - (s->end - p);
            p = s->end - US_BLOCK;
        }

        us_masks(p, &m);

        bits = (m.attention | (m.dot & (m.slash << 1 | carry_slash))
                | (m.amp & (m.amp << 1 | carry_amp))) >> shift << shift;

        for ( /* void */ ; bits; bits &= bits - 1) {
            rc = us_fast_byte(s, p + __builtin_ctz(bits));

            if (rc != US_FAST_ON) {
                return rc == US_FAST_DONE;
            }
        }

        carry_slash = m.slash >> (US_BLOCK - 1);
        carry_amp = m.amp >> (US_BLOCK - 1);

        p += US_BLOCK;
    }

    return 1;
}


int
us_fast(us_str_t in, unsigned steps, uint8_t *out, us_url_t *url)
{
    us_scan_t       s;
    const uint8_t  *p, *c;

    if (in.len < US_BLOCK || in.len >= US_URL_MAX) {
        return 0;
    }

    p = us_fast_origin(in, url);

    if (p == NULL) {
        return 0;
    }

    if (p == in.data + in.len) {
        memcpy(out, in.data, in.len);
        out[in.len] = '/';

        url->href.data = out;
        url->href.len = in.len + 1;

        return 1;
    }

    s.end = in.data + in.len;
    s.search = NULL;
    s.hash = NULL;
    s.steps = steps;
    s.set = US_CH_SLASH
            | (steps & US_STEP_PERCENT ? US_SET_UNIQUE_PATH : US_SET_PATH);

    if (!us_fast_scan(&s, p)) {
        return 0;
    }

    if (s.hash) {
        url->hash_start = s.hash - in.data;
    }

    if (s.search) {
        c = s.hash ? s.hash : s.end;

        /* an empty query, or an empty piece at its end */

        if ((steps & US_STEP_QUERY)
            && (c[-1] == '&' || (c[-1] == '?' && c - 1 == s.search)))
        {
            return 0;
        }

        url->search_start = s.search - in.data;
    }

    url->href.data = in.data;
    url->href.len = s.end - in.data;

    return 1;
}
