
/*
 * urlstore COMMAND ...: finds the subcommand in the table below and runs it;
 * and urlstore help: what the commands say of themselves, for a terminal, as
 * man pages, and as completions of bash and zsh.
 *
 *     us_cli_command_t --> --help, man page, completions
 */


#include "us_cli.h"
#include "../us_version.h"
#include "../filter/us_filter.h"
#include "../journal/us_manifest.h"
#include "../journal/us_segment.h"
#include "../journal/us_stream.h"
#include "../journal/us_writer.h"
#include "../url/us_profile.h"
#include "../zone/us_arena.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>


#define US_CLI_ADDRESS(name)  &us_cli_##name,

static const us_cli_command_t  *const us_cli_commands[] = {
    US_CLI_COMMANDS(US_CLI_ADDRESS)
    NULL
};


static const us_cli_command_t *
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


#define US_HELP_COLUMN  26            /* where the text of an option begins */


/* the forms, each an int that is 1 */

typedef struct {
    int  man;
    int  bash;
    int  zsh;
} us_help_t;


static us_help_t  us_help;


static const us_cli_option_t  us_help_options[] = {
    { US_CLI_LONG, "man", NULL, "Print a man page, for man -l -.",
      NULL, offsetof(us_help_t, man) },
    { US_CLI_LONG + 1, "bash", NULL, "Print the completion for bash.",
      NULL, offsetof(us_help_t, bash) },
    { US_CLI_LONG + 2, "zsh", NULL, "Print the completion for zsh.",
      NULL, offsetof(us_help_t, zsh) },
    { .name = NULL }
};


static const char  us_help_exits[] =
    " 0   all was done\n"
    " 1   some input was refused, or a check failed\n"
    " 2   wrong usage, or something could not be read or written";


/* --- text ------------------------------------------------------------- */

/*
 * Words of s up to its end or to the end of its line, from `column` on, with
 * line breaks before US_CLI_WIDTH and `indent` blanks after each.  Returns
 * the column.
 */

static int
us_help_fill(FILE *f, const char *s, int column, int indent)
{
    int          n, first;
    const char  *end;

    for (first = 1; *s && *s != '\n'; s = end + strspn(end, " "), first = 0) {
        end = s + strcspn(s, " \n");
        n = (int) (end - s);

        if (!first && column + 1 + n > US_CLI_WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;

        } else if (!first) {
            (void) putc(' ', f);
            column++;
        }

        fprintf(f, "%.*s", n, s);
        column += n;
    }

    return column;
}


/* paragraphs, and lines that are printed as they are */

static void
us_help_text(FILE *f, const char *s)
{
    size_t  n;

    for ( /* void */ ; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");

        if (*s == ' ' || n == 0) {
            fprintf(f, "%.*s\n", (int) n, s);

        } else {
            (void) us_help_fill(f, s, 0, 0);
            (void) putc('\n', f);
        }
    }
}


static void
us_cli_list(FILE *f)
{
    const us_cli_command_t  *const *p;

    fprintf(f, "usage: urlstore COMMAND [OPTION...] [ARGUMENT...]\n\n");

    for (p = us_cli_commands; *p; p++) {
        fprintf(f, "  %-12s%s\n", (*p)->name, (*p)->summary);
    }

    fprintf(f, "\nMore: urlstore COMMAND --help; urlstore --version\n");
}


/* the answer to --help */

static void
us_cli_manual(const us_cli_command_t *c)
{
    int                     n;
    const us_cli_option_t  *o;

    if (c == NULL) {
        us_cli_list(stdout);
        printf("\nExit code:\n%s\n", us_help_exits);
        return;
    }

    us_cli_synopsis(stdout, c);
    printf("\n%c%s.\n\n", toupper((unsigned char) c->summary[0]),
           c->summary + 1);
    us_help_text(stdout, c->text);

    if (c->options) {
        printf("\nOptions:\n");
    }

    for (o = c->options; o && o->name; o++) {
        /* "-q, --quiet", or with an argument "--filter N,RATE" */

        n = printf(o->key < US_CLI_LONG ? "  -%c, " : "      ", o->key);
        n += printf("--%s%s%s", o->name, o->arg ? " " : "",
                    o->arg ? o->arg : "");

        if (n >= US_HELP_COLUMN) {
            printf("\n");
            n = 0;
        }

        printf("%*s", US_HELP_COLUMN - n, "");
        (void) us_help_fill(stdout, o->text, US_HELP_COLUMN, US_HELP_COLUMN);
        printf("\n");
    }

    printf("\nExit code:\n%s\n", c->exits ? c->exits : us_help_exits);
}


