
/*
 * urlstore help: what the commands say of themselves, for a terminal, as man
 * pages, and as completions of bash and zsh.
 *
 *     us_cli_command_t --> --help, man page, completions
 */


#include "us_cli.h"
#include "../us_version.h"

#include <ctype.h>


#define US_HELP_WIDTH   79
#define US_HELP_COLUMN  26            /* where the text of an option begins */


enum {
    US_HELP_MAN = US_CLI_LONG,
    US_HELP_BASH,
    US_HELP_ZSH
};


static int us_help_run(int argc, char **argv);


static const us_cli_option_t  us_help_options[] = {
    { US_HELP_MAN, "man", NULL, "Print a man page, for man -l -." },
    { US_HELP_BASH, "bash", NULL, "Print the completion for bash." },
    { US_HELP_ZSH, "zsh", NULL, "Print the completion for zsh." },
    { 0, NULL, NULL, NULL }
};


const us_cli_command_t  us_cli_help = {
    .name = "help",
    .run = us_help_run,
    .args = "[COMMAND]",
    .summary = "print how commands are used",
    .text = "Without COMMAND, the list of commands.",
    .options = us_help_options
};


static const char  us_help_exits[] =
    " 0   all was done\n"
    " 1   some input was refused, or a check failed\n"
    " 2   wrong usage, or something could not be read or written";


/* --- text ------------------------------------------------------------- */

/*
 * Words of s up to its end or to the end of its line, from `column` on, with
 * line breaks before US_HELP_WIDTH and `indent` blanks after each.  Returns
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

        if (!first && column + 1 + n > US_HELP_WIDTH) {
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


/* "-q, --quiet", or with an argument "--filter N,RATE" */

static int
us_help_option(char *buf, size_t size, const us_cli_option_t *o)
{
    char  letter[8];

    (void) snprintf(letter, sizeof(letter), o->key < US_CLI_LONG ? "-%c, "
                                                                 : "    ",
                    o->key);

    return snprintf(buf, size, "%s--%s%s%s", letter, o->name,
                    o->arg ? " " : "", o->arg ? o->arg : "");
}


void
us_cli_synopsis(FILE *f, const us_cli_command_t *c)
{
    int                             column, indent;
    char                            buf[128];
    const us_cli_option_t          *o;
    const us_cli_command_t  *const *p;

    if (c == NULL) {
        fprintf(f, "usage: urlstore COMMAND [OPTION...] [ARGUMENT...]\n\n");

        for (p = us_cli_commands; *p; p++) {
            fprintf(f, "  %-12s%s\n", (*p)->name, (*p)->summary);
        }

        fprintf(f, "\nMore: urlstore COMMAND --help; urlstore --version\n");
        return;
    }

    indent = fprintf(f, "usage: urlstore %s", c->name);
    column = indent;

    for (o = c->options; o && o->name; o++) {
        (void) snprintf(buf, sizeof(buf), "[--%s%s%s]", o->name,
                        o->arg ? " " : "", o->arg ? o->arg : "");

        if (column + 1 + (int) strlen(buf) > US_HELP_WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        }

        column += fprintf(f, " %s", buf);
    }

    if (column + 1 + (int) strlen(c->args) > US_HELP_WIDTH) {
        fprintf(f, "\n%*s", indent, "");
    }

    fprintf(f, "%s%s\n", c->args[0] ? " " : "", c->args);
}


void
us_cli_manual(const us_cli_command_t *c)
{
    int                     n;
    char                    buf[128];
    const us_cli_option_t  *o;

    us_cli_synopsis(stdout, c);

    if (c == NULL) {
        printf("\nExit code:\n%s\n", us_help_exits);
        return;
    }

    printf("\n%c%s.\n\n", toupper((unsigned char) c->summary[0]),
           c->summary + 1);
    us_help_text(stdout, c->text);

    if (c->options) {
        printf("\nOptions:\n");
    }

    for (o = c->options; o && o->name; o++) {
        n = 2 + us_help_option(buf, sizeof(buf), o);
        printf("  %s", buf);

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


static void
us_help_man_head(const char *name, const char *summary)
{
    printf(".TH \"URLSTORE");

    if (name) {
        (void) putchar('-');

        while (*name) {
            (void) putchar(toupper((unsigned char) *name++));
        }
    }

    printf("\" 1 \"\" \"urlstore %s\"\n.SH NAME\n", US_VERSION);
}


static void
us_help_man_all(void)
{
    const us_cli_command_t  *const *c;

    us_help_man_head(NULL, NULL);
    printf("urlstore \\- work with URL stores and lists of URLs\n"
           ".SH SYNOPSIS\n.B urlstore\n.I COMMAND\n"
           "[OPTION...] [ARGUMENT...]\n.br\n"
           ".B urlstore \\-\\-help\n.br\n.B urlstore \\-\\-version\n"
           ".SH COMMANDS\n");

    for (c = us_cli_commands; *c; c++) {
        printf(".TP\n.BR urlstore\\-%s (1)\n", (*c)->name);
        us_help_roff((*c)->summary, SIZE_MAX);
        printf("\n");
    }

    printf(".SH \"EXIT STATUS\"\n");
    us_help_roff_text(us_help_exits);
}


static void
us_help_man(const us_cli_command_t *c)
{
    const us_cli_option_t  *o;

    us_help_man_head(c->name, c->summary);
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
us_help_run(int argc, char **argv)
{
    int                      key, form;
    const us_cli_command_t  *c;

    form = 0;

    while ((key = us_cli_option(&us_cli_help, argc, argv)) != -1) {

        if (key == '?' || form) {
            return us_cli_usage(&us_cli_help);
        }

        form = key;
    }

    if (argc - optind > (form == US_HELP_MAN || form == 0)) {
        return us_cli_usage(&us_cli_help);
    }

    c = NULL;

    if (optind < argc) {
        c = us_cli_find(argv[optind]);

        if (c == NULL) {
            fprintf(stderr, "urlstore: no command \"%s\"\n", argv[optind]);
            return US_CLI_USAGE;
        }
    }

    switch (form) {

    case US_HELP_MAN:
        if (c) {
            us_help_man(c);

        } else {
            us_help_man_all();
        }
        break;

    case US_HELP_BASH:
        us_help_bash();
        break;

    case US_HELP_ZSH:
        us_help_zsh();
        break;

    default:
        us_cli_manual(c);
    }

    return US_CLI_DONE;
}
