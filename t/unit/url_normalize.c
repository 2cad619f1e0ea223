
/*
 * The normalizer by its front door: links as pages write them, profiles,
 * limits, the www merge, explain.
 */


#include "url_norm.h"

#include <malloc.h>


/* the links that the article on URL databases works through, and more */

static void
relative_links(void **state)
{
    open_profile(US_PROFILE_CRAWLER);

    link_is("http://site.ru/index", "./", "http://site.ru/");
    link_is("http://site.ru/index/", "./", "http://site.ru/index/");
    link_is("http://site.ru/a/b/c", "././././", "http://site.ru/a/b/");
    link_is("http://site.ru/a/b/c", "././././d", "http://site.ru/a/b/d");
    link_is("http://site.ru/a/b/c", "../../../", "http://site.ru/");
    link_is("http://site.ru/a/b/c", "../../../../../d", "http://site.ru/d");
    link_is("http://site.ru/a/b/c", "..", "http://site.ru/a/");
    link_is("http://site.ru/a/b/c", ".", "http://site.ru/a/b/");
    link_is("http://site.ru/a/b/c", "./d/../e", "http://site.ru/a/b/e");
    link_is("http://site.ru/a/b/c", "%2e%2E/d", "http://site.ru/a/d");
    link_is("http://site.ru/a?x=1", "?y=2", "http://site.ru/a?y=2");
    link_is("http://site.ru/a?x=1", "?", "http://site.ru/a");
    link_is("http://site.ru/a?x=1", "#top", "http://site.ru/a?x=1");
    link_is("http://site.ru/a?x=1#old", "", "http://site.ru/a?x=1");
    link_is("http://site.ru/a", "//other.ru", "http://other.ru/");
    link_is("https://site.ru/a", "//other.ru/b", "https://other.ru/b");
    link_is("https://site.ru/a", "\\\\other.ru\\b", "https://other.ru/b");
    link_is("http://site.ru/a", "/b", "http://site.ru/b");
    link_is("http://site.ru/a", "https:b", "https://b/");
    link_is("http://site.ru/a/", "http:b", "http://site.ru/a/b");
    link_is("http://u:p@site.ru:8080/a#f", "b#g", "http://site.ru:8080/b");
    link_is("http://site.ru", "a", "http://site.ru/a");
    link_is("http://site.ru?q", "a", "http://site.ru/a");
    link_is("http://site.ru/a//b", "../c", "http://site.ru/a/c");
    link_is("http://site.ru/a//", "../../c", "http://site.ru/c");
    link_is("http://site.ru/a;p/b", "c", "http://site.ru/a;p/c");
    link_is("http://site.ru/a", "  b\n", "http://site.ru/b");
    link_is("http://site.ru/a", "mailto:x@y", "!scheme");
    link_is("http://site.ru/a", "javascript:void(0)", "!scheme");
    link_is("mailto:x@y", "a", "!no-base");
    link_is("file:///a/b", "c", "!scheme");
    link_is("file:///a/b", "http://x.org", "http://x.org/");
    link_is(NULL, "a", "!no-base");
    link_is(NULL, "", "!no-base");
    link_is("http:// /", "http://x.org/", "!host");
    link_is("a/b", "http://x.org/", "!no-base");
}