/* --- man pages -------------------------------------------------------- */

/* prints up to n bytes; escapes the characters that roff would interpret */

static void
us_help_roff(const char *s, size_t n)
{
    for ( /* void */ ; n && *s; s++, n--) {
        if (*s == '-' || *s == '\\') {
            (void) putchar('\\');
            (void) putchar(*s == '\\' ? 'e' : *s);

        } else if (*s == '\'') {
            printf("\\(aq");

        } else {
            (void) putchar(*s);
        }
    }
}


static void
us_help_roff_text(const char *s)
{
    int     open;
    size_t  n;

    open = 0;

    for ( /* void */ ; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");

        if ((*s == ' ') != open) {
            open = !open;
            printf(open ? ".PP\n.nf\n" : ".fi\n");
        }

        if (n == 0) {
            printf(".PP");

        } else if (*s == '.') {
            printf("\\&");
        }

        us_help_roff(s, n);
        printf("\n");
    }

    if (open) {
        printf(".fi\n");
    }
}


/* c: NULL for the page of all commands */

static void
us_help_man(const us_cli_command_t *c)
{
    const char                     *name;
    const us_cli_option_t          *o;
    const us_cli_command_t  *const *all;

    printf(".TH \"URLSTORE%s", c ? "-" : "");

    for (name = c ? c->name : ""; *name; name++) {
        (void) putchar(toupper((unsigned char) *name));
    }

    printf("\" 1 \"\" \"urlstore %s\"\n.SH NAME\n", US_VERSION);

    if (c == NULL) {
        printf("urlstore \\- work with URL stores and lists of URLs\n"
               ".SH SYNOPSIS\n.B urlstore\n.I COMMAND\n"
               "[OPTION...] [ARGUMENT...]\n.br\n"
               ".B urlstore \\-\\-help\n.br\n.B urlstore \\-\\-version\n"
               ".SH COMMANDS\n");

        for (all = us_cli_commands; *all; all++) {
            printf(".TP\n.BR urlstore\\-%s (1)\n", (*all)->name);
            us_help_roff((*all)->summary, SIZE_MAX);
            printf("\n");
        }

        printf(".SH \"EXIT STATUS\"\n");
        us_help_roff_text(us_help_exits);
        return;
    }

    printf("urlstore\\-%s \\- ", c->name);
    us_help_roff(c->summary, SIZE_MAX);
    printf("\n.SH SYNOPSIS\n.B urlstore %s\n%s", c->name,
           c->options ? "[OPTION...]\n" : "");
    us_help_roff(c->args, SIZE_MAX);
    printf("\n.SH DESCRIPTION\n");
    us_help_roff_text(c->text);

    if (c->options) {
        printf(".SH OPTIONS\n");
    }

    for (o = c->options; o && o->name; o++) {
        printf(".TP\n");

        if (o->key < US_CLI_LONG) {
            printf("\\fB\\-%c\\fR, ", o->key);
        }

        printf("\\fB\\-\\-");
        us_help_roff(o->name, SIZE_MAX);
        printf("\\fR");

        if (o->arg) {
            printf(" \\fI%s\\fR", o->arg);
        }

        printf("\n");
        us_help_roff(o->text, SIZE_MAX);
        printf("\n");
    }

    printf(".SH \"EXIT STATUS\"\n");
    us_help_roff_text(c->exits ? c->exits : us_help_exits);
    printf(".SH \"SEE ALSO\"\n.BR urlstore (1)\n");
}


/* --- completions ------------------------------------------------------ */

static void
us_help_bash(void)
{
    const us_cli_option_t          *o;
    const us_cli_command_t  *const *c;

    printf("# bash completion for urlstore, printed by urlstore help --bash\n"
           "\n_urlstore()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n\n"
           "    COMPREPLY=()\n\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        words='--help --version");

    for (c = us_cli_commands; *c; c++) {
        printf(" %s", (*c)->name);
    }

    printf("'\n    elif [[ $cur == -* ]]; then\n"
           "        case ${COMP_WORDS[1]} in\n");

    for (c = us_cli_commands; *c; c++) {
        printf("        %s) words='--help", (*c)->name);

        for (o = (*c)->options; o && o->name; o++) {
            printf(" --%s", o->name);
        }

        printf("' ;;\n");
    }

    printf("        esac\n    fi\n\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
           "}\n\ncomplete -o default -F _urlstore urlstore\n");
}


