
/*
 * urlstore hash URL...
 *
 * A line for each URL: site hash, path hash and the canonical URL, separated
 * by tabs, or "!" and the reason why it has none.  Without arguments URLs come
 * from standard input, one a line.
 */


#include "us_cli.h"
#include "us_files.h"
#include "url/us_two_hash.h"

#include <stdio.h>
#include <stdlib.h>


typedef struct {
    us_norm_t     *norm;
    us_norm_ws_t  *ws;
    int            code;
} us_hash_t;


static int us_hash_run(int argc, char **argv);


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


static int
us_hash_url(const us_hash_t *to, us_str_t in)
{
    us_canon_t     canon;
    us_verdict_t   rc;
    us_two_hash_t  h;

    rc = us_normalize(to->norm, to->ws, in, NULL, &canon);

    if (rc != US_URL_OK) {
        printf("!%s\n", us_verdict_name(rc));
        return US_CLI_REFUSED;
    }

    h = us_two_hash(&canon);

    printf("%u\t%u\t%.*s\n", h.site, h.path, (int) canon.url.href.len,
           canon.url.href.data);

    return US_CLI_DONE;
}


static int
us_hash_lines(void *data, us_str_t *lines, size_t n)
{
    us_hash_t *h = data;

    size_t  i;

    for (i = 0; i < n; i++) {
        h->code |= us_hash_url(h, lines[i]);
    }

    return us_cli_output();
}


static int
us_hash_flush(void *data)
{
    (void) fflush(stdout);

    return us_cli_output();
}


static int
us_hash_input(us_hash_t *h)
{
    int         rc;
    us_files_t  files;

    memset(&files, 0, sizeof(us_files_t));
    files.take = us_hash_lines;
    files.flush = us_hash_flush;
    files.data = h;
    files.cut = 1;

    rc = US_CLI_USAGE;

    if (us_files_init(&files) == 0
        && us_files_run(&files, 0, NULL) == US_CLI_DONE)
    {
        rc = us_files_code(&files);
    }

    us_files_free(&files);

    return rc;
}


static int
us_hash_run(int argc, char **argv)
{
    int        i, rc;
    us_str_t   in;
    us_hash_t  h;

    if (us_cli_option(&us_cli_hash, argc, argv) != -1) {
        return us_cli_usage(&us_cli_hash);
    }

    memset(&h, 0, sizeof(us_hash_t));
    h.norm = us_norm_create(US_PROFILE_CRAWLER);

    if (h.norm == NULL || us_norm_seal(h.norm) != 0
        || (h.ws = us_norm_ws_create(h.norm)) == NULL)
    {
        fprintf(stderr, "urlstore: out of memory\n");
        us_norm_destroy(h.norm);
        return US_CLI_USAGE;
    }

    rc = optind == argc ? us_hash_input(&h) : US_CLI_DONE;

    for (i = optind; i < argc; i++) {
        in.data = (uint8_t *) argv[i];
        in.len = strlen(argv[i]);
        h.code |= us_hash_url(&h, in);
    }

    us_norm_ws_destroy(h.ws);
    us_norm_destroy(h.norm);

    return rc ? rc : h.code;
}
