
/*
 * urlstore dump [--deleted] [--times] [--set NAME] DIR
 * urlstore dump [--deleted] [--set NAME] http://HOST
 * urlstore dump --sorted [--delta] [--memory SIZE] DIR
 *
 * The first prints "ID<TAB>URL" in order of ids; with --deleted an id whose
 * URL was deleted has "-".  With --times there is a third column, when the URL
 * was claimed last.  The second prints the same of a service, by POST /url of
 * all ids, also where a node may not deny and so lists nothing; those of a set
 * by GET /urls.  The third
 * prints URLs in order of their bytes, by sort(1), through temporary files if
 * there are more than fit SIZE (256m).
 *
 * --delta codes each URL by what it has in common with the one before, as the
 * Connectivity Server stores its URLs:
 *
 *     byte: length of the common prefix, at most 255;  the rest;  newline
 *
 * With --sorted the last line, on standard error, has the bytes per URL in
 * both forms.  A damaged directory is printed up to the damage.
 */


#include "us_cli_data.h"
#include "us_client.h"
#include "../api/us_list.h"
#include "../input/us_json.h"
#include "../store/us_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>


#define US_DUMP_MEMORY  (256 * 1024 * 1024)
#define US_DUMP_IDS     1000          /* of a request to a service */
#define US_DUMP_LIST    10000         /* the same, of a list */


typedef struct {
    int        sorted;
    int        delta;
    int        deleted;
    int        times;
    size_t     memory;
    const char  *set;                 /* with "!": the URLs outside; or NULL */
    us_select_t  select;              /* of a directory */

    uint64_t   given;                 /* to sort(1) */
    uint64_t   urls;
    uint64_t   raw;                   /* bytes, without newlines */
    uint64_t   coded;
    size_t     last_len;
    uint8_t    last[US_URL_MAX + 8];
} us_dump_options_t;


static us_dump_options_t  us_dump = { .memory = US_DUMP_MEMORY };


static int
us_dump_set(const us_cli_option_t *o, void *value, const char *arg)
{
    return us_cli_set_name(o, value, arg + (*arg == '!'))
           || us_cli_text(o, value, arg);
}


static const us_cli_option_t  us_dump_list[] = {
    { 'd', "deleted", NULL, "Print deleted ids, too, with \"-\" as the URL.",
      NULL, offsetof(us_dump_options_t, deleted) },
    { 't', "times", NULL, "Print a third column: when the URL was claimed "
      "last, in seconds since 1970, or \"-\".",
      NULL, offsetof(us_dump_options_t, times) },
    { US_CLI_LONG + 1, "set", "NAME", "Print the URLs of this set; with \"!\" "
      "before its name all others.",
      us_dump_set, offsetof(us_dump_options_t, set) },
    { 's', "sorted", NULL, "Print URLs without ids, in order of their "
      "bytes.", NULL, offsetof(us_dump_options_t, sorted) },
    { US_CLI_LONG, "delta", NULL, "With --sorted: code each URL by what it "
      "has in common with the one before, as a byte for the length of the "
      "common prefix (at most 255), the rest and a newline.",
      NULL, offsetof(us_dump_options_t, delta) },
    { 'm', "memory", "SIZE", "With --sorted: sort through temporary files "
      "what is more than SIZE (256m).",
      us_cli_bytes, offsetof(us_dump_options_t, memory) },
    { .name = NULL }
};


/* the next URL in the order of bytes; 0, or -1: it cannot be printed */

static int
us_dump_out(us_dump_options_t *o, us_str_t s)
{
    size_t  n, max;

    max = (s.len < o->last_len) ? s.len : o->last_len;
    max = (max > 255) ? 255 : max;

    for (n = 0; n < max && s.data[n] == o->last[n]; n++) {
        /* void */
    }

    memcpy(o->last, s.data, s.len);
    o->last_len = s.len;

    o->urls++;
    o->raw += s.len;
    o->coded += 2 + s.len - n;

    if (o->delta) {
        (void) putchar_unlocked((int) n);
        s.data += n;
        s.len -= n;
    }

    (void) fwrite_unlocked(s.data, s.len, 1, stdout);
    (void) putchar_unlocked('\n');

    return ferror(stdout) ? -1 : 0;
}