static void
crawler(void **state)
{
    open_profile(US_PROFILE_CRAWLER);

    becomes("HTTP://User:Pw@WWW.Example.COM:80/A/./b/../c?#frag",
            "http://www.example.com/A/c");
    becomes("http://example.com", "http://example.com/");
    becomes("http://example.com?a", "http://example.com/?a");
    becomes("http://example.com./", "http://example.com/");
    becomes("http://example.com../", "http://example.com../");
    becomes("http://example.com:0443/", "http://example.com:443/");
    becomes("https://example.com:0443/", "https://example.com/");
    becomes("http://example.com:/", "http://example.com/");
    becomes("http://0x7f.1/", "http://127.0.0.1/");
    becomes("http://3232235521", "http://192.168.0.1/");
    becomes("http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/");
    becomes("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/");
    becomes("http://b\xc3\xbc" "cher.de/", "http://xn--bcher-kva.de/");
    becomes("http://B%C3%9CCHER.de/", "http://xn--bcher-kva.de/");
    becomes("http://x.org/\xd0\xb0?\xd0\xb1", "http://x.org/%D0%B0?%D0%B1");
    becomes("http://x.org/\xff", "http://x.org/%FF");
    becomes("http://x.org/\x01\x7f", "http://x.org/%01%7F");
    becomes("http://x.org/%7e%41%2f%3d%zz%", "http://x.org/~A%2F%3D%25zz%25");
    becomes("http://x.org/a b|c[d]'{e}", "http://x.org/a%20b%7Cc%5Bd%5D'"
                                         "%7Be%7D");
    becomes("http://x.org/?a b|c[d]'\\", "http://x.org/?a%20b%7Cc%5Bd%5D%27"
                                         "%5C");
    becomes("http://x.org/a\\b?c\\d", "http://x.org/a/b?c%5Cd");
    becomes("http://x.org//a//b/", "http://x.org//a//b/");
    becomes("http://x.org/?&&a=1&&b&", "http://x.org/?a=1&b");
    becomes("http://x.org/?&&", "http://x.org/");
    becomes("http://x.org/?a=&a&=a&b==", "http://x.org/?a=&a&=a&b==");
    becomes("http://x.org/?1423", "http://x.org/?1423");
    becomes("http://x.org/index.html?utm_source=a", "http://x.org/index.html"
                                                    "?utm_source=a");
    becomes("ht\ntp://x.o\trg/\r", "http://x.org/");

    becomes("ftp://x.org/", "!scheme");
    becomes("data:text/plain,x", "!scheme");
    becomes("http://", "!host");
    becomes("http://a b/", "!host");
    becomes("http://a%00b/", "!control");
    becomes("http://a\x01" "b/", "!control");
    becomes("http://\xff/", "!utf8");
    becomes("http://%ff/", "!utf8");
    becomes("http://1.2.3.4.5/", "!host");
    becomes("http://1.2.3.256/", "!host");
    becomes("http://[::1/", "!host");
    becomes("http://[1:2:3]/", "!host");
    becomes("http://x.org:65536/", "!port");
    becomes("http://x.org:8a/", "!port");
    becomes("http://x.org:-1/", "!port");
}


static void
clean(void **state)
{
    create(US_PROFILE_CRAWLER_CLEAN);
    assert_int_equal(us_norm_add_strip_arg(norm, us_string("x_*_y")), 0);
    assert_int_equal(us_norm_add_strip_arg(norm, us_string("")), -1);
    seal();

    becomes("http://x.org/?utm_source=a&b=1&utm_=c", "http://x.org/?b=1");
    becomes("http://x.org/?fbclid=a", "http://x.org/");
    becomes("http://x.org/?fbclid", "http://x.org/");
    becomes("http://x.org/?Fbclid=a&fbclidx=1&xfbclid",
            "http://x.org/?Fbclid=a&fbclidx=1&xfbclid");
    becomes("http://x.org/?fbcl%69d=a", "http://x.org/");
    becomes("http://x.org/?utm=required&ref=a&sid=1",
            "http://x.org/?utm=required&ref=a&sid=1");
    becomes("http://x.org/?x_a_y=1&x__y&x_y=2&a", "http://x.org/?x_y=2&a");
    becomes("http://www.example.com/a/path/that/is/canonical?b=2&a=1",
            "http://www.example.com/a/path/that/is/canonical?b=2&a=1");
}


/* any profile may have a list */

static void
strip_arguments(void **state)
{
    create(US_PROFILE_WHATWG);
    assert_int_equal(us_norm_add_strip_arg(norm, us_string("s*")), 0);
    seal();

    becomes("http://www.example.com/?sid=1&a=2&session#f",
            "http://www.example.com/?a=2#f");
    becomes("http://www.example.com/?sid=1#f", "http://www.example.com/#f");
    becomes("http://www.example.com/?a&&b", "http://www.example.com/?a&&b");
}


