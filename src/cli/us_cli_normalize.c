
/*
 * urlstore normalize [--profile P] [--base B] [--json] [FILE...]
 *
 * A line in, a line out: the canonical URL, or "!" and the reason.  With
 * --json a line is {"url": .., "base": ..} and the answer {"url": ..} or
 * {"error": ..}; bytes that JSON cannot carry come as U+FFFD, as browsers
 * would have them.
 *
 * whatwg answers every scheme, because this is how its conformance is tested;
 * the others what the store would take.
 *
 * urlstore hash is at the end of this file.
 */


#include "us_cli.h"
#include "us_files.h"
#include "input/us_json.h"
#include "url/us_normalize.h"
#include "url/us_two_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


/* a string of a line's object; its memory is kept from line to line */

typedef struct {
    us_json_buf_t   text;
    unsigned        given:1;
} us_cli_member_t;


typedef struct {
    us_norm_t        *norm;
    us_norm_ws_t     *ws;
    int               profile;
    const char       *base_text;      /* of --base */
    us_base_t        *base;
    us_verdict_t      base_error;
    int               json;
    int               refused;
    us_files_t        files;

    us_json_t         reader;
    us_cli_member_t   url;
    us_cli_member_t   base_url;
    us_cli_member_t  *member;         /* whose value comes next, or NULL */
} us_cli_normalize_t;


static const us_cli_option_t  us_normalize_list[] = {
    { 'p', "profile", "P", "The rules: crawler (the default), "
      "crawler-clean, aggressive or whatwg.",
      us_cli_profile, offsetof(us_cli_normalize_t, profile) },
    { 'b', "base", "URL", "What relative references refer to.",
      us_cli_text, offsetof(us_cli_normalize_t, base_text) },
    { 'j', "json", NULL, "Read lines of {\"url\": .., \"base\": ..}, print "
      "{\"url\": ..} or {\"error\": ..}.",
      NULL, offsetof(us_cli_normalize_t, json) },
    { .name = NULL }
};


/* members but "url" and "base", both strings, are skipped; -1: it is wrong */

static int
us_normalize_event(us_cli_normalize_t *ctx, us_json_event_t event)
{
    us_str_t          text;
    unsigned          depth;
    us_cli_member_t  *m;

    text = ctx->reader.text;
    depth = ctx->reader.depth - (event == US_JSON_OBJECT
                                 || event == US_JSON_ARRAY);

    if (depth == 0) {
        return event == US_JSON_OBJECT || event == US_JSON_OBJECT_END
               || event == US_JSON_END ? 0 : -1;
    }

    if (depth > 1 || event == US_JSON_OBJECT_END
        || event == US_JSON_ARRAY_END)
    {
        return 0;
    }

    if (event == US_JSON_KEY) {
        ctx->member = NULL;

        if (text.len == 3 && memcmp(text.data, "url", 3) == 0) {
            ctx->member = &ctx->url;

        } else if (text.len == 4 && memcmp(text.data, "base", 4) == 0) {
            ctx->member = &ctx->base_url;
        }

        return 0;
    }

    m = ctx->member;

    if (m == NULL || event == US_JSON_NULL) {
        return 0;
    }

    if (event != US_JSON_STRING || m->given) {
        return -1;
    }

    m->given = 1;
    m->text.len = 0;

    return us_json_buf_add(&m->text, text.data, text.len);
}


static int
us_normalize_lines(void *data, us_str_t *lines, size_t n)
{
    us_cli_normalize_t *ctx = data;

    size_t            i;
    uint8_t          *end, quoted[us_json_quoted_max(US_URL_MAX)];
    us_str_t          in;
    us_base_t        *base, *own;
    us_canon_t        canon;
    us_verdict_t      rc;
    us_json_event_t   event;

    for (i = 0; i < n; i++) {
        in = lines[i];
        in.len -= (in.len && in.data[in.len - 1] == '\r');

        if (ctx->json) {
            ctx->url.given = 0;
            ctx->base_url.given = 0;
            ctx->member = NULL;

            us_json_text(&ctx->reader, in);

            do {
                event = us_json_next(&ctx->reader);

                if (event != US_JSON_ERROR
                    && us_normalize_event(ctx, event) != 0)
                {
                    event = US_JSON_ERROR;
                }

            } while (event != US_JSON_END && event != US_JSON_ERROR);

            if (event == US_JSON_ERROR || !ctx->url.given) {
                ctx->refused = 1;
                printf("{\"error\": \"json\"}\n");
                continue;
            }
        }

        base = ctx->base;
        rc = ctx->base_error;
        own = NULL;

        if (ctx->json) {
            in = (us_str_t) { ctx->url.text.len, ctx->url.text.data };
        }

        if (ctx->json && ctx->base_url.given) {
            own = us_base_create(ctx->norm, ctx->ws,
                                 (us_str_t) { ctx->base_url.text.len,
                                              ctx->base_url.text.data }, &rc);
            base = own;
        }

        if (rc == US_URL_OK) {
            rc = us_normalize(ctx->norm, ctx->ws, in, base, &canon);
        }

        us_base_destroy(own);

        if (rc != US_URL_OK) {
            ctx->refused = 1;
            printf(ctx->json ? "{\"error\": \"%s\"}\n" : "!%s\n",
                   us_verdict_name(rc));

        } else if (ctx->json) {
            end = us_json_quote(quoted, canon.url.href);
            printf("{\"url\": %.*s}\n", (int) (end - quoted),
                   (char *) quoted);

        } else {
            fwrite(canon.url.href.data, 1, canon.url.href.len, stdout);
            putchar('\n');
        }
    }

    return us_cli_output();
}


