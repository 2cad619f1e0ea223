
/*
 * urlstore add, seen and get: requests to a store in a directory, or to a
 * service at a URL.  The answers are the lines that the service sends as
 * text/plain.
 *
 *     lines --> a group --> us_embed, or us_cli_data   (DIR)
 *           --> a batch --> us_client                  (http://...)
 *           --> lines
 */


#include "us_cli_data.h"
#include "us_client.h"
#include "us_files.h"
#include "../api/us_answer.h"
#include "../api/us_time.h"
#include "../life/us_embed.h"
#include "../store/us_shard.h"
#include "../us_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


typedef struct {
    const us_cli_command_t  *command;
    const char              *endpoint;
    us_answer_t              only;    /* print URLs with it; or NONE */
    const char              *older;   /* a duration, or NULL */
    uint32_t                 units;   /* the same, of a directory; or 0 */
    const char              *set;     /* the status is about it; or NULL */
    us_store_set_t           members; /* the same, of a directory */
    char                     path[128];

    us_client_t              client;  /* of a service: */
    unsigned                 unsure;  /* lines that a lost try may have added */
    us_cli_data_t            data;    /* of a directory */

    us_files_t               files;
    int                      code;    /* DONE, or REFUSED by some answer */
} us_ask_t;


/* --new and --unseen: the status that is printed */

static int
us_ask_only(const us_cli_option_t *o, void *value, const char *arg)
{
    ((us_ask_t *) value)->only = us_answer_parse(us_str_of(o->name));

    return 0;
}


static int
us_ask_duration(const us_cli_option_t *o, void *value, const char *arg)
{
    uint64_t  seconds;

    if (strlen(arg) > 40 || us_time_duration(us_str_of(arg), &seconds) == -1) {
        return us_cli_fail("invalid --older \"%.40s\"; use a duration such as "
                           "90m, 12h or 30d", arg);
    }

    return us_cli_text(o, value, arg);
}


static us_ask_t  us_ask;


static const us_cli_option_t  us_add_list[] = {
    { 'n', "new", NULL, "Print the URLs that are new, and with --older those "
      "that are due, and nothing else; on standard error each that a router "
      "does not know to be added.", us_ask_only, 0 },
    { 'o', "older", "DURATION", "Of a store with claims: answer \"due\" for a "
      "URL that was claimed longer ago, such as 30d, and claim it.",
      us_ask_duration, offsetof(us_ask_t, older) },
    { 's', "set", "NAME", "Put the URLs into this set, and answer whether they "
      "are new to it. That of a directory is made if it is not there.",
      us_cli_set_name, offsetof(us_ask_t, set) },
    { .name = NULL }
};

static const us_cli_option_t  us_seen_list[] = {
    { 'u', "unseen", NULL, "Print the URLs that are unseen, and nothing "
      "else.", us_ask_only, 0 },
    { 'o', "older", "DURATION", "Of a store with claims: answer \"due\" for a "
      "URL that was claimed longer ago, such as 30d.",
      us_ask_duration, offsetof(us_ask_t, older) },
    { 's', "set", "NAME", "Answer whether the URLs are in this set.",
      us_cli_set_name, offsetof(us_ask_t, set) },
    { .name = NULL }
};


/* a line of the service, as it is; what the exit code depends on */

static void
us_ask_answer(us_ask_t *a, us_str_t asked, us_str_t line)
{
    int          unsure;
    us_str_t     word, rest;
    us_answer_t  answer;

    rest = line;

    /* "ID<TAB>STATUS<TAB>URL", or "ID<TAB>-<TAB>unknown" */

    (void) us_str_cut(&rest, '\t', &word);

    if (a->command == &us_cli_get) {
        if (rest.len > 1 && memcmp(rest.data, "-\t", 2) == 0) {
            a->code = US_CLI_REFUSED;
        }

    } else {
        (void) us_str_cut(&rest, '\t', &word);
        answer = us_answer_parse(word);

        if (!us_answer_known(answer)) {
            a->code = US_CLI_REFUSED;
        }

        unsure = a->client.unsure && a->command == &us_cli_add
                 && answer == US_ANSWER_SEEN;
        a->unsure += unsure;

        /* asked again, it may be "seen", though nobody has been told "new" */

        if (a->only && rest.len > 8 && answer == US_ANSWER_UNAVAILABLE
            && memcmp(rest.data, "unknown:", 8) == 0)
        {
            fprintf(stderr, "urlstore: it may have been added, %.*s: %.*s\n",
                    (int) rest.len, rest.data, (int) asked.len, asked.data);
        }

        if (a->only && answer != a->only && !unsure
            && !(answer == US_ANSWER_DUE && a->command == &us_cli_add))
        {
            return;
        }

        line = a->only ? rest : line;
    }

    (void) fwrite_unlocked(line.data, line.len, 1, stdout);
    (void) putchar_unlocked('\n');
}