static void
aggressive(void **state)
{
    open_profile(US_PROFILE_AGGRESSIVE);

    becomes("http://x.org/?b=2&a=2&a=1&b=1",
            "http://x.org/?a=2&a=1&b=2&b=1");
    becomes("http://x.org/?b&a=1", "http://x.org/?b&a=1");
    becomes("http://x.org/?c&b&c&a&b", "http://x.org/?c&b&a");
    becomes("http://x.org/?b=1&a=1&b=1", "http://x.org/?a=1&b=1");
    becomes("http://x.org//a///b/", "http://x.org/a/b/");
    becomes("http://x.org/http://y.org//z", "http://x.org/http://y.org/z");
    becomes("http://x.org/http:////y", "http://x.org/http://y");
    becomes("http://x.org/a;jsessionid=1F.node?b=1", "http://x.org/a?b=1");
    becomes("http://x.org/a;JSessionID=1;v=2/b", "http://x.org/a;v=2/b");
    becomes("http://x.org/..;jsessionid=1/b", "http://x.org/..;jsessionid=1"
                                              "/b");
    becomes("http://x.org/;jsessionid=1/b", "http://x.org/b");
    becomes("http://x.org/a;jsessionid", "http://x.org/a;jsessionid");
    becomes("http://x.org/?PHPSESSID=1&cfid=2&CFTOKEN=3&a=1",
            "http://x.org/?a=1");
    becomes("http://x.org/?ASPSESSIONIDABCDEFGH=1", "http://x.org/");
    becomes("http://x.org/?aspsessionidabcdefg1=1",
            "http://x.org/?aspsessionidabcdefg1=1");
    becomes("http://x.org/?sid=12", "http://x.org/?sid=12");
    becomes("http://x.org/?sid=0123456789abcdef", "http://x.org/");
    becomes("http://x.org/?sid=0123456789abcde-",
            "http://x.org/?sid=0123456789abcde-");
    becomes("http://x.org/?NewsID=5&addressid=6",
            "http://x.org/?NewsID=5&addressid=6");
}


static void
whatwg(void **state)
{
    us_canon_t  canon;

    open_profile(US_PROFILE_WHATWG);

    becomes("http://u:p@x.org/a%7e?#f", "http://u:p@x.org/a%7e?#f");
    becomes("ftp://x.org/", "!scheme");

    us_norm_set_any_scheme(norm, 1);
    becomes("ftp://x.org:21/a", "ftp://x.org/a");
    becomes("foo:/.//a", "foo:/.//a");
    link_is("foo:/.//a/b", "../c", "foo:/.//c");
    link_is("foo:/.//a", "#f", "foo:/.//a#f");
    link_is("foo:/.//a?q", "/b", "foo:/b");
    becomes("data: a  #b", "data: a %20#b");
    link_is("data:a", "#b", "data:a#b");

    /* hosts of other schemes, and addresses that end as those of IPv4 */

    becomes("foo://\xc3\xb1.Test/x", "foo://%C3%B1.Test/x");
    becomes("foo://a b/", "!host");
    becomes("foo://a^b/", "!host");
    becomes("foo://[::1.2.3.4]/", "foo://[::102:304]/");
    becomes("http://[::1.2.3]/", "!host");
    becomes("http://[::1.2.3.04]/", "!host");
    becomes("http://[::1.256.3.4]/", "!host");
    becomes("http://[::1.2..4]/", "!host");
    becomes("http://[::1.2-3.4]/", "!host");
    becomes("http://[::1%25lo]/", "!host");
    becomes("http://[0000:0000:0000:0000:0000:ffff:255.255.255.255]/",
            "http://[::ffff:ffff:ffff]/");
    becomes("http://[0000:0000:0000:0000:0000:00ffff:255.255.255.255]/",
            "!host");

    /* a zero byte ends no address */

    assert_int_equal(us_normalize(norm, ws, us_string("http://[::1\0]/"), NULL,
                                  &canon), US_URL_HOST);

    /* files: drives, hosts, and what a link leaves out */

    becomes("file://localhost/a", "file:///a");
    becomes("file://h.test/a", "file://h.test/a");
    becomes("file://h test/a", "!host");
    becomes("file:a", "file:///a");
    becomes("file:\\a", "file:///a");
    link_is("file:///C|/a", "/b", "file:///C:/b");
    link_is("file:///C:/a/b?q", "", "file:///C:/a/b?q");
    link_is("file:///C:/a/b?q", "#f", "file:///C:/a/b?q#f");
    link_is("file:///C:/a/b?q", "?r", "file:///C:/a/b?r");
    link_is("file:///C:/a/b", "D|/x", "file:///D:/x");
    link_is("file://h.test/a/b", "//C|/x", "file:///C:/x");
}


