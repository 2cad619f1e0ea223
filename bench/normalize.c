
/*
 * ns per URL, a raw link in, its canonical text out, beside uriparser and
 * libcurl (set, get; with the options that make it normalize).
 *
 *     build/bench/normalize [FILE...]
 *
 * FILE has a URL a line; without one, 100,000 lines of each of six lists are
 * taken, spread over it (all of a shorter one).  CPU time of the thread, all
 * columns interleaved, median of the rounds: compare columns of one run, not
 * runs.
 */


#include "url/us_normalize.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uriparser/Uri.h>


#define LINES   100000
#define ROUNDS  11


typedef struct {
    us_str_t  *url;
    size_t     n;
    size_t     bytes;
    char      *text;
} urls_t;


typedef size_t (*run_pt)(const urls_t *urls, void *data);


typedef struct {
    const char  *name;
    run_pt       run;
    void        *data;
    double       ns[ROUNDS];
} column_t;


typedef struct {
    us_norm_t     *norm;
    us_norm_ws_t  *ws;
} profile_t;


static double
now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return t.tv_sec * 1e9 + t.tv_nsec;
}


static size_t
run_copy(const urls_t *urls, void *data)
{
    size_t          i, sum;
    static uint8_t  out[US_URL_MAX];

    for (sum = 0, i = 0; i < urls->n; i++) {
        if (urls->url[i].len <= sizeof(out)) {
            memcpy(out, urls->url[i].data, urls->url[i].len);
            sum += out[urls->url[i].len / 2];
        }
    }

    return sum;
}


static size_t
run_profile(const urls_t *urls, void *data)
{
    size_t       i, sum;
    profile_t   *p;
    us_canon_t   out;

    p = data;

    for (sum = 0, i = 0; i < urls->n; i++) {
        if (us_normalize(p->norm, p->ws, urls->url[i], NULL, &out)
            == US_URL_OK)
        {
            sum += out.url.href.len + out.merge;
        }
    }

    return sum;
}


/* four links of each page, as pages write them; the base parsed once */

static size_t
run_resolve(const urls_t *urls, void *data)
{
    size_t         i, sum;
    profile_t     *p;
    us_base_t     *base;
    us_canon_t     out;
    us_verdict_t   why;

    p = data;
    base = NULL;

    for (sum = 0, i = 0; i < urls->n; i++) {
        const us_str_t  links[] = {
            us_string("/a/page.html"), us_string("../../up.html"),
            us_string("same.html?q=1"), us_string("./here.html")
        };

        if (i % 4 == 0) {
            us_base_destroy(base);
            base = us_base_create(p->norm, p->ws, urls->url[i], &why);
        }

        if (base && us_normalize(p->norm, p->ws, links[i % 4], base, &out)
            == US_URL_OK)
        {
            sum += out.url.href.len;
        }
    }

    us_base_destroy(base);

    return sum;
}


static size_t
run_uriparser(const urls_t *urls, void *data)
{
    int           len;
    size_t        i, sum;
    UriUriA       uri;
    const char   *s, *bad;
    static char   out[4 * US_URL_MAX];

    for (sum = 0, i = 0; i < urls->n; i++) {
        s = (const char *) urls->url[i].data;

        if (uriParseSingleUriExA(&uri, s, s + urls->url[i].len, &bad)
            != URI_SUCCESS)
        {
            continue;
        }

        if (uriNormalizeSyntaxA(&uri) == URI_SUCCESS
            && uriToStringA(out, &uri, sizeof(out), &len) == URI_SUCCESS)
        {
            sum += len;
        }

        uriFreeUriMembersA(&uri);
    }

    return sum;
}


static size_t
run_libcurl(const urls_t *urls, void *data)
{
    char   *out;
    size_t  i, sum;
    CURLU  *u;

    for (sum = 0, i = 0; i < urls->n; i++) {
        u = curl_url();

        if (curl_url_set(u, CURLUPART_URL, (const char *) urls->url[i].data,
                         CURLU_URLENCODE) == CURLUE_OK
            && curl_url_get(u, CURLUPART_URL, &out, CURLU_NO_DEFAULT_PORT)
            == CURLUE_OK)
        {
            sum += strlen(out);
            curl_free(out);
        }

        curl_url_cleanup(u);
    }

    return sum;
}


/* every URL ends with a NUL, for libcurl */

