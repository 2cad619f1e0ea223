
/*
 * Domain to ASCII: the rows of IdnaTestV2, ICU where it is installed, and
 * texts that are no domains.
 *
 * US_LIST=1 build/unit/url_idna: prints the code points, and the hosts of the
 * vectors, that ICU makes something else of, what that is, and ours; "-": it is
 * refused.
 */


#include "corpus.h"
#include "url_norm.h"
#include "url/us_idna.h"

#include <dlfcn.h>


#define LABELS       (getenv("US_LABELS") ? atoi(getenv("US_LABELS")) : 50000)
#define CODE_POINTS  0x110000


static uint8_t  changed[CODE_POINTS];


/* what is given, as ASCII with a final NUL; NULL: it is no domain */

static const char *
ascii(const char *host, size_t len)
{
    static char  out[US_URL_MAX + 1];

    us_str_t  in;
    ssize_t   n;

    in.data = (const uint8_t *) host;
    in.len = len;
    n = us_idna_to_ascii(in, (uint8_t *) out, sizeof(out) - 1);

    if (n < 0) {
        return NULL;
    }

    out[n] = '\0';

    return out;
}


static char *
utf8(char *p, uint32_t c)
{
    if (c < 0x80) {
        *p++ = c;

    } else if (c < 0x800) {
        *p++ = 0xc0 | c >> 6;
        *p++ = 0x80 | (c & 0x3f);

    } else if (c < 0x10000) {
        *p++ = 0xe0 | c >> 12;
        *p++ = 0x80 | (c >> 6 & 0x3f);
        *p++ = 0x80 | (c & 0x3f);

    } else {
        *p++ = 0xf0 | c >> 18;
        *p++ = 0x80 | (c >> 12 & 0x3f);
        *p++ = 0x80 | (c >> 6 & 0x3f);
        *p++ = 0x80 | (c & 0x3f);
    }

    return p;
}


/* the next column, without spaces and \u....; *p moves past it */

static size_t
column(char **p, char *out)
{
    char      *o, *s;
    uint32_t   c;

    for (o = out, s = *p; *s && *s != ';'; /* void */ ) {

        if (s[0] == '\\' && s[1] == 'u' && sscanf(s + 2, "%4x", &c) == 1) {
            s += 6;

            if (c >= 0xd800 && c < 0xe000) {
                c = 0xfffd;           /* disallowed, too */
            }

            o = utf8(o, c);
            continue;
        }

        if (*s != ' ') {
            *o++ = *s;
        }

        s++;
    }

    *p = *s ? s + 1 : s;
    *o = '\0';

    if (strcmp(out, "\"\"") == 0) {
        out[0] = '\0';
        o = out;
    }

    return o - out;
}


/* a status such as "[B1,V7]" has more than what these options leave out */

static int
fails(const char *status)
{
    char         text[4096], *word, *next;
    static const char *const  off[] = {
        "A4_1", "A4_2", "V2", "V3", "U1", "X4_2"
    };

    size_t  i;

    snprintf(text, sizeof(text), "%s", status);

    for (word = strtok_r(text, "[],", &next); word;
         word = strtok_r(NULL, "[],", &next))
    {
        for (i = 0; i < 6 && strcmp(word, off[i]) != 0; i++) { /* void */ }

        if (i == 6) {
            return 1;
        }
    }

    return 0;
}


static void
rows(void **state)
{
    FILE        *f;
    char        *line, *p, in[4096], unicode[4096], status[4096];
    char         want[4096], wants[4096];
    size_t       size, n, len;
    const char  *got;

    f = popen("xz -dc t/data/IdnaTestV2.txt.xz", "r");
    assert_non_null(f);
    line = NULL;
    size = 0;

    for (n = 0; getline(&line, &size, f) > 0; /* void */ ) {
        line[strcspn(line, "#\n")] = '\0';

        if (line[strspn(line, " ")] == '\0') {
            continue;
        }

        p = line;
        len = column(&p, in);

        if (column(&p, unicode) == 0 && strncmp(p - 4, "\"\"", 2) != 0) {
            strcpy(unicode, in);
        }

        column(&p, status);

        if (column(&p, want) == 0) {
            strcpy(want, unicode);
        }

        if (column(&p, wants) == 0) {
            strcpy(wants, status);
        }

        got = ascii(in, len);
        n++;

        if (fails(wants) ? got != NULL : got == NULL || strcmp(got, want) != 0)
        {
            fail_msg("%s: %s, not %s %s", in, got ? got : "refused", want,
                     wants);
        }
    }

    assert_int_equal(pclose(f), 0);
    assert_true(n > 6000);
    free(line);
}


/* ICU, without its headers */

typedef struct {
    int16_t   size;
    int8_t    unused[2];
    uint32_t  errors;
    int32_t   reserved[2];
} info_t;

static int32_t  (*icu_to_ascii)(void *, const char *, int32_t, char *, int32_t,
    info_t *, int *);
static void      *icu;
static int         icu_old;           /* Unicode 15.0 */