/* what a workspace has of URLs goes, and it works as before */

static void
wiped(void **state)
{
    size_t  size;

    open_profile(US_PROFILE_CRAWLER);
    link_is("http://x.org/a/b", "../secret-of-nobody", "http://x.org/"
            "secret-of-nobody");

    size = malloc_usable_size(ws);
    assert_non_null(memmem(ws, size, "secret-of-nobody", 16));
    us_norm_ws_wipe(ws);
    assert_null(memmem(ws, size, "secret-of-nobody", 16));
    becomes("http://x.org/%7e", "http://x.org/~");
}


static void
lengths(void **state)
{
    size_t  n;

    static char  in[40000], want[40000];

    open_profile(US_PROFILE_CRAWLER);

    n = sprintf(in, "http://x.org/");
    memset(in + n, 'a', US_URL_MAX - n);
    becomes(in, in);

    strcat(in, "a");
    becomes(in, "!length");

    n = sprintf(in, "http://");
    memset(in + n, 'a', US_URL_MAX - n);
    sprintf(in + US_URL_MAX - 4, ".org");
    becomes(in, "!length");
    sprintf(in + US_URL_MAX - 5, ".org");
    strcpy(want, in);
    strcat(want, "/");
    becomes(in, want);
    in[7] = 'A';
    becomes(in, want);

    n = sprintf(in, "http://x.org/");
    memset(in + n, 'a', US_URL_MAX - n);

    /* what goes does not count */

    in[US_URL_MAX] = '\0';
    strcpy(want, in);
    strcat(in, "#fragment");
    becomes(in, want);

    memset(in + strlen(in), 'f', 20000);
    becomes(in, want);

    /* bytes that grow */

    sprintf(in, "http://x.org/");
    memset(in + n, '|', 2726);
    in[n + 2726] = '\0';
    strcpy(want, in);

    for (n = 13; n < 13 + 3 * 2726; n += 3) {
        memcpy(want + n, "%7C", 4);
    }

    becomes(in, want);
    strcat(in, "|");
    becomes(in, "!length");

    /* a host in Unicode, which takes time by the square of its length */

    n = sprintf(in, "http://");

    while (n < 7 + 1022) {
        n += sprintf(in + n, "\xcc\xa3");
    }

    strcpy(in + n, ".org");
    becomes(in, "!length");
    strcpy(in + 7, "%c3%bc.org");
    becomes(in, "http://xn--tda.org/");

    /* longer input is not looked at */

    memset(in, ' ', sizeof(in) - 1);
    memcpy(in + 30000, "http://x.org/", 13);
    becomes(in, "http://x.org/");

    memset(in, 'a', sizeof(in) - 1);
    memcpy(in, "http://x.org/#", 14);
    becomes(in, "!length");
}


