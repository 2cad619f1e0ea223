
/*
 * The store as a library: opens a directory, adds links, looks up.
 *
 *     cc embed.c $(pkg-config --cflags --libs urlstore) -o embed
 *     ./embed DIR http://example.com/ ../a HTTP://EXAMPLE.com:80/
 *
 * The first link is the page, the others are links in it.  Run it twice: the
 * second time all are seen.
 */


#include <life/us_embed.h>
#include <url/us_normalize.h>

#include <inttypes.h>
#include <stdio.h>


static us_str_t
text(const char *s)
{
    us_str_t  str = { strlen(s), (const uint8_t *) s };

    return str;
}


/* one link: normalized, added, and read back by its id */

static int
add(us_embed_t *e, us_norm_t *norm, us_norm_ws_t *ws, us_base_t *base,
    const char *link)
{
    size_t           len;
    us_canon_t       canon;
    us_verdict_t     verdict;
    us_store_item_t  item;
    static uint8_t   url[US_URL_MAX + 8];

    verdict = us_normalize(norm, ws, text(link), base, &canon);

    if (verdict != US_URL_OK) {
        printf("-\tinvalid\t%s\n", us_verdict_name(verdict));
        return 0;
    }

    memset(&item, 0, sizeof(item));
    item.url = canon.url.href;
    item.merge = canon.merge;

    if (us_embed_add(e, &item, 1) == -1) {
        fprintf(stderr, "embed: %s\n", us_embed_error(e));
        return -1;
    }

    if (item.status == US_FULL
        || us_store_get(us_embed_store(e), item.id, url, &len) != US_OK)
    {
        fprintf(stderr, "embed: no memory for more URLs\n");
        return -1;
    }

    printf("%" PRIu64 "\t%s\t%.*s\n", item.id,
           item.status == US_NEW ? "new" : "seen", (int) len,
           (const char *) url);

    return 0;
}


int
main(int argc, char **argv)
{
    int               i, rc;
    char              error[US_EMBED_ERROR];
    us_norm_t        *norm;
    us_base_t        *base;
    us_embed_t       *e;
    us_norm_ws_t     *ws;
    us_verdict_t      why;
    us_embed_conf_t   conf;

    if (argc < 3) {
        fprintf(stderr, "usage: embed DIR PAGE [LINK...]\n");
        return 2;
    }

    norm = us_norm_create(US_PROFILE_CRAWLER);

    if (norm == NULL
        || (ws = us_norm_ws_create(norm)) == NULL)
    {
        fprintf(stderr, "embed: out of memory\n");
        return 2;
    }

    memset(&conf, 0, sizeof(conf));
    conf.norm = us_norm_signature(norm);

    e = us_embed_open(argv[1], &conf, error);

    if (e == NULL) {
        fprintf(stderr, "embed: \"%s\": %s\n", argv[1], error);
        return 2;
    }

    base = us_base_create(norm, ws, text(argv[2]), &why);
    rc = 0;

    for (i = 2; i < argc && rc == 0; i++) {
        rc = add(e, norm, ws, base, argv[i]);
    }

    if (us_embed_close(e, error) == -1) {
        fprintf(stderr, "embed: \"%s\": %s\n", argv[1], error);
        rc = -1;
    }

    us_base_destroy(base);
    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return rc == 0 ? 0 : 1;
}