static void
us_ask_print(us_ask_t *a, uint64_t id, us_answer_t answer, us_str_t text)
{
    uint8_t  *p, line[US_URL_MAX + 64];

    p = us_put_known(line, US_FORMAT_TEXT, id, US_STORE_NO_ID);
    p = us_json_printf(p, "\t%V\t%V", us_answer_words[answer], text);

    us_ask_answer(a, us_string(""), (us_str_t) { p - line, line });
}


/* the URLs of lines, in a directory */

static int
us_ask_urls(us_ask_t *a, const us_str_t *lines, size_t n)
{
    int               known;
    size_t            i;
    uint8_t           url[US_URL_MAX + 8];
    us_str_t          text;
    us_store_t       *s;
    us_files_urls_t  *urls;
    us_store_item_t  *item;

    s = a->data.store;
    urls = us_files_normalize(a->data.norm, a->data.ws, lines, n);
    item = urls->items;

    if (a->data.embed) {
        if ((a->set ? us_embed_add_set(a->data.embed, item, urls->n,
                                       a->members)
                    : us_embed_add_older(a->data.embed, item, urls->n,
                                         a->units))
            == -1
            || us_embed_learn(a->data.embed) == -1)
        {
            return us_cli_data_failed(&a->data);
        }

    } else {
        us_store_seen(s, item, urls->n);

        if (a->set) {
            us_store_members(s, a->members, item, urls->n);
        }

        if (a->units) {
            (void) us_store_due(s, item, urls->n, a->units);
        }
    }

    for (i = 0; i < n; i++) {

        if (urls->verdicts[i] != US_URL_OK) {
            us_ask_print(a, US_STORE_NO_ID, US_ANSWER_INVALID,
                         us_str_of(us_verdict_name(urls->verdicts[i])));
            continue;
        }

        if (item->status == US_MOVED) {
            us_ask_print(a, US_STORE_NO_ID, US_ANSWER_UNAVAILABLE,
                         us_string("moved"));
            item++;
            continue;
        }

        /* what is not in a set may be in the store */

        known = us_answer_known(us_answer_of(item->status))
                || (a->set && item->stored == US_SEEN);

        if (!known) {
            us_store_spell(s, item);
        }

        text = (us_str_t) { us_store_item_url(item, url), url };
        us_ask_print(a, known ? us_store_first_id(s) + item->id
                              : US_STORE_NO_ID,
                     us_answer_of(item->status), text);
        item++;
    }

    return us_cli_output();
}


/* the ids that lines are, in a directory */

static int
us_ask_ids(us_ask_t *a, const us_str_t *lines, size_t n)
{
    size_t              i, len;
    uint8_t             url[US_URL_MAX + 8];
    uint32_t            number;
    uint64_t            id, first;
    us_store_t         *s;
    us_store_status_t   status;

    s = a->data.store;
    first = us_store_first_id(s);

    for (i = 0; i < n; i++) {
        len = 0;
        (void) us_read_u64(lines[i], &len, UINT64_MAX, &id);

        status = (id ^ first) <= US_LOCAL_MAX || !us_store_is_shard(s, &number)
                 ? us_store_get(s, id - first, url, &len) : US_MOVED;

        if (status == US_OK) {
            printf("%" PRIu64 "\t%.*s\n", id, (int) len, url);
            continue;
        }

        printf("%" PRIu64 "\t-\t%s\n", id,
               us_answer_words[us_answer_of(status)].data);
        a->code = US_CLI_REFUSED;
    }

    return us_cli_output();
}


/* the duration in units of the directory, s; 0: it keeps no claims */