static void
limits(void **state)
{
    create(US_PROFILE_CRAWLER);
    us_norm_set_max_depth(norm, 3);
    us_norm_set_max_args(norm, 2);
    seal();

    becomes("http://x.org/a/b/c", "http://x.org/a/b/c");
    becomes("http://x.org/a/b/c/", "http://x.org/a/b/c/");
    becomes("http://x.org//a//b//c/", "http://x.org//a//b//c/");
    becomes("http://x.org/a/b/c/d", "!depth");
    becomes("http://x.org/a/b/c/../d", "http://x.org/a/b/d");
    becomes("http://x.org/?a&b", "http://x.org/?a&b");
    becomes("http://x.org/?&a&&b&", "http://x.org/?a&b");
    becomes("http://x.org/?a&b&c", "!args");
}


static void
repeats(void **state)
{
    size_t  n;

    static char  in[US_URL_MAX];

    create(US_PROFILE_CRAWLER);
    us_norm_set_max_repeat(norm, 2);
    seal();

    becomes("http://x.org/a/a", "http://x.org/a/a");
    becomes("http://x.org/a/a/a", "!repeat");
    becomes("http://x.org/b/a/a/a/c", "!repeat");
    becomes("http://x.org/a/b/a/b/x", "http://x.org/a/b/a/b/x");
    becomes("http://x.org/a/b/a/b/a/x", "http://x.org/a/b/a/b/a/x");
    becomes("http://x.org/a/b/a/b/a/b", "!repeat");
    becomes("http://x.org/a/b/a/b/a/b/", "!repeat");
    becomes("http://x.org/1/2/3/1/2/3/1/2/3", "!repeat");
    becomes("http://x.org/1/2/3/1/2/3/1/2/4", "http://x.org/1/2/3/1/2/3/1/2/4");
    becomes("http://x.org/a/aa/a/aa/aa/a", "http://x.org/a/aa/a/aa/aa/a");
    becomes("http://x.org/a/b/a?/a/b/a/b", "http://x.org/a/b/a?/a/b/a/b");

    /* any period, and the most segments that there can be */

    for (n = sprintf(in, "http://x.org"); n < 7000; /* void */ ) {
        n += sprintf(in + n, "/%zu", n);
    }

    becomes(in, in);

    n = sprintf(in, "http://x.org");

    while (n < US_URL_MAX - 2) {
        in[n] = '/';
        in[n + 1] = "ab"[__builtin_popcountl(n / 2) & 1];
        n += 2;
    }

    /* the sequence of Thue and Morse repeats nothing three times */

    in[n] = '\0';
    becomes(in, in);
}


static void
www_first(void **state)
{
    us_canon_t  out;

    static const struct {
        const char  *in;
        unsigned     merge;
    } t[] = {
        { "http://example.com/", 1 }, { "http://www.example.com/", 1 },
        { "http://WWW.example.com:8080/x", 1 }, { "http://example.com:81", 1 },
        { "http://www.com/", 0 }, { "http://co.uk/", 0 },
        { "http://www.co.uk/", 0 }, { "http://127.0.0.1/", 0 },
        { "http://[::1]/", 0 }, { "http://localhost/", 0 },
        { "http://www.www.example.com/", 0 }, { "http://pony.at/", 0 },
        { "http://www.pony.at/", 0 }, { "http://xn--bcher-kva.de/", 0 },
        { "http://www.b\xc3\xbc" "cher.de/", 0 },
        { "http://www.b\xc3\xa4" "cher.de/", 1 }
    };

    size_t  i;

    create(US_PROFILE_CRAWLER);
    assert_int_equal(us_norm_www_except(norm, us_string("pony.at")), 0);
    assert_int_equal(us_norm_www_except(norm,
                                        us_string("B\xc3\xbc" "cher.de")), 0);
    assert_int_equal(us_norm_www_except(norm, us_string("a\xff")), -1);
    seal();

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        assert_int_equal(us_normalize(norm, ws, str(t[i].in), NULL, &out),
                         US_URL_OK);

        if (out.merge != t[i].merge) {
            fail_msg("%s: merge is %u", t[i].in, out.merge);
        }
    }

    becomes("http://www.example.com/", "http://www.example.com/");
    becomes("http://example.com/", "http://example.com/");
}