static int
us_normalize_flush(void *data)
{
    (void) fflush(stdout);

    return us_cli_output();
}


/* the same for us_cli_hash; US_CLI_DONE, or a message was printed */

static int
us_normalize_open(us_cli_normalize_t *ctx)
{
    ctx->norm = us_norm_create((us_profile_t) ctx->profile);
    ctx->ws = ctx->norm ? us_norm_ws_create(ctx->norm) : NULL;

    ctx->files.flush = us_normalize_flush;
    ctx->files.data = ctx;
    ctx->files.cut = 1;

    return ctx->ws ? US_CLI_DONE : us_cli_fail("out of memory");
}


/* after both; the exit code */

static int
us_normalize_close(us_cli_normalize_t *ctx, int rc)
{
    free(ctx->url.text.data);
    free(ctx->base_url.text.data);
    us_json_free(&ctx->reader);
    us_base_destroy(ctx->base);
    us_norm_ws_destroy(ctx->ws);
    us_norm_destroy(ctx->norm);

    return rc ? rc : ctx->refused ? US_CLI_REFUSED : US_CLI_DONE;
}


static int
us_normalize_run(int argc, char **argv)
{
    us_cli_normalize_t  ctx;

    memset(&ctx, 0, sizeof(ctx));

    ctx.profile = US_PROFILE_CRAWLER;
    ctx.files.take = us_normalize_lines;
    ctx.files.progress = !isatty(1);

    if (us_cli_options(&us_cli_normalize, argc, argv, &ctx, 0, -1)
        != US_CLI_DONE)
    {
        return US_CLI_USAGE;
    }

    us_json_init(&ctx.reader, SIZE_MAX);
    ctx.reader.lone = 1;

    if (us_normalize_open(&ctx) != US_CLI_DONE) {
        return us_normalize_close(&ctx, US_CLI_USAGE);
    }

    us_norm_set_any_scheme(ctx.norm, ctx.profile == US_PROFILE_WHATWG);

    if (ctx.base_text) {
        ctx.base = us_base_create(ctx.norm, ctx.ws, us_str_of(ctx.base_text),
                                  &ctx.base_error);
    }

    return us_normalize_close(&ctx, us_files_all(&ctx.files, argc - optind,
                                                 argv + optind));
}


const us_cli_command_t  us_cli_normalize = {
    .name = "normalize",
    .run = us_normalize_run,
    .args = "[FILE...]",
    .summary = "print the canonical form of URLs",
    .text =
        "Prints a line for each line of the files, or of standard input "
        "(\"-\"), packed by gzip, xz or zstd or not: the canonical URL, or "
        "\"!\" and the reason why it is refused. whatwg accepts every scheme, "
        "the other profiles those of a store.",
    .options = us_normalize_list
};


/*
 * urlstore hash URL...
 *
 * A line for each URL: site hash, path hash and the canonical URL, separated
 * by tabs, or "!" and the reason why it has none.  Without arguments URLs come
 * from standard input, one a line.
 */


static int
us_hash_lines(void *data, us_str_t *lines, size_t n)
{
    us_cli_normalize_t *ctx = data;

    size_t         i;
    us_canon_t     canon;
    us_verdict_t   rc;
    us_two_hash_t  h;

    for (i = 0; i < n; i++) {
        rc = us_normalize(ctx->norm, ctx->ws, lines[i], NULL, &canon);

        if (rc != US_URL_OK) {
            printf("!%s\n", us_verdict_name(rc));
            ctx->refused = 1;
            continue;
        }

        h = us_two_hash(&canon);

        printf("%u\t%u\t%.*s\n", h.site, h.path, (int) canon.url.href.len,
               canon.url.href.data);
    }

    return us_cli_output();
}


static int
us_hash_run(int argc, char **argv)
{
    int                 rc;
    us_str_t            url;
    us_cli_normalize_t  ctx;

    if (us_cli_options(&us_cli_hash, argc, argv, NULL, 0, -1) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    memset(&ctx, 0, sizeof(us_cli_normalize_t));
    ctx.profile = US_PROFILE_CRAWLER;
    ctx.files.take = us_hash_lines;

    rc = us_normalize_open(&ctx);

    if (rc == US_CLI_DONE && optind == argc) {
        rc = us_files_all(&ctx.files, 0, NULL);
    }

    for ( /* void */ ; rc == US_CLI_DONE && optind < argc; optind++) {
        url = us_str_of(argv[optind]);
        rc = us_hash_lines(&ctx, &url, 1);
    }

    return us_normalize_close(&ctx, rc);
}


const us_cli_command_t  us_cli_hash = {
    .name = "hash",
    .run = us_hash_run,
    .args = "[URL...]",
    .summary = "print the site and path hashes of URLs",
    .text =
        "Prints a line for each URL: site hash, path hash and the canonical "
        "URL, separated by tabs, or \"!\" and the reason why the URL is "
        "refused. Without arguments it reads URLs from standard input, one a "
        "line."
};