/* the lines of all ids; sort: URLs only, to that */

static int
us_dump_ids(us_cli_data_t *d, us_dump_options_t *o, FILE *sort)
{
    int                rc;
    uint8_t            buf[US_URL_MAX + 8];
    us_str_t           url;
    uint64_t           id, next, first, claimed;
    us_store_status_t  status;

    next = us_store_next_id(d->store);
    first = us_store_first_id(d->store);
    rc = 0;

    for (id = 0;
         (id = us_select_next(d->store, &o->select, id, next)) < next
         && rc == 0;
         id++)
    {
        status = us_select(d->store, &o->select, id, buf, &url);

        if (status == US_OK && sort) {
            rc = fwrite(buf, url.len, 1, sort) != 1 || putc('\n', sort) == EOF;
            o->given++;

        } else if (status == US_OK) {
            (void) printf("%" PRIu64 "\t%.*s", first + id, (int) url.len, buf);
            claimed = o->times ? us_store_claimed(d->store, id) : 0;

            if (claimed) {
                (void) printf("\t%" PRIu64, claimed);

            } else if (o->times) {
                (void) printf("\t-");
            }

            rc = putchar('\n') == EOF || ferror(stdout);

        } else if (status == US_DELETED) {
            rc = printf("%" PRIu64 "\t-%s\n", first + id,
                        o->times ? "\t-" : "") < 0;
        }
    }

    return rc;
}


/*
 * The URLs through sort(1), which has temporary files in $TMPDIR, or where that
 * cannot be written in /tmp, for what is more than o->memory.  Returns an exit
 * code, after a message.
 */

static int
us_dump_sorted(us_cli_data_t *d, us_dump_options_t *o)
{
    int          rc, bad, code, status, in[2], out[2];
    char         memory[32], line[sizeof(o->last)];
    FILE        *to, *from;
    pid_t        pid;
    size_t       n;
    const char  *tmp;

    tmp = getenv("TMPDIR");

    if (tmp == NULL || faccessat(AT_FDCWD, tmp, W_OK|X_OK, AT_EACCESS) == -1) {
        tmp = "/tmp";
    }

    (void) snprintf(memory, sizeof(memory), "-S%zuk", o->memory / 1024 + 1);

    if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1
        || (to = fdopen(in[1], "w")) == NULL
        || (from = fdopen(out[0], "r")) == NULL || (pid = fork()) == -1)
    {
        return us_cli_fail("cannot run sort: %s", strerror(errno));
    }

    if (pid == 0) {
        if (setenv("LC_ALL", "C", 1) == 0 && dup2(in[0], 0) != -1
            && dup2(out[1], 1) != -1)
        {
            execlp("sort", "sort", memory, "-T", tmp, (char *) NULL);
        }

        fprintf(stderr, "urlstore: cannot run sort: %s\n", strerror(errno));
        _exit(127);
    }

    (void) close(in[0]);
    (void) close(out[1]);

    /* it may end before it was given all: its exit code says that */

    (void) signal(SIGPIPE, SIG_IGN);

    rc = us_dump_ids(d, o, to);
    rc |= fclose(to);

    (void) signal(SIGPIPE, SIG_DFL);

    bad = 0;

    while (rc == 0 && !bad && fgets(line, sizeof(line), from)) {
        n = strcspn(line, "\n");
        bad = line[n] == '\0'
              || us_dump_out(o, (us_str_t) { n, (uint8_t *) line }) == -1;
    }

    code = us_cli_output();

    (void) fclose(from);

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { /* void */ }

    if (code != US_CLI_DONE) {
        return code;
    }

    /* of a bad line, the rest is not read: that may have ended it */

    if (!bad && WIFSIGNALED(status)) {
        return us_cli_fail("sort failed with signal %d", WTERMSIG(status));
    }

    if (!bad && WEXITSTATUS(status) != 0) {
        return us_cli_fail("sort failed with exit code %d",
                           WEXITSTATUS(status));
    }

    if (rc || bad || o->urls != o->given) {
        return us_cli_fail("sort printed %" PRIu64 " of %" PRIu64 " URLs",
                           o->urls, o->given);
    }

    if (o->urls) {
        fprintf(stderr, "urlstore: %" PRIu64 " URLs, %.2f bytes each, %.2f "
                "sorted and delta-coded\n", o->urls,
                (double) o->raw / o->urls, (double) o->coded / o->urls);
    }

    return US_CLI_DONE;
}