/* found by the laws: a user without a password is userinfo too */

static void
www_and_userinfo(void **state)
{
    us_canon_t  out;

    open_profile(US_PROFILE_WHATWG);

    assert_int_equal(us_normalize(norm, ws, str("http://u@www.example.com/"),
                                  NULL, &out), US_URL_OK);
    assert_int_equal(out.merge, 0);

    assert_int_equal(us_normalize(norm, ws, str("http://:p@example.com/"),
                                  NULL, &out), US_URL_OK);
    assert_int_equal(out.merge, 0);

    assert_int_equal(us_normalize(norm, ws, str("http://www.example.com/"),
                                  NULL, &out), US_URL_OK);
    assert_int_equal(out.merge, 1);
}


static void
www_strip(void **state)
{
    us_canon_t  out;

    create(US_PROFILE_WHATWG);
    us_norm_set_www(norm, US_WWW_STRIP);
    assert_int_equal(us_norm_www_except(norm, us_string("pony.at")), 0);
    seal();

    becomes("http://www.example.com:8080/a?b#c",
            "http://example.com:8080/a?b#c");
    becomes("http://www.com/", "http://www.com/");
    becomes("http://www.pony.at/", "http://www.pony.at/");
    becomes("http://www.www.example.com/", "http://www.www.example.com/");
    becomes("http://example.com/", "http://example.com/");

    assert_int_equal(us_normalize(norm, ws,
                                  str("http://www.example.com:8080/a?b#c"),
                                  NULL, &out), US_URL_OK);
    assert_int_equal(out.merge, US_MERGE_STRIP);
    assert_int_equal(out.url.pathname_start, strlen("http://example.com:8080"));
    assert_int_equal(us_url_host(&out.url).len, strlen("example.com:8080"));
    assert_int_equal(us_url_search(&out.url).len, 2);
}


static void
www_keep(void **state)
{
    us_canon_t  out;

    create(US_PROFILE_CRAWLER);
    us_norm_set_www(norm, US_WWW_KEEP);
    seal();

    becomes("http://www.example.com/", "http://www.example.com/");
    assert_int_equal(us_normalize(norm, ws, str("http://www.example.com/"),
                                  NULL, &out), US_URL_OK);
    assert_int_equal(out.merge, 0);
}


static void
part_is(us_str_t part, const char *want)
{
    assert_int_equal(part.len, strlen(want));
    assert_memory_equal(part.data, want, part.len);
}


static void
parts(void **state)
{
    us_canon_t  out;

    open_profile(US_PROFILE_WHATWG);

    assert_int_equal(us_normalize(norm, ws,
                                  str("http://u:p@h.org:81/a/b?c=d#e"), NULL,
                                  &out), US_URL_OK);
    part_is(us_url_hostname(&out.url), "h.org");
    part_is(us_url_host(&out.url), "h.org:81");
    part_is(us_url_pathname(&out.url), "/a/b");
    part_is(us_url_search(&out.url), "?c=d");
    assert_int_equal(out.url.port, 81);

    assert_int_equal(us_normalize(norm, ws, str("http://h.org#e"), NULL,
                                  &out), US_URL_OK);
    part_is(us_url_hostname(&out.url), "h.org");
    part_is(us_url_host(&out.url), "h.org");
    part_is(us_url_pathname(&out.url), "/");
    part_is(us_url_search(&out.url), "");
    assert_int_equal(out.url.port, US_URL_OMITTED);
}


typedef struct {
    unsigned  n;
    char      text[4000];
} steps_t;


static void
step(void *data, const char *name, us_str_t before, us_str_t after)
{
    steps_t  *s;

    s = data;
    s->n++;

    snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text),
             "%s: %.*s -> %.*s\n", name, (int) before.len, before.data,
             (int) after.len, after.data);
}