static int
us_ask_older(us_ask_t *a, const char *dir, uint64_t unit)
{
    uint64_t  s;
    uint8_t   least[US_TIME_TEXT + 1], most[US_TIME_TEXT + 1];

    if (a->older == NULL) {
        return US_CLI_DONE;
    }

    if (unit == 0) {
        return us_cli_failed(dir, "it keeps no claims; --older needs them");
    }

    (void) us_time_duration(us_str_of(a->older), &s);

    if (s < unit || s > US_STORE_OLDER_MAX * unit) {
        *us_time_put(least, unit) = '\0';
        *us_time_put(most, US_STORE_OLDER_MAX * unit) = '\0';

        return us_cli_fail("invalid --older \"%s\"; use a duration from %s to "
                           "%s", a->older, least, most);
    }

    a->units = (uint32_t) ((s + unit - 1) / unit);

    return US_CLI_DONE;
}


/* add owns the directory, and makes a new one; the others only read it */

static int
us_ask_open(us_ask_t *a, const char *dir)
{
    int               code;
    char              manifest[PATH_MAX];
    us_norm_t        *norm;
    us_store_conf_t   conf;
    us_embed_conf_t   own = { .sets = a->set != NULL };

    if (a->command == &us_cli_add) {
        (void) snprintf(manifest, sizeof(manifest), "%s/" US_MANIFEST_NAME,
                        dir);

        /* of a new store; it is not made if --older is refused */

        norm = access(manifest, F_OK) == -1
               ? us_norm_create(US_PROFILE_CRAWLER) : NULL;

        code = norm ? us_ask_older(a, dir, 0) : US_CLI_DONE;

        if (norm) {
            own.norm = us_norm_signature(norm);
        }

        code = code ? code : us_cli_data_own(&a->data, dir, &own);
        us_norm_destroy(norm);

    } else {
        code = us_cli_data_read(&a->data, dir, a->command == &us_cli_get);
    }

    if (code != US_CLI_DONE) {
        return code;
    }

    us_store_conf(a->data.store, &conf);
    us_store_time(a->data.store, a->older ? (uint64_t) time(NULL) : 0);
    code = us_ask_older(a, dir, conf.revisit);

    if (code == US_CLI_DONE && a->set && a->data.embed
        && us_embed_make_set(a->data.embed, us_str_of(a->set), &a->members)
           == -1)
    {
        return us_cli_data_failed(&a->data);
    }

    if (code == US_CLI_DONE && a->set) {
        a->members = us_store_set(a->data.store, us_str_of(a->set));

        if (a->members.number == 0) {
            return us_cli_fail("%s has no set \"%s\"", dir, a->set);
        }
    }

    return code ? code : us_cli_data_rules(&a->data);
}


/*
 * Lines, with the key of their batch.  A service that refuses so many at once
 * may have added some before it did: in two halves these are "new" again.
 */

static int
us_ask_post(us_ask_t *a, us_str_t asked)
{
    int        rc, status;
    unsigned   n, half;
    us_str_t   body, rest;

    status = us_client_post(&a->client, a->endpoint, asked);

    if (status != 200) {

        for (n = 0, rest = asked; rest.len; n++) {
            (void) us_cli_line(&rest);
        }

        if (status == 413 && n > 1) {

            for (half = n / 2, rest = asked; half; half--) {
                (void) us_cli_line(&rest);
            }

            asked.len -= rest.len;
            rc = us_ask_post(a, asked);

            return rc ? rc : us_ask_post(a, rest);
        }

        (void) fflush(stdout);
        (void) us_cli_fail("%s", a->client.error);

        if (a->client.unsure && a->command == &us_cli_add) {
            (void) us_cli_fail("a try may have added some of %u lines that "
                               "have no answer here, from \"%.*s\" on", n,
                               (int) strcspn((char *) asked.data, "\r\n"),
                               asked.data);
        }

        return US_CLI_USAGE;
    }

    body = (us_str_t) { a->client.len, a->client.reply };

    while (body.len) {
        us_ask_answer(a, us_cli_line(&asked), us_cli_line(&body));
    }

    return US_CLI_DONE;
}


