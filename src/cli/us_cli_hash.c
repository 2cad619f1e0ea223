
/*
 * urlstore hash URL...
 *
 * A line for each URL: site hash, path hash and the canonical URL, separated
 * by tabs, or "!" and the reason why it has none.  Without arguments URLs come
 * from standard input, one a line.
 */


#include "us_cli.h"
#include "url/us_two_hash.h"

#include <stdio.h>
#include <stdlib.h>


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
us_hash_url(const us_norm_t *norm, us_norm_ws_t *ws, us_str_t in)
{
    us_canon_t     canon;
    us_verdict_t   rc;
    us_two_hash_t  h;

    rc = us_normalize(norm, ws, in, NULL, &canon);

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
us_hash_lines(const us_norm_t *norm, us_norm_ws_t *ws)
{
    int       code;
    char     *line;
    size_t    size;
    ssize_t   n;
    us_str_t  in;

    code = US_CLI_DONE;
    line = NULL;
    size = 0;

    while ((n = getline(&line, &size, stdin)) > 0) {
        in.data = (uint8_t *) line;
        in.len = n - (line[n - 1] == '\n');
        code |= us_hash_url(norm, ws, in);
    }

    free(line);

    return code;
}


static int
us_hash_run(int argc, char **argv)
{
    int            i, code;
    us_str_t       in;
    us_norm_t     *norm;
    us_norm_ws_t  *ws;

    if (us_cli_option(&us_cli_hash, argc, argv) != -1) {
        return us_cli_usage(&us_cli_hash);
    }

    norm = us_norm_create(US_PROFILE_CRAWLER);

    if (norm == NULL || us_norm_seal(norm) != 0
        || (ws = us_norm_ws_create(norm)) == NULL)
    {
        fprintf(stderr, "urlstore: out of memory\n");
        us_norm_destroy(norm);
        return US_CLI_USAGE;
    }

    i = optind;
    code = US_CLI_DONE;

    if (i == argc) {
        code = us_hash_lines(norm, ws);
    }

    for ( /* void */ ; i < argc; i++) {
        in.data = (uint8_t *) argv[i];
        in.len = strlen(argv[i]);
        code |= us_hash_url(norm, ws, in);
    }

    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return code;
}