static void
explain(void **state)
{
    us_base_t        *base;
    us_canon_t        out;
    us_verdict_t      why;
    us_rule_error_t   err;
    static steps_t    s;

    create(US_PROFILE_CRAWLER_CLEAN);
    us_norm_set_www(norm, US_WWW_STRIP);
    assert_int_equal(us_norm_add_rewrite(norm, us_string(""), us_string(""),
                                         us_string("/old/"),
                                         us_string("/new/%7e"), &err), 0);
    seal();

    memset(&s, 0, sizeof(s));
    assert_int_equal(us_normalize_explain(norm, ws,
        us_string("HTTP://u@www.example.com./old/%7e?&gclid=1&b=2#f"), NULL,
        &out, step, &s), US_URL_OK);

    assert_string_equal(s.text,
        "parse: HTTP://u@www.example.com./old/%7e?&gclid=1&b=2#f"
            " -> http://u@www.example.com./old/%7e?&gclid=1&b=2#f\n"
        "drop userinfo: http://u@www.example.com./old/%7e?&gclid=1&b=2#f"
            " -> http://www.example.com./old/%7e?&gclid=1&b=2#f\n"
        "drop fragment: http://www.example.com./old/%7e?&gclid=1&b=2#f"
            " -> http://www.example.com./old/%7e?&gclid=1&b=2\n"
        "drop final dot of host: "
            "http://www.example.com./old/%7e?&gclid=1&b=2"
            " -> http://www.example.com/old/%7e?&gclid=1&b=2\n"
        "unique percent form: http://www.example.com/old/%7e?&gclid=1&b=2"
            " -> http://www.example.com/old/~?&gclid=1&b=2\n"
        "drop empty query pieces: http://www.example.com/old/~?&gclid=1&b=2"
            " -> http://www.example.com/old/~?gclid=1&b=2\n"
        "strip arguments: http://www.example.com/old/~?gclid=1&b=2"
            " -> http://www.example.com/old/~?b=2\n"
        "rewrite 1: http://www.example.com/old/~?b=2"
            " -> http://www.example.com/new/%7e~?b=2\n"
        "normalize again: http://www.example.com/new/%7e~?b=2"
            " -> http://www.example.com/new/~~?b=2\n"
        "strip www: http://www.example.com/new/~~?b=2"
            " -> http://example.com/new/~~?b=2\n");

    memset(&s, 0, sizeof(s));
    base = us_base_create(norm, ws, us_string("http://a.org/b/c"), &why);
    assert_non_null(base);
    assert_int_equal(us_normalize_explain(norm, ws, us_string("../d"), base,
                                          &out, step, &s), US_URL_OK);
    assert_string_equal(s.text, "resolve: ../d -> http://a.org/d\n");
    us_base_destroy(base);

    memset(&s, 0, sizeof(s));
    assert_int_equal(us_normalize_explain(norm, ws, us_string("http://a.org/"),
                                          NULL, &out, step, &s), US_URL_OK);
    assert_int_equal(s.n, 0);
    assert_int_equal(us_normalize_explain(norm, ws, us_string("http://a:b/"),
                                          NULL, &out, step, &s), US_URL_PORT);
}


static void
names(void **state)
{
    us_verdict_t  v;

    static const char *const  profiles[] = {
        "crawler", "crawler-clean", "whatwg", "aggressive"
    };

    int  p;

    for (p = 0; p < 4; p++) {
        assert_int_equal(us_profile_parse(str(profiles[p])), p);
        assert_string_equal(us_profile_name(p), profiles[p]);
    }

    assert_int_equal(us_profile_parse(us_string("crawl")), -1);
    assert_int_equal(us_profile_parse(us_string("")), -1);

    for (v = US_URL_OK; v <= US_URL_BUDGET; v++) {
        assert_non_null(us_verdict_name(v));
        assert_int_equal(us_verdict_rejected(v), v >= US_URL_RULE);
    }

    assert_string_equal(us_verdict_name(US_URL_NO_BASE), "no-base");
    assert_string_equal(us_verdict_name(US_URL_REWRITE_LOOP), "rewrite-loop");
}


