
/*
 * urlstore normalize [--profile P] [--base B] [--json] [FILE...]
 *
 * A line in, a line out: the canonical URL, or "!" and the reason.  With
 * --json a line is {"url": .., "base": ..}, as a service takes it, and the
 * answer {"url": ..} or {"error": ..}; bytes that JSON cannot carry come as
 * U+FFFD, as browsers would have them.
 *
 * whatwg answers every scheme, because this is how its conformance is tested;
 * the others what the store would take.
 *
 * urlstore hash is at the end of this file.
 */


#include "us_cli.h"
#include "us_files.h"
#include "input/us_input.h"
#include "url/us_normalize.h"
#include "url/us_two_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


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
} us_cli_normalize_t;


static us_cli_normalize_t  us_cli_normalizing;


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


static int
us_normalize_lines(void *data, us_str_t *lines, size_t n)
{
    us_cli_normalize_t *ctx = data;

    size_t            i;
    uint8_t          *end, quoted[us_json_quoted_max(US_URL_MAX)];
    us_base_t        *base, *own;
    us_canon_t        canon;
    us_input_t        in;
    const char       *error;
    us_verdict_t      rc;
    us_input_item_t   item;

    for (i = 0; i < n; i++) {
        item = (us_input_item_t) { .text = lines[i] };
        base = ctx->base;
        own = NULL;
        rc = ctx->base_error;
        error = NULL;

        if (ctx->json) {
            us_input_init(&in, US_INPUT_NDJSON, SIZE_MAX);
            in.json.lone = 1;
            us_input_piece(&in, lines[i].data, lines[i].len);
            us_input_end(&in);

            if (us_input_next(&in, &item) != US_INPUT_ITEM
                || item.kind != US_INPUT_URL)
            {
                error = "json";
            }
        }

        if (error == NULL && item.base.data) {
            own = us_base_create(ctx->norm, ctx->ws, item.base, &rc);
            base = own;
        }

        if (error == NULL && rc == US_URL_OK) {
            rc = us_normalize(ctx->norm, ctx->ws, item.text, base, &canon);
        }

        us_base_destroy(own);

        if (error == NULL && rc != US_URL_OK) {
            error = us_verdict_name(rc);
        }

        if (error) {
            ctx->refused = 1;
            printf(ctx->json ? "{\"error\": \"%s\"}\n" : "!%s\n", error);

        } else if (ctx->json) {
            end = us_json_quote(quoted, canon.url.href);
            printf("{\"url\": %.*s}\n", (int) (end - quoted),
                   (char *) quoted);

        } else {
            printf("%.*s\n", (int) canon.url.href.len, canon.url.href.data);
        }

        if (ctx->json) {
            us_input_free(&in);
        }
    }

    return us_cli_output();
}


/* the same for us_cli_hash; US_CLI_DONE, or a message was printed */

static int
us_normalize_open(us_cli_normalize_t *ctx)
{
    ctx->norm = us_norm_create((us_profile_t) ctx->profile);
    ctx->ws = ctx->norm ? us_norm_ws_create(ctx->norm) : NULL;

    ctx->files.flush = us_cli_flush;
    ctx->files.data = ctx;
    ctx->files.cut = 1;

    return ctx->ws ? US_CLI_DONE : us_cli_fail("out of memory");
}


static int
us_normalize_run(const us_cli_command_t *c, int n, char **args)
{
    us_cli_normalize_t *ctx = c->own;

    int  rc;

    ctx->files.take = us_normalize_lines;
    ctx->files.progress = !isatty(1);

    if (us_normalize_open(ctx) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    us_norm_set_any_scheme(ctx->norm, ctx->profile == US_PROFILE_WHATWG);

    if (ctx->base_text) {
        ctx->base = us_base_create(ctx->norm, ctx->ws,
                                   us_str_of(ctx->base_text),
                                   &ctx->base_error);
    }

    rc = us_files_all(&ctx->files, n, args);

    return rc ? rc : ctx->refused ? US_CLI_REFUSED : US_CLI_DONE;
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
    .options = us_normalize_list,
    .own = &us_cli_normalizing
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
us_hash_run(const us_cli_command_t *c, int n, char **args)
{
    us_cli_normalize_t *ctx = c->own;

    int  rc;

    ctx->files.take = us_hash_lines;

    rc = us_normalize_open(ctx);

    if (rc == US_CLI_DONE) {
        rc = n ? us_files_args(&ctx->files, n, args)
               : us_files_all(&ctx->files, 0, NULL);
    }

    return rc ? rc : ctx->refused ? US_CLI_REFUSED : US_CLI_DONE;
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
        "line.",
    .own = &us_cli_normalizing
};
