
/*
 * urlstore COMMAND ...: finds the subcommand in the table below and runs it;
 * and what subcommands share.
 */


#include "us_cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>


typedef struct {
    const char  *name;
    us_cli_pt    run;
    const char  *usage;
} us_cli_command_t;


static const us_cli_command_t  us_cli_commands[] = {
    { "bench", us_cli_bench,
      "--json [--shuffle SEED] [--limit N] [--zone SIZE] [--fill]\n"
      "                 [--huge] FILE" },
    { "dedup", us_cli_dedup,
      "[-q] [--count] [--ids] [--filter N,RATE] [--normalize P]\n"
      "                 [--follow DIR] [--memory SIZE] [FILE...]" },
    { "dump", us_cli_dump,
      "[--deleted | --sorted [--delta] [--memory SIZE]] DIR" },
    { "hash", us_cli_hash, "URL...  (or < URLS)" },
    { "import", us_cli_import,
      "[--profile P] [--www first|keep|strip] DIR  < LINES" },
    { "normalize", us_cli_normalize,
      "[--profile P] [--base B] [--json]  < URLS" },
    { "stat", us_cli_stat, "DIR" },
    { "verify", us_cli_verify, "[--fast] DIR" },
    { NULL, NULL, NULL }
};


static void
us_cli_usage_one(FILE *f, const us_cli_command_t *c)
{
    fprintf(f, "usage: urlstore %s %s\n", c->name, c->usage);
}


int
us_cli_usage(const char *name)
{
    const us_cli_command_t  *c;

    for (c = us_cli_commands; c->name; c++) {
        if (strcmp(name, c->name) == 0) {
            us_cli_usage_one(stderr, c);
        }
    }

    return US_CLI_USAGE;
}


size_t
us_cli_size(const char *text)
{
    char                *end;
    unsigned             shift;
    unsigned long long   n;

    errno = 0;
    n = strtoull(text, &end, 10);
    shift = 0;

    switch (*end) {
    case 'k': case 'K':
        shift = 10;
        break;
    case 'm': case 'M':
        shift = 20;
        break;
    case 'g': case 'G':
        shift = 30;
        break;
    }

    end += (shift != 0);

    if (errno || *end || text[0] == '-' || n > (SIZE_MAX >> 1) >> shift) {
        return 0;
    }

    return n << shift;
}


/* is "--help" what a command is asked for?  none takes it as an argument */

static int
us_cli_help(int argc, char **argv)
{
    return argc == 3 && strcmp(argv[2], "--help") == 0;
}


static void
us_cli_usage_all(FILE *f)
{
    const us_cli_command_t  *c;

    fprintf(f, "usage: urlstore COMMAND [OPTION...] [ARGUMENT...]\n\n");

    for (c = us_cli_commands; c->name; c++) {
        fprintf(f, "  urlstore %s %s\n", c->name, c->usage);
    }
}


/*
 * The exit code of a command: what it read from standard input, or wrote to
 * standard output, must have been all.
 */

static int
us_cli_streams(int code)
{
    if (code == US_CLI_USAGE) {
        /* it has said why */
        return code;
    }

    if (ferror(stdin)) {
        fprintf(stderr, "urlstore: standard input could not be read to its "
                "end\n");
        return US_CLI_USAGE;
    }

    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "urlstore: standard output could not be written: "
                "%s\n", strerror(errno));
        return US_CLI_USAGE;
    }

    return code;
}


int
main(int argc, char **argv)
{
    const us_cli_command_t  *c;

    if (argc < 2) {
        us_cli_usage_all(stderr);
        return US_CLI_USAGE;
    }

    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) {
        us_cli_usage_all(stdout);
        return us_cli_streams(US_CLI_DONE);
    }

    for (c = us_cli_commands; c->name; c++) {
        if (strcmp(argv[1], c->name) != 0) {
            continue;
        }

        if (us_cli_help(argc, argv)) {
            us_cli_usage_one(stdout, c);
            return us_cli_streams(US_CLI_DONE);
        }

        return us_cli_streams(c->run(argc - 1, argv + 1));
    }

    fprintf(stderr, "urlstore: no command \"%s\"\n", argv[1]);
    us_cli_usage_all(stderr);

    return US_CLI_USAGE;
}
