
/*
 * What subcommands share: options, their values, messages, files.  See
 * us_cli.h.
 */


#include "us_cli.h"
#include "../us_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>


#define US_CLI_OPTIONS  32            /* of a command, at most */


int
us_cli_fail(const char *fmt, ...)
{
    va_list  args;

    fprintf(stderr, "urlstore: ");

    va_start(args, fmt);
    (void) vfprintf(stderr, fmt, args);
    va_end(args);

    fprintf(stderr, "\n");

    return US_CLI_USAGE;
}


int
us_cli_failed(const char *path, const char *why)
{
    return us_cli_fail("\"%s\": %s", path, why);
}


void
us_cli_synopsis(FILE *f, const us_cli_command_t *c)
{
    int                     column, indent;
    char                    buf[128];
    const us_cli_option_t  *o;

    indent = fprintf(f, "usage: urlstore %s", c->name);
    column = indent;

    for (o = c->options; o && o->name; o++) {
        (void) snprintf(buf, sizeof(buf), "[--%s%s%s]", o->name,
                        o->arg ? " " : "", o->arg ? o->arg : "");

        if (column + 1 + (int) strlen(buf) > US_CLI_WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        }

        column += fprintf(f, " %s", buf);
    }

    if (column + 1 + (int) strlen(c->args) > US_CLI_WIDTH) {
        fprintf(f, "\n%*s", indent, "");
    }

    fprintf(f, "%s%s\n", c->args[0] ? " " : "", c->args);
}


int
us_cli_usage(const us_cli_command_t *c)
{
    us_cli_synopsis(stderr, c);

    return US_CLI_USAGE;
}


int
us_cli_options(const us_cli_command_t *c, int argc, char **argv)
{
    int                     key, least, most;
    char                    letters[2 * US_CLI_OPTIONS + 1], *p;
    const char             *arg;
    uint8_t                *value;
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

    while ((key = getopt_long(argc, argv, letters, options, NULL)) != -1) {

        for (o = c->options; o && o->name && o->key != key; o++) { /* void */ }

        if (o == NULL || o->name == NULL) {
            return us_cli_usage(c);
        }

        value = (uint8_t *) c->own + o->offset;

        if (o->set == NULL) {
            *(int *) value = 1;

        } else if (o->set(o, value, optarg) != US_CLI_DONE) {
            return us_cli_usage(c);
        }
    }

    least = 0;
    most = 0;

    for (arg = c->args; *arg; arg += strspn(arg, " ")) {
        least += (*arg != '[');
        most++;
        arg += strcspn(arg, " ");
    }

    return argc - optind < least
           || (argc - optind > most && strstr(c->args, "...") == NULL)
           ? us_cli_usage(c) : US_CLI_DONE;
}


int
us_cli_text(const us_cli_option_t *o, void *value, const char *arg)
{
    *(const char **) value = arg;

    return 0;
}


int
us_cli_bytes(const us_cli_option_t *o, void *value, const char *arg)
{
    return us_cli_size(o, value, arg, 1);
}


int
us_cli_profile(const us_cli_option_t *o, void *value, const char *arg)
{
    *(int *) value = us_profile_parse(us_str_of(arg));

    if (*(int *) value == -1) {
        return us_cli_fail("unknown profile \"%.40s\"; use crawler, "
                           "crawler-clean, aggressive or whatwg", arg);
    }

    return 0;
}


int
us_cli_www(const us_cli_option_t *o, void *value, const char *arg)
{
    int  www;

    www = strcmp(arg, "first") == 0 ? US_WWW_FIRST
          : strcmp(arg, "keep") == 0 ? US_WWW_KEEP
          : strcmp(arg, "strip") == 0 ? US_WWW_STRIP : -1;

    if (www == -1) {
        return us_cli_fail("unknown --www \"%s\"; use first, keep or strip",
                           arg);
    }

    *(int *) value = www;

    return 0;
}


int
us_cli_size(const us_cli_option_t *o, size_t *size, const char *arg,
    size_t least)
{
    char                *end;
    unsigned             shift;
    const char          *unit;
    unsigned long long   n;

    static const char  units[] = "kmg";

    errno = 0;
    n = strtoull(arg, &end, 10);
    unit = *end ? strchr(units, tolower((unsigned char) *end)) : NULL;
    shift = unit ? 10 * (unsigned) (unit - units + 1) : 0;
    end += (unit != NULL);
    *size = (errno || *end || n > (SIZE_MAX >> 1) >> shift) ? 0 : n << shift;

    if (*size >= least && isdigit((unsigned char) *arg)) {
        return US_CLI_DONE;
    }

    return least > 1
           ? us_cli_fail("--%s \"%.40s\" is not a size of at least %zu bytes, "
                         "such as 256m", o->name, arg, least)
           : us_cli_fail("--%s \"%.40s\" is not a size, such as 256m", o->name,
                         arg);
}


double
us_cli_count(const char *text, char **end)
{
    int     unit;
    double  n;

    n = isdigit((unsigned char) *text) ? strtod(text, end) : 0;

    if (n == 0) {
        *end = (char *) text;
        return 0;
    }

    /* 50M and 5e7 are both what people write */

    unit = tolower((unsigned char) **end);
    n *= unit == 'k' ? 1e3 : unit == 'm' ? 1e6 : 1;
    *end += (unit == 'k' || unit == 'm');

    return n >= 1 && n <= 1e12 ? n : 0;
}


us_str_t
us_cli_line(us_str_t *text)
{
    us_str_t  line;

    (void) us_str_cut(text, '\n', &line);

    return line;
}


void
us_cli_hex(const uint8_t *bytes)
{
    uint8_t  text[32];

    (void) us_put_hex(text, bytes, 16);
    (void) fwrite(text, sizeof(text), 1, stdout);
}


int
us_cli_output(void)
{
    if (ferror(stdout)) {
        return us_cli_fail("standard output could not be written: %s",
                           strerror(errno));
    }

    return US_CLI_DONE;
}


int
us_cli_slurp(const char *path, size_t max, us_str_t *text)
{
    FILE        *f;
    size_t       n;
    uint8_t     *p;
    const char  *why;

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

    why = n > max ? "the file is too large"
          : ferror(f) ? strerror(errno) : NULL;

    (void) fclose(f);

    if (why) {
        free(p);
        return us_cli_failed(path, why);
    }

    p[n] = '\0';
    *text = (us_str_t) { n, p };

    return US_CLI_DONE;
}