static int
icu_open(void)
{
    int       v, err;
    void     *lib, *(*open)(uint32_t, int *);
    char      name[60];
    uint8_t   unicode[4];
    void    (*version)(uint8_t *);

    for (v = 99; v >= 60; v--) {
        snprintf(name, sizeof(name), "libicuuc.so.%d", v);
        lib = dlopen(name, RTLD_NOW);

        if (lib == NULL) {
            continue;
        }

        snprintf(name, sizeof(name), "uidna_openUTS46_%d", v);
        *(void **) &open = dlsym(lib, name);
        snprintf(name, sizeof(name), "uidna_nameToASCII_UTF8_%d", v);
        *(void **) &icu_to_ascii = dlsym(lib, name);
        snprintf(name, sizeof(name), "u_getUnicodeVersion_%d", v);
        *(void **) &version = dlsym(lib, name);

        if (open == NULL || icu_to_ascii == NULL || version == NULL) {
            continue;
        }

        version(unicode);

        if (unicode[0] < 15 || unicode[0] > 17) {
            continue;
        }

        /* CHECK_BIDI, CHECK_CONTEXTJ, NONTRANSITIONAL */

        err = 0;
        icu_old = unicode[0] == 15 && unicode[1] == 0;
        icu = open(0x04 | 0x08 | 0x10 | 0x20, &err);
        print_message("ICU %d, Unicode %u.%u\n", v, unicode[0], unicode[1]);

        return icu != NULL && err <= 0;
    }

    return 0;
}


static const char *
icu_ascii(const char *host, size_t len)
{
    static char  out[US_URL_MAX + 1];

    int      err;
    info_t   info = { sizeof(info_t), { 0, 0 }, 0, { 0, 0 } };
    int32_t  n;

    err = 0;
    n = icu_to_ascii(icu, host, len, out, sizeof(out) - 1, &info, &err);

    /* hyphens and lengths are not checked */

    if (err > 0 || (info.errors & ~0x3fu)) {
        return NULL;
    }

    out[n] = '\0';

    return out;
}


static int
differs(const char *host, size_t len)
{
    const char  *ours, *theirs;

    ours = ascii(host, len);
    theirs = icu_ascii(host, len);

    return ours ? theirs == NULL || strcmp(ours, theirs) != 0 : theirs != NULL;
}


static void
equal(const char *host, size_t len)
{
    if (differs(host, len)) {
        fail_msg("\"%.*s\": %s, and not so by ICU", (int) len, host,
                 ascii(host, len) ? ascii(host, len) : "refused");
    }
}


static void
list(const char *host, size_t len)
{
    const char  *ours, *theirs;

    if (getenv("US_LIST")) {
        ours = ascii(host, len);
        theirs = icu_ascii(host, len);
        printf("%.*s\t%s\t%s\n", (int) len, host, theirs ? theirs : "-",
               ours ? ours : "-");
    }
}


static uint32_t
any(uint32_t n)
{
    static uint64_t  x = 88172645463325252ull;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;

    return (x >> 20) % n;
}


static void
against_icu(void **state)
{
    FILE        *f;
    char         line[100], host[400], *p, *at;
    size_t       i, k, labels;
    uint32_t     c, to, lo;
    const char  *ace;

    static const uint32_t  before[] = { 'a', 'a', 0x5d0 };

    /* where marks, joiners, directions and compositions are */

    static const uint32_t  blocks[][2] = {
        { 0x21, 0x7f }, { 0xc0, 0x250 }, { 0x300, 0x370 }, { 0x370, 0x600 },
        { 0x5b0, 0x5f0 }, { 0x600, 0x700 }, { 0x660, 0x66a }, { 0x900, 0xa00 },
        { 0x1100, 0x1200 }, { 0x1e00, 0x2000 }, { 0x200c, 0x200e },
        { 0x3040, 0x3100 }, { 0xac00, 0xd7a4 }, { 0xfb00, 0xfe00 },
        { 0x10000, 0x20000 }, { 0x80, 0x33480 }
    };

    f = fopen("t/data/unicode-changes.txt", "r");
    assert_non_null(f);

    while (fgets(line, sizeof(line), f)) {
        k = sscanf(line, "%x..%x", &c, &to);

        for (to = k == 2 ? to : c; line[0] != '#' && c <= to; c++) {
            changed[c] = 1;
        }
    }

    fclose(f);

    if (!icu_open()) {
        print_message("no ICU with Unicode 15 to 17 is installed\n");
        skip();
    }

    for (c = 0x80; c < CODE_POINTS; c++) {
        if (!changed[c] && (c < 0xd800 || c >= 0xe000)) {
            p = utf8(host + 1, c);
            host[0] = 'a';
            equal(host + 1, p - host - 1);
            equal(host, p - host);
        }
    }

    /* those of the list differ: alone, or after a letter of either direction */

    for (c = 0x80, k = 0; icu_old && c < CODE_POINTS; c++) {
        if (changed[c]) {
            for (i = 0; i < 3; i++) {
                p = utf8(utf8(host, before[i]), c);
                at = i ? host : host + 1;

                if (differs(at, p - at)) {
                    list(at, p - at);
                    break;
                }
            }

            if (i == 3) {
                fail_msg("U+%04X is the same by ICU", c);
            }

            k++;
        }
    }

    if (icu_old) {
        print_message("%u code points are new or others\n", (unsigned) k);
    }

    for (i = 0; i < (size_t) LABELS; i++) {
        p = host;

        for (labels = any(2) + 1; labels; labels--) {
            k = any(sizeof(blocks) / sizeof(blocks[0]));

            for (to = any(7) + 1; to; to--) {
                if (any(3) == 0) {
                    k = any(sizeof(blocks) / sizeof(blocks[0]));
                }

                lo = blocks[k][0];
                c = lo + any(blocks[k][1] - lo);

                if (!changed[c] && (c < 0xd800 || c >= 0xe000)) {
                    p = utf8(p, c);
                }
            }

            *p++ = '.';
        }

        p = utf8(p, 0xe9);
        equal(host, p - host);

        /* and as it is written in ASCII, beside a label that is not */

        ace = ascii(host, p - host);

        if (ace && strlen(ace) < 300) {
            k = strlen(ace);
            memcpy(host, ace, k);
            memcpy(host + k, "\xc3\xa9", 2);
            equal(host, k + 2);
        }
    }
}


