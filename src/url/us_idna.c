
/*
 * Domain to ASCII.  See us_idna.h.  The steps are those of UTS #46, section 4:
 *
 *     UTF-8 --map--> letters --NFC--> letters --labels--> letters --check-->
 *                     |                          |                    |
 *              no upper case,             "xn--..." is decoded    --encode-->
 *              nothing ignored                                       ASCII
 *
 * CheckBidi and CheckJoiners are on, CheckHyphens, UseSTD3ASCIIRules,
 * VerifyDnsLength and Transitional_Processing are off, as the URL standard
 * asks.  Two arrays of code points take turns; each step reads one and writes
 * the other.  An A-label is encoded again after it was checked, since Punycode
 * has one form of each text.
 *
 * Time: at most 1,024 marks in a row are sorted by insertion (.3 ms); encoding
 * a label takes the product of its letters and of its different letters
 * (US_IDNA_MAX).
 */


#include "us_idna.h"
#include "us_idna_data.h"


#define US_IDNA_POINTS  (US_IDNA_MAX * US_IDNA_EXPANSION)

#define US_CCC_VIRAMA   9

#define US_ZWNJ         0x200c
#define US_ZWJ          0x200d

/* Hangul syllables, the Unicode standard, section 3.12 */

#define US_HANGUL_L     0x1100
#define US_HANGUL_V     0x1161
#define US_HANGUL_T     0x11a7
#define US_HANGUL_S     0xac00
#define US_HANGUL_LS    19
#define US_HANGUL_VS    21
#define US_HANGUL_TS    28

/* Punycode, RFC 3492, section 5 */

#define US_PUNY_BASE    36
#define US_PUNY_TMIN    1
#define US_PUNY_TMAX    26
#define US_PUNY_SKEW    38
#define US_PUNY_DAMP    700
#define US_PUNY_BIAS    72
#define US_PUNY_N       0x80


static inline const us_idna_class_t *
us_class(uint32_t c)
{
    uint32_t  i;

    if (c >= US_IDNA_END) {

        /* VARIATION SELECTOR-17 .. VARIATION SELECTOR-256 */

        return &us_idna_class[c - 0xe0100 < 240 ? US_IDNA_IGNORED
                                                : US_IDNA_DISALLOWED];
    }

    i = us_idna_top[c >> (US_IDNA_LEAF + US_IDNA_INNER)];
    i = us_idna_inner[i << US_IDNA_INNER
                      | (c >> US_IDNA_LEAF & ((1 << US_IDNA_INNER) - 1))];
    i = us_idna_leaf[i << US_IDNA_LEAF | (c & ((1 << US_IDNA_LEAF) - 1))];

    return &us_idna_class[i];
}


/* what c is mapped to, appended to text; c is US_IDNA_MAPPED */

static uint32_t *
us_idna_mapping(uint32_t c, uint32_t *text)
{
    size_t           lo, hi, mid;
    uint32_t         k, len;
    const uint16_t  *unit, *end;

    for (lo = 0, hi = US_IDNA_RUNS; hi - lo > 1; /* void */ ) {
        mid = (lo + hi) / 2;

        if (us_idna_run[mid].from >> 8 <= c) {
            lo = mid;

        } else {
            hi = mid;
        }
    }

    k = c - (us_idna_run[lo].from >> 8);

    if (us_idna_run[lo].to >> 31 == 0) {
        *text++ = us_idna_run[lo].to + k;
        return text;
    }

    len = us_idna_run[lo].to >> 16 & 0x7fff;
    unit = us_idna_pool + (us_idna_run[lo].to & 0xffff) + k * len;

    for (end = unit + len; unit < end; unit++) {
        *text = *unit;

        if ((*unit & 0xfc00) == 0xd800) {
            *text = 0x10000 + ((*unit & 0x3ff) << 10) + (unit[1] & 0x3ff);
            unit++;
        }

        text++;
    }

    return text;
}


/* step 1: returns the number of letters, or -1 */