static int
us_ask_service(void *data, us_str_t text)
{
    us_ask_t *a = data;

    int  rc;

    if (us_client_key(&a->client) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    rc = us_ask_post(a, text);

    if (a->unsure) {
        (void) fflush(stdout);
        (void) us_cli_fail("%s:%s%s%s: %u lines are \"seen\" after a try whose "
                           "answer was lost, which may have added them",
                           a->client.host, a->client.port, a->client.path,
                           a->endpoint, a->unsure);
        a->unsure = 0;
    }

    return rc;
}


static int
us_ask_lines(void *data, us_str_t *lines, size_t n)
{
    us_ask_t *a = data;

    size_t  i;

    for (i = 0; a->command == &us_cli_get && i < n; i++) {
        if (!us_id_digits(lines[i]) || lines[i].len >= 20) {
            return us_cli_fail("\"%.*s\" is not an id, a number of at most 19 "
                               "digits", lines[i].len > 40
                                         ? 40 : (int) lines[i].len,
                               lines[i].data);
        }
    }

    return a->files.send ? US_CLI_DONE
           : a->command == &us_cli_get ? us_ask_ids(a, lines, n)
           : us_ask_urls(a, lines, n);
}


static int
us_ask_command(const us_cli_command_t *c, int n, char **args)
{
    us_ask_t *a = c->own;

    int  code;

    a->command = c;
    a->endpoint = c == &us_cli_add ? "/add" : c == &us_cli_seen ? "/seen"
                  : "/url";

    if (a->older && a->set) {
        return us_cli_fail("--older and --set exclude each other");
    }

    /* of a service, they are part of the request */

    if (a->set || a->older) {
        snprintf(a->path, sizeof(a->path), "%s?%s=%s", a->endpoint,
                 a->set ? "set" : "older", a->set ? a->set : a->older);
        a->endpoint = a->path;
    }

    if (!us_client_is(args[0])) {
        code = us_ask_open(a, args[0]);

    } else {
        a->files.send = us_ask_service;
        code = us_client_init(&a->client, args[0]);
    }

    a->files.take = us_ask_lines;
    a->files.flush = us_cli_flush;
    a->files.data = a;
    a->files.progress = !isatty(1);
    a->files.cut = 1;
    a->files.urls = 1;

    /* get has ids as arguments, the others names of files */

    if (code == US_CLI_DONE) {
        code = c == &us_cli_get && n > 1
               ? us_files_args(&a->files, n - 1, args + 1)
               : us_files_all(&a->files, n - 1, args + 1);
    }

    code = us_cli_data_close(&a->data, code);
    us_client_free(&a->client);

    return code ? code : a->code;
}


#define US_ASK_STORE                                                          \
    "STORE is a data directory, or http://HOST[:PORT][/PATH] of a running "   \
    "service (without TLS), which is asked again for a minute while it "      \
    "answers 502, 503 or 504."


const us_cli_command_t  us_cli_add = {
    .name = "add",
    .run = us_ask_command,
    .args = "STORE [FILE...]",
    .summary = "add URLs to a store and print which are new",
    .text =
        "Adds the URLs of files, or of standard input (\"-\"), one a line, and "
        "prints a line for each: the id, \"new\" or \"seen\", and the "
        "canonical URL, separated by tabs; without an id \"-\".\n\n"
        US_ASK_STORE " A directory must have no owner: while a service runs "
        "on it, add at its URL.",
    .options = us_add_list,
    .own = &us_ask,
    .exits =
        " 0   all URLs are in the store\n"
        " 1   some URLs were refused\n"
        " 2   wrong usage, or the store or a file could not be read or "
        "written"
};


const us_cli_command_t  us_cli_seen = {
    .name = "seen",
    .run = us_ask_command,
    .args = "STORE [FILE...]",
    .summary = "print which URLs a store has",
    .text =
        "Looks up the URLs of files, or of standard input (\"-\"), one a line, "
        "and prints a line for each: the id, \"seen\" or \"unseen\", and the "
        "canonical URL, separated by tabs; without an id \"-\". Nothing is "
        "added.\n\n"
        US_ASK_STORE,
    .options = us_seen_list,
    .own = &us_ask,
    .exits =
        " 0   the store has all URLs\n"
        " 1   some URLs are unseen, or were refused\n"
        " 2   wrong usage, or the store or a file could not be read"
};


const us_cli_command_t  us_cli_get = {
    .name = "get",
    .run = us_ask_command,
    .args = "STORE [ID...]",
    .summary = "print the URLs of ids",
    .text =
        "Prints \"ID<TAB>URL\" for each id of the arguments, or of standard "
        "input, one a line; for an id without a URL \"-\" and, after another "
        "tab, \"unknown\" or \"deleted\".\n\n"
        US_ASK_STORE,
    .own = &us_ask,
    .exits =
        " 0   all ids have URLs\n"
        " 1   some have none\n"
        " 2   wrong usage, or the store could not be read"
};
