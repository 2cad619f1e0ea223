
/*
 * Hosts.  See us_host.h; the names are those of the standard.
 *
 *   [p, end) -- '[' --------------------------------> IPv6
 *            -- scheme is not special --------------> opaque host
 *            -- percent-decode -- ASCII: lower-case -+-> forbidden? -> IPv4?
 *                              `- else us_idna.c ----'
 *
 * An ASCII host is only lower-cased; a bad "xn--" label stays as it is (the
 * standard's rule since June 2026).
 */


#include "us_host.h"
#include "us_idna.h"
#include "us_percent.h"

#include "../us_utf8.h"


/* decimal, 0 octal, 0x hexadecimal; values above 2^32 are all the same to us */

static int
us_ipv4_number(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    int       digit;
    unsigned  base;

    if (p == end) {
        return 0;
    }

    base = 10;

    if (end - p > 1 && *p == '0') {
        if ((p[1] | 0x20) == 'x') {
            base = 16;
            p += 2;

        } else {
            base = 8;
            p++;
        }
    }

    for (*v = 0; p < end; p++) {
        digit = us_hex[*p];

        if (digit < 0 || (unsigned) digit >= base) {
            return 0;
        }

        if (*v <= UINT32_MAX) {
            *v = *v * base + digit;
        }
    }

    return 1;
}


static uint8_t *
us_ipv4_write(uint8_t *out, uint32_t ip)
{
    int       shift;
    unsigned  v;

    for (shift = 24; shift >= 0; shift -= 8) {
        v = (ip >> shift) & 255;

        if (v >= 100) {
            *out++ = '0' + v / 100;
        }

        if (v >= 10) {
            *out++ = '0' + v / 10 % 10;
        }

        *out++ = '0' + v % 10;

        if (shift) {
            *out++ = '.';
        }
    }

    return out;
}


static us_verdict_t
us_host_ipv4(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    uint32_t        ip;
    uint64_t        v;
    unsigned        n;
    const uint8_t  *label;

    if (end[-1] == '.') {
        end--;
    }

    ip = 0;

    for (n = 0; /* void */ ; n++) {

        for (label = p; p < end && *p != '.'; p++) { /* void */ }

        if (n == 4 || !us_ipv4_number(label, p, &v)) {
            return US_URL_HOST;
        }

        if (p == end) {
            break;
        }

        if (v > 255) {
            return US_URL_HOST;
        }

        ip |= (uint32_t) v << (24 - 8 * n);
        p++;
    }

    /* the last number fills all bytes that are left */

    if (v >> (8 * (4 - n))) {
        return US_URL_HOST;
    }

    *out = us_ipv4_write(*out, ip | (uint32_t) v);

    return US_URL_OK;
}


us_verdict_t
us_host_domain(const uint8_t *p, const uint8_t *end, uint8_t **out,
    uint8_t *tmp)
{
    uint8_t   *w, *last, any;
    us_str_t   name;
    ssize_t    n;

    last = us_percent_decode(tmp, p, end);
    any = 0;

    for (w = tmp; w < last; w++) {
        any |= *w;
    }

    if (any < 0x80) {
        for (w = tmp; w < last; w++) {
            (*out)[w - tmp] = (uint8_t) (*w - 'A') < 26 ? *w | 0x20 : *w;
        }

        n = last - tmp;

    } else {
        if (last - tmp > US_IDNA_MAX) {
            return US_URL_LENGTH;
        }

        name.data = tmp;
        name.len = last - tmp;

        if (!us_utf8_valid(name)) {
            return US_URL_UTF8;
        }

        n = us_idna_to_ascii(name, *out, US_HOST_MAX);
    }

    if (n <= 0) {
        return US_URL_HOST;
    }

    p = *out;
    end = p + n;

    for (w = *out; w < end; w++) {
        if (us_is(*w, US_CH_NO_DOMAIN)) {
            return *w < 0x20 || *w == 0x7f ? US_URL_CONTROL : US_URL_HOST;
        }
    }

    if (us_host_ends_in_number(p, end)) {
        memcpy(tmp, p, n);
        return us_host_ipv4(tmp, tmp + n, out);
    }

    *out += n;

    return US_URL_OK;
}


us_verdict_t
us_host_opaque(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    const uint8_t  *c;

    for (c = p; c < end; c++) {
        if (us_is(*c, US_CH_NO_HOST)) {
            return US_URL_HOST;
        }
    }

    *out = us_percent_encode(*out, p, end, US_SET_C0);

    return US_URL_OK;
}