static void
signature(void **state)
{
    us_str_t  s;

    open_profile(US_PROFILE_CRAWLER);
    s = us_norm_signature(norm);
    assert_int_equal(s.len, 19);
    assert_memory_equal(s.data, "crawler/1 www=first", 19);
    assert_true(us_norm_same(s, us_string("crawler/1 www=first")));
    assert_true(us_norm_same(s, us_string("crawler/1 unicode=15.0 "
                                          "www=first")));
    assert_false(us_norm_same(s, us_string("crawler/1 unicode=15.0 "
                                           "www=firs")));
    assert_false(us_norm_same(s, us_string("crawler/1 unicode=15.0 "
                                           "www=keep")));
    assert_false(us_norm_same(us_string("crawler/2 unicode=15.0 www=first"),
                              s));
    assert_false(us_norm_same(us_string(""), s));

    teardown(NULL);
    create(US_PROFILE_WHATWG);
    us_norm_set_www(norm, US_WWW_STRIP);
    seal();
    s = us_norm_signature(norm);
    assert_int_equal(s.len, 18);
    assert_memory_equal(s.data, "whatwg/1 www=strip", 18);

    teardown(NULL);
    norm = us_norm_of(us_string("whatwg/1 unicode=15.0 www=strip"));
    assert_non_null(norm);
    s = us_norm_signature(norm);
    assert_memory_equal(s.data, "whatwg/1 www=strip", 18);
    assert_null(us_norm_of(us_string("whatwg/2 www=strip")));
    assert_null(us_norm_of(us_string("whatwg")));
    assert_null(us_norm_of(us_string("")));
}


static void
cuts_are(const char *url, const char *expected)
{
    char        text[US_CANON_CUTS * 512];
    size_t      len;
    unsigned    i, n;
    us_str_t    cuts[US_CANON_CUTS];
    us_canon_t  out;

    assert_int_equal(us_normalize(norm, ws, str(url), NULL, &out), US_URL_OK);

    n = us_canon_cuts(&out, cuts);
    assert_in_range(n, 1, US_CANON_CUTS);

    for (i = 0, len = 0; i < n; i++) {
        memcpy(&text[len], cuts[i].data, cuts[i].len);
        len += cuts[i].len;
        text[len++] = ' ';
    }

    text[len - 1] = '\0';

    if (expected) {
        assert_string_equal(text, expected);
    }
}


/* what a URL begins with, from the longest to the host */

static void
cuts(void **state)
{
    char  url[512];
    int   i;

    open_profile(US_PROFILE_CRAWLER);

    cuts_are("http://a.com/", "http://a.com/");
    cuts_are("http://a.com/?q", "http://a.com/?q http://a.com/");
    cuts_are("http://a.com/x", "http://a.com/x http://a.com/");
    cuts_are("http://a.com/x/", "http://a.com/x/ http://a.com/x "
                                "http://a.com/");
    cuts_are("http://a.com/x/y?a/b", "http://a.com/x/y?a/b http://a.com/x/y "
             "http://a.com/x/ http://a.com/x http://a.com/");

    /* more segments than there is room for */

    strcpy(url, "http://a.com");

    for (i = 0; i < 100; i++) {
        strcat(url, "/a");
    }

    cuts_are(url, NULL);
    strcat(url, "/");
    cuts_are(url, NULL);
}


int
main(void)
{
#define T(f)  cmocka_unit_test_teardown(f, teardown)

    const struct CMUnitTest  tests[] = {
        T(relative_links), T(crawler), T(clean), T(strip_arguments),
        T(aggressive), T(whatwg), T(wiped), T(lengths), T(limits),
        T(repeats), T(www_first), T(www_and_userinfo), T(www_strip),
        T(www_keep), T(parts), T(explain), T(names), T(signature), T(cuts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