/* the ids of a service, and of which epoch: by its figures; an exit code */

static int
us_dump_look(us_client_t *c, uint64_t *next, uint64_t *epoch)
{
    uint64_t         *value;
    us_json_t         j;
    us_json_event_t   event;

    if (us_client_once(c, "GET", "/stats", "application/json",
                       US_CLIENT_NO_BODY)
        != 200)
    {
        return us_cli_fail("%s", c->error);
    }

    us_json_init(&j, 64);
    us_json_text(&j, (us_str_t) { c->len, c->reply });
    *next = UINT64_MAX;
    *epoch = UINT64_MAX;
    value = NULL;

    do {
        event = us_json_next(&j);

        if (value && event == US_JSON_NUM) {
            *value = strtoull((char *) j.text.data, NULL, 10);
        }

        value = event != US_JSON_KEY || j.depth != 1 ? NULL
                : us_str_compare(j.text, us_string("next_id")) == 0 ? next
                : us_str_compare(j.text, us_string("epoch")) == 0 ? epoch
                : NULL;

    } while (event < US_JSON_END);

    us_json_free(&j);

    return event == US_JSON_END && *next != UINT64_MAX && *epoch != UINT64_MAX
           ? US_CLI_DONE
           : us_cli_fail("%s:%s%s/stats: there is no \"next_id\": it is a "
                         "router, or answers nothing now", c->host, c->port,
                         c->path);
}


/* the lines for ids from this one on; returns how many have no URL */

static unsigned
us_dump_answers(const us_client_t *c, const us_dump_options_t *o, uint64_t id)
{
    char      *p, *end, *url;
    unsigned   missing;

    missing = 0;

    for (p = (char *) c->reply; p < (char *) c->reply + c->len; p = end + 1) {
        end = memchr(p, '\n', (char *) c->reply + c->len - p);
        *end = '\0';

        if (strtoull(p, &url, 10) != id++ || *url != '\t') {
            missing++;

        } else if (strncmp(url, "\t-\t", 3) != 0) {
            printf("%s\n", p);

        } else if (strcmp(url + 3, "deleted") != 0) {
            missing++;

        } else if (o->deleted) {
            printf("%.*s\t-\n", (int) (url - p), p);
        }
    }

    return missing;
}


/* the ids of a part of a service's list; the next one to ask for */

static int
us_dump_listed(us_client_t *c, const us_dump_options_t *o, uint64_t *id)
{
    char         path[160];
    const char  *p, *next;

    (void) snprintf(path, sizeof(path), "/urls?summary=1&limit=%u&set=%s%s"
                    "&from=%" PRIu64, US_DUMP_LIST, o->set,
                    o->deleted ? "&deleted=1" : "", *id);

    if (us_client_once(c, "GET", path, "text/plain", US_CLIENT_NO_BODY) != 200)
    {
        return us_cli_fail("%s; no id from %" PRIu64 " on was printed",
                           c->error, *id);
    }

    /* without its last line the list is cut */

    p = (char *) c->reply;
    next = c->len ? memrchr(p, '\n', c->len - 1) : NULL;
    next = next ? next + 1 : p;

    if (c->len < 8 || strncmp(next, "# next=", 7) != 0) {
        return us_cli_fail("%s:%s%s%s: the list is cut; no id from %" PRIu64
                           " on was printed", c->host, c->port, c->path, path,
                           *id);
    }

    (void) fwrite(p, next - p, 1, stdout);
    *id = strtoull(next + 7, NULL, 10);

    return us_cli_output();
}


/* all ids of a service, or those of a set; an exit code */

