
/*
 * urlstore COMMAND ...: finds the subcommand in the table below and runs it;
 * and what subcommands share.
 */


#include "us_cli.h"
#include "../us_version.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>


#define US_CLI_OPTIONS  32            /* of a command, at most */


const us_cli_command_t  *const us_cli_commands[] = {
    &us_cli_add,
    &us_cli_backup,
    &us_cli_cluster,
    &us_cli_dedup,
    &us_cli_dump,
    &us_cli_get,
    &us_cli_hash,
    &us_cli_help,
    &us_cli_import,
    &us_cli_normalize,
    &us_cli_restore,
    &us_cli_seen,
    &us_cli_sizing,
    &us_cli_stat,
    &us_cli_verify,
    NULL
};


const us_cli_command_t *
us_cli_find(const char *name)
{
    const us_cli_command_t  *const *c;

    for (c = us_cli_commands; *c; c++) {
        if (strcmp(name, (*c)->name) == 0) {
            return *c;
        }
    }

    return NULL;
}


int
us_cli_usage(const us_cli_command_t *c)
{
    us_cli_synopsis(stderr, c);

    return US_CLI_USAGE;
}


int
us_cli_failed(const char *path, const char *why)
{
    fprintf(stderr, "urlstore: \"%s\": %s\n", path, why);

    return US_CLI_USAGE;
}


int
us_cli_option(const us_cli_command_t *c, int argc, char **argv)
{
    char                    letters[2 * US_CLI_OPTIONS + 1], *p;
    struct option           options[US_CLI_OPTIONS + 1], *to;
    const us_cli_option_t  *o;

    p = letters;
    to = options;

    for (o = c->options; o && o->name && to < options + US_CLI_OPTIONS; o++) {

        if (o->key < US_CLI_LONG) {
            *p++ = (char) o->key;

            if (o->arg) {
                *p++ = ':';
            }
        }

        *to++ = (struct option) {
            o->name, o->arg ? required_argument : no_argument, NULL, o->key
        };
    }

    *p = '\0';
    memset(to, 0, sizeof(struct option));

    return getopt_long(argc, argv, letters, options, NULL);
}


size_t
us_cli_size(const char *option, const char *text, size_t least)
{
    char                *end;
    size_t               size;
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
    size = (errno || *end || n > (SIZE_MAX >> 1) >> shift) ? 0 : n << shift;

    if (size < least || !isdigit((unsigned char) *text)) {
        fprintf(stderr, "urlstore: --%s \"%.40s\" is not a size", option,
                text);

        if (least > 1) {
            fprintf(stderr, " of at least %zu bytes", least);
        }

        fprintf(stderr, ", such as 256m\n");
        return 0;
    }

    return size;
}


double
us_cli_count(const char *text, char **end)
{
    double  n;

    n = isdigit((unsigned char) *text) ? strtod(text, end) : 0;

    if (n == 0) {
        *end = (char *) text;
        return 0;
    }

    /* 50M and 5e7 are both what people write */

    if (**end == 'k' || **end == 'K') {
        n *= 1e3;
        (*end)++;

    } else if (**end == 'm' || **end == 'M') {
        n *= 1e6;
        (*end)++;
    }

    return n >= 1 && n <= 1e12 ? n : 0;
}


int
us_cli_profile(const char *name)
{
    int  profile;

    profile = us_profile_parse(us_str_of(name));

    if (profile == -1) {
        fprintf(stderr, "urlstore: unknown profile \"%.40s\"; use crawler, "
                "crawler-clean, aggressive or whatwg\n", name);
    }

    return profile;
}


/* whether --help is among the options; no command has it as an argument */

static int
us_cli_asks(int argc, char **argv)
{
    int  i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return 1;
        }
    }

    return 0;
}


int
us_cli_output(void)
{
    if (ferror(stdout)) {
        fprintf(stderr, "urlstore: standard output could not be written: "
                "%s\n", strerror(errno));
        return US_CLI_USAGE;
    }

    return US_CLI_DONE;
}


/* the exit code of a command, after all of its output was written */

static int
us_cli_streams(int code)
{
    if (code == US_CLI_USAGE) {
        /* it has said why */
        return code;
    }

    (void) fflush(stdout);

    return us_cli_output() ? US_CLI_USAGE : code;
}


int
main(int argc, char **argv)
{
    int                      fd;
    static char              name[64];
    const us_cli_command_t  *c;

    /*
     * A closed standard stream would be the number of the next file opened, and
     * what is printed would be written to that file. Its place is taken by a
     * descriptor with which all reads and writes fail.
     */

    for (fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            (void) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }

    if (argc < 2) {
        us_cli_synopsis(stderr, NULL);
        return US_CLI_USAGE;
    }

    if (strcmp(argv[1], "--version") == 0) {
        printf("urlstore %s\n", US_VERSION);
        return us_cli_streams(US_CLI_DONE);
    }

    if (strcmp(argv[1], "--help") == 0) {
        us_cli_manual(NULL);
        return us_cli_streams(US_CLI_DONE);
    }

    c = us_cli_find(argv[1]);

    if (c == NULL) {
        fprintf(stderr, "urlstore: no command \"%s\"\n", argv[1]);
        us_cli_synopsis(stderr, NULL);
        return US_CLI_USAGE;
    }

    if (us_cli_asks(argc - 1, argv + 1)) {
        us_cli_manual(c);
        return us_cli_streams(US_CLI_DONE);
    }

    /* the name that getopt_long() puts before its messages */

    (void) snprintf(name, sizeof(name), "urlstore %s", c->name);
    argv[1] = name;

    return us_cli_streams(c->run(argc - 1, argv + 1));
}


int
us_cli_slurp(const char *path, size_t max, us_str_t *text)
{
    FILE     *f;
    size_t    n;
    uint8_t  *p;

    f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (f == NULL) {
        return us_cli_failed(path, strerror(errno));
    }

    p = malloc(max + 1);

    if (p == NULL) {
        (void) fclose(f);
        return us_cli_failed(path, "out of memory");
    }

    errno = 0;
    n = fread(p, 1, max + 1, f);

    if (ferror(f) || n > max) {
        (void) us_cli_failed(path, n > max ? "the file is too large"
                                           : strerror(errno));
        (void) fclose(f);
        free(p);
        return US_CLI_USAGE;
    }

    (void) fclose(f);
    p[n] = '\0';
    *text = (us_str_t) { n, p };

    return US_CLI_DONE;
}
