
/*
 * The urlstore command: a file and a name in US_CLI_COMMANDS for each
 * subcommand.
 *
 * A subcommand describes itself by a us_cli_command_t.  Its options are parsed
 * by that description (us_cli.c), and --help, the man pages and the completions
 * are printed from it (main.c).
 */


#ifndef _US_CLI_H_INCLUDED_
#define _US_CLI_H_INCLUDED_


#include "../us_base.h"
#include "../url/us_normalize.h"

#include <getopt.h>
#include <stdio.h>


/* exit codes: done, refused input or failed check, usage or I/O, a signal */

#define US_CLI_DONE         0
#define US_CLI_REFUSED      1
#define US_CLI_USAGE        2
#define US_CLI_INTERRUPTED  130


typedef struct us_cli_command_s  us_cli_command_t;

/* n arguments after the options; returns an exit code */

typedef int (*us_cli_pt)(const us_cli_command_t *c, int n, char **args);


typedef struct us_cli_option_s  us_cli_option_t;

struct us_cli_option_s {
    int                     key;      /* above 255: it has no letter */
    const char             *name;     /* NULL: the end of the list */
    const char             *arg;      /* what it takes, or NULL */
    const char             *text;

    /* sets the value; or US_CLI_USAGE after a message.  NULL: an int is 1 */
    int                   (*set)(const us_cli_option_t *o, void *value,
                                 const char *arg);
    size_t                  offset;   /* of the value, in c->own */
};


/*
 * Texts are plain sentences.  In `text` and `exits` an empty line ends a
 * paragraph, and a line that begins with a blank is printed as it is.
 */

struct us_cli_command_s {
    const char             *name;
    us_cli_pt               run;
    const char             *args;     /* after the options: words, in brackets
                                         what may be left out */
    const char             *summary;  /* a line, without a full stop */
    const char             *text;
    const us_cli_option_t  *options;  /* or NULL */
    void                   *own;      /* the values of the options, or NULL */
    const char             *exits;    /* what 0, 1 and 2 mean here, or NULL */
};


/* the key of an option without a letter */

#define US_CLI_LONG  256


/* all subcommands, in the order of --help */

#define US_CLI_COMMANDS(X)                                                    \
    X(add) X(backup) X(cluster) X(dedup) X(dump) X(erase) X(get) X(hash)      \
    X(help) X(import) X(normalize) X(rekey) X(restore) X(seen) X(set)         \
    X(sizing) X(stat) X(verify) X(version)

#define US_CLI_COMMAND(name)  extern const us_cli_command_t  us_cli_##name;
US_CLI_COMMANDS(US_CLI_COMMAND)


/*
 * Sets the values of the options.  US_CLI_DONE: optind is the first argument,
 * and there are as many as c->args has; else US_CLI_USAGE after a message.
 */
int us_cli_options(const us_cli_command_t *c, int argc, char **argv);

/* "usage: urlstore NAME OPTIONS ARGUMENTS", in lines of so many columns */
#define US_CLI_WIDTH  79

void us_cli_synopsis(FILE *f, const us_cli_command_t *c);

/* prints that to standard error; returns US_CLI_USAGE */
int us_cli_usage(const us_cli_command_t *c);

/* prints a message, or the path and why it failed; returns US_CLI_USAGE */
int us_cli_fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
int us_cli_failed(const char *path, const char *why);

/* 16 bytes, in hexadecimal digits, to standard output */
void us_cli_hex(const uint8_t *bytes);

/* 0, or US_CLI_USAGE after a message: standard output cannot be written */
int us_cli_output(void);

/*
 * Values of options: text, const char *; bytes, size_t; a us_profile_t, int; a
 * us_www_t, int.
 */
int us_cli_text(const us_cli_option_t *o, void *value, const char *arg);
int us_cli_bytes(const us_cli_option_t *o, void *value, const char *arg);
int us_cli_profile(const us_cli_option_t *o, void *value, const char *arg);
int us_cli_www(const us_cli_option_t *o, void *value, const char *arg);

/* the same: the name of a set (us_cli_set.c) */
int us_cli_set_name(const us_cli_option_t *o, void *value, const char *arg);

/* bytes, "4096", "64k", "512M" or "4G", at least so many */
int us_cli_size(const us_cli_option_t *o, size_t *size, const char *arg,
    size_t least);

/*
 * A number of things, "50000000", "50M" or "5e7", up to 10^12: 0 if text does
 * not begin with one; *end is what follows.
 */
double us_cli_count(const char *text, char **end);

/* the next line of a text, which goes on after it */
us_str_t us_cli_line(us_str_t *text);

/*
 * Reads a file, or standard input for "-", of at most max bytes.  *text is
 * freed by the caller; a zero follows it.  0, or US_CLI_USAGE after a message.
 */
int us_cli_slurp(const char *path, size_t max, us_str_t *text);


#endif /* _US_CLI_H_INCLUDED_ */
