
/*
 * Byte classes and percent-encoding.  See us_percent.h.
 *
 * The table is computed by the compiler from the definitions of the standard,
 * so that the source shows the definitions and not their result.
 */


#include "us_percent.h"


#define us_lower(c)  ((c) >= 'a' && (c) <= 'z')
#define us_upper(c)  ((c) >= 'A' && (c) <= 'Z')
#define us_digit(c)  ((c) >= '0' && (c) <= '9')
#define us_alnum(c)  (us_lower(c) || us_upper(c) || us_digit(c))

#define us_c0(c)         ((c) <= 0x1f || (c) >= 0x7f)
#define us_fragment(c)   (us_c0(c) || (c) == ' ' || (c) == '"'                \
                          || (c) == '<' || (c) == '>' || (c) == '`')
#define us_query(c)      (us_c0(c) || (c) == ' ' || (c) == '"' || (c) == '#'  \
                          || (c) == '<' || (c) == '>')
#define us_special(c)    (us_query(c) || (c) == '\'')
#define us_path(c)       (us_query(c) || (c) == '?' || (c) == '^'             \
                          || (c) == '`' || (c) == '{' || (c) == '}')
#define us_userinfo(c)   (us_path(c) || (c) == '/' || (c) == ':'              \
                          || (c) == ';' || (c) == '=' || (c) == '@'           \
                          || (c) == '[' || (c) == '\\' || (c) == ']'          \
                          || (c) == '|')
#define us_unique(c)     (us_query(c) || (c) == '^' || (c) == '`'             \
                          || (c) == '{' || (c) == '|' || (c) == '}'           \
                          || (c) == '[' || (c) == '\\' || (c) == ']'          \
                          || (c) == '%')

#define us_scheme(c)     (us_alnum(c) || (c) == '+' || (c) == '-'             \
                          || (c) == '.')
#define us_host(c)       (us_lower(c) || us_digit(c) || (c) == '-'            \
                          || (c) == '.' || (c) == '_')
#define us_no_host(c)    ((c) == 0 || (c) == '\t' || (c) == '\n'              \
                          || (c) == '\r' || (c) == ' ' || (c) == '#'          \
                          || (c) == '/' || (c) == ':' || (c) == '<'           \
                          || (c) == '>' || (c) == '?' || (c) == '@'           \
                          || (c) == '[' || (c) == '\\' || (c) == ']'          \
                          || (c) == '^' || (c) == '|')
#define us_no_domain(c)  (us_no_host(c) || (c) <= 0x1f || (c) == '%'          \
                          || (c) == 0x7f)
#define us_unreserved(c) (us_alnum(c) || (c) == '-' || (c) == '.'             \
                          || (c) == '_' || (c) == '~')
#define us_end(c)        ((c) == '/' || (c) == '\\' || (c) == '?'             \
                          || (c) == '#' || (c) == '@' || (c) == ':')

#define us_class(c)                                                           \
    ((us_c0(c) ? US_SET_C0 : 0)                                              \
    | (us_fragment(c) ? US_SET_FRAGMENT : 0)                                  \
    | (us_query(c) ? US_SET_QUERY : 0)                                        \
    | (us_special(c) ? US_SET_SPECIAL_QUERY : 0)                              \
    | (us_path(c) ? US_SET_PATH : 0)                                          \
    | (us_userinfo(c) ? US_SET_USERINFO : 0)                                  \
    | (us_unique(c) || (c) == '?' ? US_SET_UNIQUE_PATH : 0)                   \
    | (us_unique(c) || (c) == '\'' ? US_SET_UNIQUE_QUERY : 0)                 \
    | ((c) == '/' || (c) == '\\' ? US_CH_SLASH : 0)                           \
    | (us_scheme(c) ? US_CH_SCHEME : 0)                                       \
    | (us_host(c) ? US_CH_HOST : 0)                                           \
    | (us_no_host(c) ? US_CH_NO_HOST : 0)                                     \
    | (us_no_domain(c) ? US_CH_NO_DOMAIN : 0)                                 \
    | (us_unreserved(c) ? US_CH_UNRESERVED : 0)                               \
    | (us_end(c) ? US_CH_END : 0)                                             \
    | ((c) == '&' ? US_CH_AMP : 0))

#define us_row4(c)                                                            \
    us_class(c), us_class((c) + 1), us_class((c) + 2), us_class((c) + 3)
#define us_row(c)                                                             \
    us_row4(c), us_row4((c) + 4), us_row4((c) + 8), us_row4((c) + 12)


const uint16_t  us_chars[256] = {
    us_row(0x00), us_row(0x10), us_row(0x20), us_row(0x30),
    us_row(0x40), us_row(0x50), us_row(0x60), us_row(0x70),
    us_row(0x80), us_row(0x90), us_row(0xa0), us_row(0xb0),
    us_row(0xc0), us_row(0xd0), us_row(0xe0), us_row(0xf0)
};


const int8_t  us_hex[256] = {
    [0 ... '0' - 1] = -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ['9' + 1 ... 'A' - 1] = -1, 10, 11, 12, 13, 14, 15,
    ['F' + 1 ... 'a' - 1] = -1, 10, 11, 12, 13, 14, 15,
    ['f' + 1 ... 255] = -1
};

static const char  us_digits[] = "0123456789ABCDEF";


uint8_t *
us_percent_byte(uint8_t *out, uint8_t c)
{
    *out++ = '%';
    *out++ = us_digits[c >> 4];
    *out++ = us_digits[c & 15];

    return out;
}


uint8_t *
us_percent_encode(uint8_t *out, const uint8_t *p, const uint8_t *end,
    unsigned set)
{
    for ( /* void */ ; p < end; p++) {
        if (us_is(*p, set)) {
            out = us_percent_byte(out, *p);

        } else {
            *out++ = *p;
        }
    }

    return out;
}


/* out may be p: what is written is never longer than what was read */

uint8_t *
us_percent_decode(uint8_t *out, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (*p == '%' && end - p > 2 && us_hex[p[1]] >= 0
            && us_hex[p[2]] >= 0)
        {
            *out++ = (uint8_t) (us_hex[p[1]] << 4 | us_hex[p[2]]);
            p += 3;

        } else {
            *out++ = *p++;
        }
    }

    return out;
}


/*
 * Writes the unique form of what begins with the '%' at p, returns the number
 * of bytes read: 3, or 1 if this is no triplet.
 */

size_t
us_percent_triplet(uint8_t **out, const uint8_t *p, const uint8_t *end)
{
    uint8_t  c;

    if (end - p < 3 || us_hex[p[1]] < 0 || us_hex[p[2]] < 0) {
        *out = us_percent_byte(*out, '%');
        return 1;
    }

    c = (uint8_t) (us_hex[p[1]] << 4 | us_hex[p[2]]);

    if (us_is(c, US_CH_UNRESERVED)) {
        *(*out)++ = c;

    } else {
        *out = us_percent_byte(*out, c);
    }

    return 3;
}