static int
us_dump_service(const us_dump_options_t *o, const char *url)
{
    int           code;
    size_t        n, len;
    uint64_t      id, next, epoch, end, then, missing;
    us_client_t   c;
    static char   ids[US_DUMP_IDS * 21];

    if (us_client_init(&c, url) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    code = us_dump_look(&c, &next, &epoch);
    id = next & ~US_LOCAL_MAX;
    missing = 0;

    while (code == US_CLI_DONE && id < next) {

        if (o->set) {
            end = id;
            code = us_dump_listed(&c, o, &id);

            if (code == US_CLI_DONE && id <= end) {
                code = us_cli_fail("%s: the list does not go on; no id from %"
                                   PRIu64 " on was printed", url, end);
            }

            continue;
        }

        len = 0;

        for (n = 0; n < US_DUMP_IDS && id < next; n++) {
            len += sprintf(ids + len, "%" PRIu64 "\n", id++);
        }

        if (us_client_post(&c, "/url", (us_str_t) { len, (uint8_t *) ids })
            != 200)
        {
            code = us_cli_fail("%s; no id from %" PRIu64 " on was printed",
                               c.error, id - n);

        } else {
            missing += us_dump_answers(&c, o, id - n);
            code = us_cli_output();
        }
    }

    /* a store that was built anew may have given the ids to other URLs */

    code = code ? code : us_dump_look(&c, &end, &then);

    if (code == US_CLI_DONE && (then != epoch || end < next)) {
        code = us_cli_fail("%s: its store has become another one meanwhile",
                           url);
    }

    if (code == US_CLI_DONE && missing) {
        fprintf(stderr, "urlstore: %s: %" PRIu64 " of %" PRIu64 " ids were not "
                "answered\n", url, missing, next & US_LOCAL_MAX);
        code = US_CLI_REFUSED;
    }

    us_client_free(&c);

    return code;
}


static int
us_dump_run(const us_cli_command_t *c, int n, char **args)
{
    us_dump_options_t *o = c->own;

    int            code;
    us_cli_data_t  d;

    if ((o->delta && !o->sorted) || (o->sorted && (o->deleted || o->times)))
    {
        return us_cli_usage(c);
    }

    if (us_client_is(args[0])) {
        return o->sorted || o->times ? us_cli_usage(c)
                                     : us_dump_service(o, args[0]);
    }

    if (us_cli_data_open(&d, args[0]) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    code = us_cli_data_load(&d, 1);
    o->select.deleted = o->deleted != 0;

    if (code == US_CLI_DONE && d.store && o->set) {
        o->select.outside = (*o->set == '!');
        o->select.set = us_store_set(d.store,
                                     us_str_of(o->set + o->select.outside));

        if (o->select.set.number == 0) {
            code = us_cli_fail("%s has no set \"%s\"", d.path,
                               o->set + o->select.outside);
        }
    }

    if (code == US_CLI_DONE && d.store && o->sorted) {
        code = us_dump_sorted(&d, o);

    } else if (code == US_CLI_DONE && d.store) {
        (void) us_dump_ids(&d, o, NULL);
        code = us_cli_output();
    }

    code = code ? code : us_cli_data_result(&d);

    if (code == US_CLI_DONE && us_cli_data_answered(&d) > d.recovery.lsn) {
        (void) us_cli_fail("\"%s\": LSN %" PRIu64 " was answered, the journal "
                           "ends at %" PRIu64, d.path,
                           us_cli_data_answered(&d), d.recovery.lsn);
        code = US_CLI_REFUSED;
    }

    return us_cli_data_close(&d, code);
}


const us_cli_command_t  us_cli_dump = {
    .name = "dump",
    .run = us_dump_run,
    .args = "STORE",
    .summary = "print the URLs of a store",
    .text =
        "Prints \"ID<TAB>URL\" lines in order of ids. With --sorted, the last "
        "line on standard error is the bytes per URL, plain and delta-coded. "
        "A damaged directory is printed up to the damage.\n\n"
        "STORE is a data directory, or http://HOST[:PORT][/PATH] of a running "
        "node (without TLS, no router), without --times and --sorted. Each of "
        "its ids is asked for, again for a minute if the answer is cut off, "
        "also of a node that may not list them because its log has lost rows.",
    .options = us_dump_list,
    .own = &us_dump,
    .exits =
        " 0   all URLs were printed\n"
        " 1   DIR is damaged: URLs up to the damage were printed; or the "
        "service did not answer some ids\n"
        " 2   wrong usage, there is no store, or something could not be read "
        "or written: what was printed is not whole"
};