static void
urls_read(urls_t *urls, FILE *f)
{
    char    *line;
    size_t   size, used, room, i;
    ssize_t  n;

    memset(urls, 0, sizeof(urls_t));

    urls->url = malloc(LINES * sizeof(us_str_t));
    room = 0;
    used = 0;
    line = NULL;
    size = 0;

    while (urls->n < LINES && (n = getline(&line, &size, f)) > 0) {

        if (used + n > room) {
            room = 2 * room + n;
            urls->text = realloc(urls->text, room);
        }

        if (urls->url == NULL || urls->text == NULL) {
            exit(2);
        }

        n -= line[n - 1] == '\n';
        memcpy(urls->text + used, line, n);
        urls->text[used + n] = '\0';

        urls->url[urls->n++].len = n;
        urls->bytes += n;
        used += n + 1;
    }

    for (used = 0, i = 0; i < urls->n; i++) {
        urls->url[i].data = (uint8_t *) urls->text + used;
        used += urls->url[i].len + 1;
    }

    free(line);
}


static int
compare(const void *a, const void *b)
{
    double  x, y;

    x = *(const double *) a;
    y = *(const double *) b;

    return (x > y) - (x < y);
}


static void
bench(const char *name, FILE *f, column_t *columns, size_t n)
{
    size_t           i, round;
    double           from;
    urls_t           urls;
    volatile size_t  sum;

    urls_read(&urls, f);

    if (urls.n == 0) {
        return;
    }

    for (sum = 0, round = 0; round < ROUNDS; round++) {
        for (i = 0; i < n; i++) {
            from = now();
            sum += columns[i].run(&urls, columns[i].data);
            columns[i].ns[round] = (now() - from) / urls.n;
        }
    }

    printf("%-30.30s %5.0f", name, (double) urls.bytes / urls.n);

    for (i = 0; i < n; i++) {
        qsort(columns[i].ns, ROUNDS, sizeof(double), compare);
        printf(" %10.1f", columns[i].ns[ROUNDS / 2]);
    }

    printf("\n");
    fflush(stdout);

    free(urls.url);
    free(urls.text);
}


static void
profile_open(profile_t *p, us_profile_t profile, us_www_t www)
{
    p->norm = us_norm_create(profile);

    if (p->norm == NULL) {
        exit(2);
    }

    us_norm_set_www(p->norm, www);

    p->ws = us_norm_ws_create(p->norm);

    if (p->ws == NULL) {
        exit(2);
    }
}


/* LINES of a list, spread over it */

static FILE *
list_open(const char *name)
{
    char  command[300];

    snprintf(command, sizeof(command),
             "tools/corpus.sh cat %s | awk '{ line[NR] = $0 } END {"
             " step = NR < %u ? 1 : NR / %u;"
             " for (i = 1; i <= NR; i += step) print line[int(i)] }'",
             name, LINES, LINES);

    return popen(command, "r");
}


int
main(int argc, char **argv)
{
    int         i;
    FILE       *f;
    size_t      k;
    profile_t   p[5];

    static const char  *lists[] = {
        "reddit_submissions", "eot2024_A", "alphagov_old_urls",
        "html_news_blogs_pages", "brave_sitelist", "tweetfeed_iocs"
    };

    column_t  columns[] = {
        { "memcpy", run_copy, NULL, { 0 } },
        { "whatwg", run_profile, &p[0], { 0 } },
        { "crawler", run_profile, &p[1], { 0 } },
        { "www=keep", run_profile, &p[2], { 0 } },
        { "clean", run_profile, &p[3], { 0 } },
        { "aggressive", run_profile, &p[4], { 0 } },
        { "relative", run_resolve, &p[1], { 0 } },
        { "uriparser", run_uriparser, NULL, { 0 } },
        { "libcurl", run_libcurl, NULL, { 0 } }
    };

    profile_open(&p[0], US_PROFILE_WHATWG, US_WWW_KEEP);
    profile_open(&p[1], US_PROFILE_CRAWLER, US_WWW_FIRST);
    profile_open(&p[2], US_PROFILE_CRAWLER, US_WWW_KEEP);
    profile_open(&p[3], US_PROFILE_CRAWLER_CLEAN, US_WWW_FIRST);
    profile_open(&p[4], US_PROFILE_AGGRESSIVE, US_WWW_FIRST);

    printf("%-30s %5s", "ns per URL", "bytes");

    for (k = 0; k < sizeof(columns) / sizeof(columns[0]); k++) {
        printf(" %10s", columns[k].name);
    }

    printf("\n");

    for (i = 1; i < argc; i++) {
        f = fopen(argv[i], "r");

        if (f == NULL) {
            perror(argv[i]);
            return 2;
        }

        bench(argv[i], f, columns, sizeof(columns) / sizeof(columns[0]));
        fclose(f);
    }

    for (k = 0; argc == 1 && k < sizeof(lists) / sizeof(lists[0]); k++) {
        f = list_open(lists[k]);

        if (f == NULL) {
            perror(lists[k]);
            return 2;
        }

        bench(lists[k], f, columns, sizeof(columns) / sizeof(columns[0]));

        if (pclose(f) != 0) {
            fprintf(stderr, "%s could not be read\n", lists[k]);
            return 2;
        }
    }

    return 0;
}