/* "input" of a line of JSON, as UTF-8; a lone surrogate is U+FFFD */

static size_t
input(const char *line, char *out)
{
    char        *o;
    uint32_t     c, low;
    const char  *s;

    o = out;
    s = strstr(line, "\"input\": \"");

    for (s = s ? s + 10 : "\""; *s != '"' && *s != '\0'; /* void */ ) {
        if (sscanf(s, "\\u%4x", &c) != 1) {
            s += *s == '\\';
            *o++ = *s++;
            continue;
        }

        s += 6;

        if (c >= 0xd800 && c < 0xdc00 && sscanf(s, "\\u%4x", &low) == 1
            && low >= 0xdc00 && low < 0xe000)
        {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            s += 6;
        }

        o = utf8(o, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    }

    return o - out;
}


/*
 * All answers to the vectors are those of before, when ICU 72 made them, but
 * for 56, of which its tables had a code point otherwise, or not yet.
 */

static void
vectors(void **state)
{
    FILE      *f;
    char      *line, host[4096], name[100];
    size_t     i, k, n, len, size;

    static const struct {
        const char  *name;
        size_t       others;
    } files[] = { { "toascii", 5 }, { "IdnaTestV2", 51 } };

    if (!icu_old) {
        skip();
    }

    for (i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "t/data/vectors/whatwg-%s.json",
                 files[i].name);
        f = fopen(name, "r");
        assert_non_null(f);
        line = NULL;
        size = 0;

        for (n = 0; getline(&line, &size, f) > 0; /* void */ ) {
            len = input(line, host);

            for (k = 0; k < len && (uint8_t) host[k] < 0x80; k++) { /* void */ }

            /* a host of ASCII takes another way */

            if (k < len && differs(host, len)) {
                list(host, len);
                n++;
            }
        }

        fclose(f);
        free(line);
        assert_int_equal(n, files[i].others);
    }
}


static void
refused(void **state)
{
    char    host[US_IDNA_MAX + 2];
    size_t  i;

    static const char *const  bad[] = {
        "xn--\xc3\xa9", "xn--.\xc3\xa9", "xn--a.\xc3\xa9", "xn--a-.\xc3\xa9",
        "xn---qebd.\xc3\xa9", "xn--n~y.\xc3\xa9", "xn--99999999.\xc3\xa9",
        "xn--a-\xc2\xad.\xc3\xa9", "\xcc\x81" "a", "\xe2\x80\x8d",
        "\xd7\x90" "a", "0\xd7\x90", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (ascii(bad[i], strlen(bad[i]))) {
            fail_msg("%s is a domain", bad[i]);
        }
    }

    assert_string_equal(ascii("\xc2\xad", 2), "");

    /* the longest: each letter becomes many, marks are sorted */

    for (i = 0; i + 3 <= US_IDNA_MAX; i += 3) {
        memcpy(host + i, "\xef\xb7\xba", 3);
    }

    host[i++] = 'a';
    (void) ascii(host, i);

    for (i = 0; i + 2 <= US_IDNA_MAX; i += 2) {
        memcpy(host + i, i == 0 ? "ab" : i % 4 ? "\xcc\x81" : "\xcc\xa3", 2);
    }

    assert_non_null(ascii(host, i));

    for (i = 0; i + 3 <= US_IDNA_MAX; i += 3) {
        memcpy(host + i, "\xea\xb0\x81", 3);
    }

    host[i++] = 'a';
    assert_non_null(ascii(host, i));
    host[i++] = 'a';
    assert_null(ascii(host, i));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(rows), cmocka_unit_test(against_icu),
        cmocka_unit_test(vectors), cmocka_unit_test(refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
