
/*
 * The laws on real URLs: a corpus, one URL a line, on standard input.
 *
 *     build/laws [LINES]
 *
 * Every line is checked as it is, as a link in the page of the line before,
 * and, made relative to that page, in each way in which a link can be
 * written.  Prints the number of lines, of links and of URLs that have a
 * canonical form.
 */


#include "laws.h"

#include <stdio.h>
#include <stdlib.h>


typedef struct {
    char      *text;                  /* the line before; owned */
    size_t     size;
    us_str_t   s;
} us_page_t;


static size_t  links;


/*
 * The link must lead to the same canonical URL in all profiles that agree on
 * what the target is.
 */

static void
check_link(us_str_t target, us_str_t base, const char *link, size_t len)
{
    us_str_t        in, href;
    us_canon_t      a, b;
    static uint8_t  text[US_URL_MAX];

    in.data = (const uint8_t *) link;
    in.len = len;

    us_laws_check(in, &base);
    links++;

    if (us_laws_normalize(US_PROFILE_CRAWLER, target, NULL, &a) != US_URL_OK) {
        return;
    }

    href.data = text;
    href.len = a.url.href.len;
    memcpy(text, a.url.href.data, href.len);

    if (us_laws_normalize(US_PROFILE_CRAWLER, in, &base, &b) != US_URL_OK
        || b.url.href.len != href.len
        || memcmp(b.url.href.data, text, href.len) != 0)
    {
        us_laws_broken("link", in, &base, href, b.url.href);
    }
}


/* from the page to the target: "//host/path", "/path", "../../path" */

static void
check_links(us_str_t target, us_str_t base)
{
    size_t       i, dir, same, len;
    us_url_t     t, p;
    us_str_t     path;
    us_canon_t   a;

    static char     link[4 * US_URL_MAX];
    static uint8_t  from[US_URL_MAX], to[US_URL_MAX];

    if (us_laws_normalize(US_PROFILE_WHATWG, base, NULL, &a) != US_URL_OK) {
        return;
    }

    p = a.url;
    memcpy(from, p.href.data, p.href.len);
    p.href.data = from;

    if (us_laws_normalize(US_PROFILE_WHATWG, target, NULL, &a) != US_URL_OK) {
        return;
    }

    t = a.url;
    memcpy(to, t.href.data, t.href.len);
    t.href.data = to;

    if (p.protocol_end != t.protocol_end) {
        return;
    }

    check_link(t.href, p.href, (char *) to + t.protocol_end,
               t.href.len - t.protocol_end);

    if (p.pathname_start != t.pathname_start
        || memcmp(from, to, t.pathname_start) != 0)
    {
        return;
    }

    /* a path that begins with "//" cannot be written without the host */

    if (to[t.pathname_start + 1] == '/') {
        return;
    }

    check_link(t.href, p.href, (char *) to + t.pathname_start,
               t.href.len - t.pathname_start);

    /* up from the page's directory to what both have in common, and down */

    path = us_url_pathname(&p);

    for (dir = p.pathname_start + path.len; from[dir - 1] != '/'; dir--) {
        /* void */
    }

    for (same = t.pathname_start, i = same; i < dir && i < t.href.len
         && from[i] == to[i] && to[i] != '?' && to[i] != '#'; i++)
    {
        if (to[i] == '/') {
            same = i;
        }
    }

    /* behind the last common slash; an empty segment there is no file name */

    same++;

    if (same > t.href.len || to[same] == '/' || same > dir) {
        return;
    }

    for (len = 0, i = same; i < dir && len < 3 * US_URL_MAX; i++) {
        if (from[i] == '/') {
            memcpy(link + len, "../", 3);
            len += 3;
        }
    }

    memcpy(link + len, "./", 2);
    len += 2;
    memcpy(link + len, to + same, t.href.len - same);
    len += t.href.len - same;

    check_link(t.href, p.href, link, len);
}


int
main(int argc, char **argv)
{
    char        *line, *swap;
    size_t       size, lines, max, good;
    ssize_t      n;
    us_str_t     in;
    us_page_t    page;
    us_canon_t   out;

    max = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;

    us_laws_open();

    memset(&page, 0, sizeof(page));
    line = NULL;
    size = 0;
    good = 0;

    for (lines = 0; lines < max && (n = getline(&line, &size, stdin)) > 0;
         lines++)
    {
        in.data = (uint8_t *) line;
        in.len = n - (line[n - 1] == '\n');

        us_laws_check(in, page.text ? &page.s : NULL);

        if (page.text) {
            check_links(in, page.s);
        }

        good += us_laws_normalize(US_PROFILE_CRAWLER, in, NULL, &out)
                == US_URL_OK;

        swap = page.text;
        page.text = line;
        page.s = in;
        line = swap;
        n = page.size;
        page.size = size;
        size = n;
    }

    printf("%zu lines, %zu links, %zu canonical\n", lines, links, good);

    free(line);
    free(page.text);

    return 0;
}