/* prints a text in single quotes; escapes what zsh's _arguments interprets */

static void
us_help_zsh_text(const char *s)
{
    for ( /* void */ ; *s; s++) {
        if (*s == '\'') {
            printf("'\\''");

        } else if (strchr("[]:\\", *s)) {
            printf("\\%c", *s);

        } else {
            (void) putchar(*s);
        }
    }
}


static void
us_help_zsh(void)
{
    const us_cli_option_t          *o;
    const us_cli_command_t  *const *c;

    printf("#compdef urlstore\n"
           "# printed by urlstore help --zsh\n\n"
           "local -a commands\n\ncommands=(\n");

    for (c = us_cli_commands; *c; c++) {
        printf("    '%s:", (*c)->name);
        us_help_zsh_text((*c)->summary);
        printf("'\n");
    }

    printf(")\n\nif (( CURRENT == 2 )); then\n"
           "    _describe command commands\n    return\nfi\n\n"
           "local command=$words[2]\n"
           "shift words\n(( CURRENT-- ))\n\ncase $command in\n");

    for (c = us_cli_commands; *c; c++) {
        printf("%s)\n    _arguments '--help[print how it is used]'",
               (*c)->name);

        for (o = (*c)->options; o && o->name; o++) {
            printf(" \\\n        '--%s[", o->name);
            us_help_zsh_text(o->text);
            printf("]");

            if (o->arg) {
                printf(":%s:_files", o->arg);
            }

            printf("'");
        }

        printf(" \\\n        '*:file:_files'\n    ;;\n");
    }

    printf("esac\n");
}


static int
us_help_run(const us_cli_command_t *help, int n, char **args)
{
    us_help_t *own = help->own;

    const us_cli_command_t  *c;

    if (own->man + own->bash + own->zsh > 1
        || (n && (own->bash || own->zsh)))
    {
        return us_cli_usage(help);
    }

    c = n ? us_cli_find(args[0]) : NULL;

    if (c == NULL && n) {
        return us_cli_fail("no command \"%s\"", args[0]);
    }

    if (own->man) {
        us_help_man(c);

    } else if (own->bash) {
        us_help_bash();

    } else if (own->zsh) {
        us_help_zsh();

    } else {
        us_cli_manual(c);
    }

    return US_CLI_DONE;
}


const us_cli_command_t  us_cli_help = {
    .name = "help",
    .run = us_help_run,
    .args = "[COMMAND]",
    .summary = "print how commands are used",
    .text = "Without COMMAND, the list of commands.",
    .options = us_help_options,
    .own = &us_help
};


static int
us_version_run(const us_cli_command_t *c, int n, char **args)
{
    printf("urlstore   %s\ncommit     %s\nnginx      %s\n"
           "formats    journal %u, snapshot %u, stream %u, manifest %u, "
           "watermark %u, zone %u, filter %u\nkeys       %u\n",
           US_VERSION, US_COMMIT, US_NGINX, US_SEGMENT_VERSION,
           US_SNAPSHOT_VERSION, US_STREAM_VERSION, US_MANIFEST_VERSION,
           US_WATERMARK_VERSION, US_LAYOUT, US_FILTER_VERSION,
           US_PROFILE_VERSION);

    return US_CLI_DONE;
}


const us_cli_command_t  us_cli_version = {
    .name = "version",
    .run = us_version_run,
    .args = "",
    .summary = "print version, commit, formats, and nginx",
    .text = "The commit of the source, and the version of nginx for which the "
            "module beside it is built: it works in no other one. Versions of "
            "the formats are the latest that this program writes; CHANGELOG.md "
            "says which ones it reads. Keys are those of the profiles of URLs.",
};


int
main(int argc, char **argv)
{
    int                      fd, i;
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
        us_cli_list(stderr);
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
        us_cli_list(stderr);
        return US_CLI_USAGE;
    }

    /* --help among the options; no command has it as an argument */

    for (i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            us_cli_manual(c);
            return us_cli_streams(US_CLI_DONE);
        }
    }

    /* the name that getopt_long() puts before its messages */

    (void) snprintf(name, sizeof(name), "urlstore %s", c->name);
    argv[1] = name;
    argv++;
    argc--;

    return us_cli_options(c, argc, argv) != US_CLI_DONE
           ? US_CLI_USAGE
           : us_cli_streams(c->run(c, argc - optind, argv + optind));
}