static ssize_t
us_idna_map(us_str_t host, uint32_t *text)
{
    uint32_t        c, *t;
    const uint8_t  *p, *end;

    t = text;
    end = host.data + host.len;

    for (p = host.data; p < end; /* void */ ) {
        c = *p++;

        if (c < 0x80) {
            *t++ = c - 'A' < 26 ? c | 0x20 : c;
            continue;
        }

        c &= c < 0xe0 ? 0x1f : c < 0xf0 ? 0x0f : 0x07;

        while (p < end && (*p & 0xc0) == 0x80) {
            c = c << 6 | (*p++ & 0x3f);
        }

        switch (us_class(c)->kind) {

        case US_IDNA_DISALLOWED:
            return -1;

        case US_IDNA_MAPPED:
            t = us_idna_mapping(c, t);
            break;

        case US_IDNA_VALID:
            *t++ = c;
            break;
        }
    }

    return t - text;
}


/* the letter that a pair is composed to, or 0 */

static uint32_t
us_compose(uint32_t first, uint32_t second)
{
    size_t                 lo, hi, mid;
    const us_idna_pair_t  *pair;

    if (first - US_HANGUL_L < US_HANGUL_LS
        && second - US_HANGUL_V < US_HANGUL_VS)
    {
        return US_HANGUL_S + ((first - US_HANGUL_L) * US_HANGUL_VS
                              + second - US_HANGUL_V) * US_HANGUL_TS;
    }

    if (first - US_HANGUL_S < US_HANGUL_LS * US_HANGUL_VS * US_HANGUL_TS
        && (first - US_HANGUL_S) % US_HANGUL_TS == 0
        && second - US_HANGUL_T - 1 < US_HANGUL_TS - 1)
    {
        return first + second - US_HANGUL_T;
    }

    for (lo = 0, hi = US_IDNA_PAIRS; lo < hi; /* void */ ) {
        mid = (lo + hi) / 2;
        pair = &us_idna_pair[us_idna_pair_order[mid]];

        if (pair->first == first && pair->second == second) {
            return pair->composed;
        }

        if (pair->first < first
            || (pair->first == first && pair->second < second))
        {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    return 0;
}


/* appends the canonical decomposition of c */

static uint32_t *
us_decompose(uint32_t c, uint32_t *text)
{
    size_t                 lo, hi, mid;
    uint32_t               s;
    const us_idna_pair_t  *pair;

    s = c - US_HANGUL_S;

    if (s < US_HANGUL_LS * US_HANGUL_VS * US_HANGUL_TS) {
        *text++ = US_HANGUL_L + s / (US_HANGUL_VS * US_HANGUL_TS);
        *text++ = US_HANGUL_V + s / US_HANGUL_TS % US_HANGUL_VS;

        if (s % US_HANGUL_TS) {
            *text++ = US_HANGUL_T + s % US_HANGUL_TS;
        }

        return text;
    }

    if ((us_class(c)->flags & US_IDNA_PAIR) == 0) {
        *text++ = c;
        return text;
    }

    for (lo = 0, hi = US_IDNA_PAIRS; hi - lo > 1; /* void */ ) {
        mid = (lo + hi) / 2;

        if (us_idna_pair[mid].composed <= c) {
            lo = mid;

        } else {
            hi = mid;
        }
    }

    pair = &us_idna_pair[lo];
    text = us_decompose(pair->first, text);

    return us_decompose(pair->second, text);
}


/*
 * Normalization form C (UAX #15) of n letters, in out; returns their number.
 * A valid letter is in this form by itself: only marks, and letters that
 * combine with the one before, can change a text.
 */

static size_t
us_nfc(const uint32_t *text, size_t n, uint32_t *out)
{
    size_t                  i, j, len, starter;
    uint8_t                 ccc, last;
    uint32_t                c, *end;
    const us_idna_class_t  *class;

    for (i = 0; i < n; i++) {
        class = us_class(text[i]);

        if (class->ccc || (class->flags & US_IDNA_COMBINES)) {
            break;
        }
    }

    if (i == n) {
        memcpy(out, text, n * sizeof(uint32_t));
        return n;
    }

    for (end = out, i = 0; i < n; i++) {
        end = us_decompose(text[i], end);
    }

    n = end - out;

    /* canonical order: marks by their class, those of one class stay */

    for (i = 1; i < n; i++) {
        c = out[i];
        ccc = us_class(c)->ccc;

        for (j = i; ccc && j && us_class(out[j - 1])->ccc > ccc; j--) {
            out[j] = out[j - 1];
        }

        out[j] = c;
    }

    /* a mark that follows one of its class, or of a higher, is blocked */

    len = 0;
    starter = n;
    last = 0;

    for (i = 0; i < n; i++) {
        ccc = us_class(out[i])->ccc;

        if (starter < n && (last < ccc || len == starter + 1)) {
            c = us_compose(out[starter], out[i]);

            if (c) {
                out[starter] = c;
                continue;
            }
        }

        if (ccc == 0) {
            starter = len;
        }

        last = ccc;
        out[len++] = out[i];
    }

    return len;
}


static uint32_t
us_puny_adapt(uint32_t delta, uint32_t points, int first)
{
    uint32_t  k;

    delta = first ? delta / US_PUNY_DAMP : delta / 2;
    delta += delta / points;

    for (k = 0;
         delta > (US_PUNY_BASE - US_PUNY_TMIN) * US_PUNY_TMAX / 2;
         k += US_PUNY_BASE)
    {
        delta /= US_PUNY_BASE - US_PUNY_TMIN;
    }

    return k + (US_PUNY_BASE - US_PUNY_TMIN + 1) * delta
               / (delta + US_PUNY_SKEW);
}


static inline uint32_t
us_puny_threshold(uint32_t k, uint32_t bias)
{
    return k <= bias ? US_PUNY_TMIN
           : k >= bias + US_PUNY_TMAX ? US_PUNY_TMAX : k - bias;
}


/*
 * Decodes n letters of ASCII; out has room for n.  Returns the number of
 * letters, or -1: they are not Punycode.
 */

static ssize_t
us_puny_decode(const uint32_t *p, size_t n, uint32_t *out)
{
    size_t    at, len;
    uint32_t  c, i, old, w, k, t, digit, bias;

    for (len = n ? n - 1 : 0; len && p[len] != '-'; len--) { /* void */ }

    memcpy(out, p, len * sizeof(uint32_t));
    at = len ? len + 1 : 0;

    c = US_PUNY_N;
    bias = US_PUNY_BIAS;

    for (i = 0; at < n; i++) {
        old = i;

        for (w = 1, k = US_PUNY_BASE; /* void */ ; k += US_PUNY_BASE) {

            if (at == n) {
                return -1;
            }

            digit = p[at] - 'a' < 26 ? p[at] - 'a'
                    : p[at] - '0' < 10 ? p[at] - '0' + 26 : US_PUNY_BASE;
            at++;

            if (digit == US_PUNY_BASE || digit > (UINT32_MAX - i) / w) {
                return -1;
            }

            i += digit * w;
            t = us_puny_threshold(k, bias);

            if (digit < t) {
                break;
            }

            if (w > UINT32_MAX / (US_PUNY_BASE - t)) {
                return -1;
            }

            w *= US_PUNY_BASE - t;
        }

        len++;
        bias = us_puny_adapt(i - old, len, old == 0);

        if (i / len > 0x10ffff - c) {
            return -1;
        }

        c += i / len;
        i %= len;

        memmove(out + i + 1, out + i, (len - 1 - i) * sizeof(uint32_t));
        out[i] = c;
    }

    return len;
}


/* writes one digit of Punycode; NULL: no room */

static inline uint8_t *
us_puny_digit(uint8_t *out, const uint8_t *end, uint32_t digit)
{
    if (out == NULL || out == end) {
        return NULL;
    }

    *out = digit < 26 ? 'a' + digit : '0' + digit - 26;

    return out + 1;
}


/* returns the end of what was written, or NULL: no room */

static uint8_t *
us_puny_encode(const uint32_t *p, size_t n, uint8_t *out, const uint8_t *end)
{
    size_t    i, basic, done;
    uint32_t  c, next, delta, bias, q, k, t;

    if ((size_t) (end - out) < n + 1) {
        return NULL;
    }

    for (basic = 0, i = 0; i < n; i++) {
        if (p[i] < 0x80) {
            *out++ = (uint8_t) p[i];
            basic++;
        }
    }

    if (basic) {
        *out++ = '-';
    }

    delta = 0;
    bias = US_PUNY_BIAS;
    c = US_PUNY_N;

    for (done = basic; done < n; c++, delta++) {

        for (next = UINT32_MAX, i = 0; i < n; i++) {
            if (p[i] >= c && p[i] < next) {
                next = p[i];
            }
        }

        /* at most 0x110000 * US_IDNA_POINTS, and some: it can wrap */

        if ((uint64_t) (next - c) * (done + 1) > UINT32_MAX - delta) {
            return NULL;
        }

        delta += (next - c) * (uint32_t) (done + 1);
        c = next;

        for (i = 0; i < n; i++) {

            if (p[i] < c && ++delta == 0) {
                return NULL;
            }

            if (p[i] != c) {
                continue;
            }

            for (q = delta, k = US_PUNY_BASE; /* void */ ; k += US_PUNY_BASE) {
                t = us_puny_threshold(k, bias);

                if (q < t) {
                    break;
                }

                out = us_puny_digit(out, end,
                                    t + (q - t) % (US_PUNY_BASE - t));
                q = (q - t) / (US_PUNY_BASE - t);
            }

            out = us_puny_digit(out, end, q);

            if (out == NULL) {
                return NULL;
            }

            bias = us_puny_adapt(delta, (uint32_t) done + 1, done == basic);
            delta = 0;
            done++;
        }
    }

    return out;
}


static inline int
us_is_ace(const uint32_t *p, size_t n)
{
    return n >= 4 && p[0] == 'x' && p[1] == 'n' && p[2] == '-' && p[3] == '-';
}


static inline int
us_is_ascii(const uint32_t *p, size_t n)
{
    size_t    i;
    uint32_t  all;

    for (all = 0, i = 0; i < n; i++) {
        all |= p[i];
    }

    return all < 0x80;
}


static inline size_t
us_label_end(const uint32_t *text, size_t i, size_t n)
{
    while (i < n && text[i] != '.') {
        i++;
    }

    return i;
}


/*
 * Copies the labels, decodes those that begin with "xn--", and sets *decoded
 * if there was one; returns the number of letters, or -1.
 */

static ssize_t
us_labels(const uint32_t *text, size_t n, uint32_t *out, int *decoded)
{
    size_t    i, end;
    ssize_t   len;
    uint32_t  *o;

    o = out;

    for (i = 0; i < n; i = end + 1) {
        end = us_label_end(text, i, n);

        if (us_is_ace(text + i, end - i)) {
            len = us_is_ascii(text + i, end - i)
                  ? us_puny_decode(text + i + 4, end - i - 4, o) : -1;

            if (len <= 0 || us_is_ascii(o, len)) {
                return -1;
            }

            *decoded = 1;
            o += len;

        } else {
            memcpy(o, text + i, (end - i) * sizeof(uint32_t));
            o += end - i;
        }

        if (end < n) {
            *o++ = '.';
        }
    }

    return o - out;
}


/*
 * A zero width joiner or non-joiner at i may stand after a virama; the latter
 * also between letters that join (RFC 5892, appendix A.1 and A.2).
 */

static int
us_joiner_ok(const uint32_t *p, size_t n, size_t i)
{
    size_t   k;
    uint8_t  joining;

    if (i && us_class(p[i - 1])->ccc == US_CCC_VIRAMA) {
        return 1;
    }

    if (p[i] == US_ZWJ) {
        return 0;
    }

    for (k = i; /* void */ ; k--) {

        if (k == 0) {
            return 0;
        }

        joining = us_class(p[k - 1])->joining;

        if (joining == US_JOIN_L || joining == US_JOIN_D) {
            break;
        }

        if (joining != US_JOIN_T) {
            return 0;
        }
    }

    for (k = i + 1; k < n; k++) {
        joining = us_class(p[k])->joining;

        if (joining == US_JOIN_R || joining == US_JOIN_D) {
            return 1;
        }

        if (joining != US_JOIN_T) {
            return 0;
        }
    }

    return 0;
}


#define US_BIDI(class)  (1u << US_BIDI_##class)


/* the Bidi Rule, RFC 5893, section 2; of a label that is not empty */

static int
us_bidi_ok(const uint32_t *p, size_t n)
{
    size_t    i;
    uint32_t  all, bit, last;

    static const uint32_t  neutral = US_BIDI(ES) | US_BIDI(CS) | US_BIDI(ET)
                                     | US_BIDI(ON) | US_BIDI(BN)
                                     | US_BIDI(NSM) | US_BIDI(EN);

    for (all = 0, last = 0, i = 0; i < n; i++) {
        bit = 1u << us_class(p[i])->bidi;
        all |= bit;

        if (bit != US_BIDI(NSM)) {
            last = bit;
        }
    }

    bit = 1u << us_class(p[0])->bidi;

    if (bit == US_BIDI(L)) {
        return (all & ~(neutral | US_BIDI(L))) == 0
               && (last & (US_BIDI(L) | US_BIDI(EN)));
    }

    if (bit != US_BIDI(R) && bit != US_BIDI(AL)) {
        return 0;
    }

    return (all & ~(neutral | US_BIDI(R) | US_BIDI(AL) | US_BIDI(AN))) == 0
           && (last & (US_BIDI(R) | US_BIDI(AL) | US_BIDI(EN) | US_BIDI(AN)))
           && (all & (US_BIDI(EN) | US_BIDI(AN)))
              != (US_BIDI(EN) | US_BIDI(AN));
}


/* the validity criteria (UTS #46, section 4.1) of all labels */

static int
us_labels_ok(const uint32_t *text, size_t n)
{
    int                     bidi;
    size_t                  i, k, end;
    const us_idna_class_t  *class;

    for (bidi = 0, i = 0; i < n; i++) {
        class = us_class(text[i]);

        if (class->kind != US_IDNA_VALID) {
            return 0;
        }

        bidi |= (1u << class->bidi
                 & (US_BIDI(R) | US_BIDI(AL) | US_BIDI(AN))) != 0;
    }

    for (i = 0; i < n; i = end + 1) {
        end = us_label_end(text, i, n);

        if (end == i) {
            continue;
        }

        if ((us_class(text[i])->flags & US_IDNA_MARK)
            || us_is_ace(text + i, end - i)
            || (bidi && !us_bidi_ok(text + i, end - i)))
        {
            return 0;
        }

        for (k = i; k < end; k++) {
            if ((text[k] == US_ZWNJ || text[k] == US_ZWJ)
                && !us_joiner_ok(text + i, end - i, k - i))
            {
                return 0;
            }
        }
    }

    return 1;
}


ssize_t
us_idna_to_ascii(us_str_t host, uint8_t *out, size_t size)
{
    int       decoded;
    size_t    i, k, end;
    uint8_t  *o, *last;
    ssize_t   n;
    uint32_t  a[US_IDNA_POINTS], b[US_IDNA_POINTS];

    if (host.len > US_IDNA_MAX) {
        return -1;
    }

    decoded = 0;
    n = us_idna_map(host, a);

    if (n > 0) {
        n = us_nfc(a, n, b);
        n = us_labels(b, n, a, &decoded);
    }

    if (n <= 0) {
        return n;
    }

    /* a dot combines with nothing: the labels are normalized as one text */

    if (decoded && (us_nfc(a, n, b) != (size_t) n
                    || memcmp(a, b, n * sizeof(uint32_t)) != 0))
    {
        return -1;
    }

    if (!us_labels_ok(a, n)) {
        return -1;
    }

    o = out;
    last = out + size;

    for (i = 0; i < (size_t) n; i = end + 1) {
        end = us_label_end(a, i, n);

        if ((size_t) (last - o) < end - i + sizeof("xn--.")) {
            return -1;
        }

        if (us_is_ascii(a + i, end - i)) {
            for (k = i; k < end; k++) {
                *o++ = (uint8_t) a[k];
            }

        } else {
            memcpy(o, "xn--", 4);
            o = us_puny_encode(a + i, end - i, o + 4, last);

            if (o == NULL || o == last) {
                return -1;
            }
        }

        if (end < (size_t) n) {
            *o++ = '.';
        }
    }

    return o - out;
}