int
us_host_ends_in_number(const uint8_t *p, const uint8_t *end)
{
    uint64_t        v;
    const uint8_t  *label, *c;

    if (end > p && end[-1] == '.') {
        end--;
    }

    for (label = end; label > p && label[-1] != '.'; label--) { /* void */ }

    if (label == end || (uint8_t) (*label - '0') > 9) {
        return 0;
    }

    for (c = label; c < end && (uint8_t) (*c - '0') <= 9; c++) { /* void */ }

    return c == end || us_ipv4_number(label, end, &v);
}


/* the dotted end of an IPv6 address: four decimal bytes, no leading zeros */

static int
us_ipv6_tail(const uint8_t *p, const uint8_t *end, uint16_t v[2])
{
    unsigned  i, byte[4];

    for (i = 0; i < 4; i++) {

        if (i && (p == end || *p++ != '.')) {
            return 0;
        }

        if (p == end || (uint8_t) (*p - '0') > 9) {
            return 0;
        }

        byte[i] = *p++ - '0';

        while (p < end && (uint8_t) (*p - '0') <= 9) {
            if (byte[i] == 0) {
                return 0;
            }

            byte[i] = byte[i] * 10 + (*p++ - '0');

            if (byte[i] > 255) {
                return 0;
            }
        }
    }

    v[0] = (uint16_t) (byte[0] << 8 | byte[1]);
    v[1] = (uint16_t) (byte[2] << 8 | byte[3]);

    return p == end;
}


static int
us_ipv6_parse(const uint8_t *p, const uint8_t *end, uint16_t v[8])
{
    int             n, digits, compress;
    unsigned        value;
    const uint8_t  *piece;

    memset(v, 0, 8 * sizeof(uint16_t));

    n = 0;
    compress = -1;

    if (p < end && *p == ':') {
        if (end - p < 2 || p[1] != ':') {
            return 0;
        }

        p += 2;
        compress = ++n;
    }

    while (p < end) {

        if (n == 8) {
            return 0;
        }

        if (*p == ':') {
            if (compress >= 0) {
                return 0;
            }

            p++;
            compress = ++n;
            continue;
        }

        piece = p;
        value = 0;

        for (digits = 0; digits < 4 && p < end && us_hex[*p] >= 0; digits++) {
            value = value << 4 | us_hex[*p++];
        }

        if (p < end && *p == '.') {
            if (digits == 0 || n > 6 || !us_ipv6_tail(piece, end, v + n)) {
                return 0;
            }

            n += 2;
            break;
        }

        if (p < end) {
            if (*p != ':' || ++p == end) {
                return 0;
            }
        }

        v[n++] = (uint16_t) value;
    }

    if (compress >= 0) {
        for (digits = 7; n > compress && digits > 0; digits--) {
            n--;
            value = v[digits];
            v[digits] = v[n];
            v[n] = (uint16_t) value;
        }

        return 1;
    }

    return n == 8;
}


/* RFC 5952: the first longest run of two or more zero pieces becomes "::" */

static uint8_t *
us_ipv6_write(uint8_t *out, const uint16_t v[8])
{
    int  i, run, from, len, shift;

    from = -1;
    len = 1;
    run = 0;

    for (i = 0; i < 8; i++) {
        run = v[i] ? 0 : run + 1;

        if (run > len) {
            len = run;
            from = i - run + 1;
        }
    }

    for (i = 0; i < 8; i++) {

        if (i == from) {
            *out++ = ':';

            if (i == 0) {
                *out++ = ':';
            }

            i += len - 1;
            continue;
        }

        shift = v[i] > 0xfff ? 12 : v[i] > 0xff ? 8 : v[i] > 0xf ? 4 : 0;

        for ( /* void */ ; shift >= 0; shift -= 4) {
            *out++ = "0123456789abcdef"[(v[i] >> shift) & 15];
        }

        if (i < 7) {
            *out++ = ':';
        }
    }

    return out;
}


/* p is at the '[' */

us_verdict_t
us_host_ipv6(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    uint16_t  v[8];

    if (end[-1] != ']' || !us_ipv6_parse(p + 1, end - 1, v)) {
        return US_URL_HOST;
    }

    *(*out)++ = '[';
    *out = us_ipv6_write(*out, v);
    *(*out)++ = ']';

    return US_URL_OK;
}
