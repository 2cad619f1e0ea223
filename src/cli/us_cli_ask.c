
/*
 * urlstore add, seen and get: requests to a store in a directory, or to a
 * service at a URL.  The answers are the lines that the service sends as
 * text/plain.
 *
 *     lines --> a batch --> us_embed, or us_cli_data   (DIR)
 *                       --> us_client                  (http://...)
 *           --> lines
 */


#include "us_cli_data.h"
#include "us_client.h"
#include "us_files.h"
#include "../api/us_answer.h"
#include "../api/us_time.h"
#include "../life/us_embed.h"
#include "../store/us_shard.h"
#include "../url/us_normalize.h"

#include <inttypes.h>
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

    us_client_t              client;
    unsigned                 unsure;  /* lines that a lost try may have added */
    us_embed_t              *embed;
    us_cli_data_t            data;
    us_store_t              *store;
    us_norm_t               *norm;
    us_norm_ws_t            *ws;

    us_batch_t               batch;
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


static int
us_ask_ids(void *data, us_str_t text)
{
    us_ask_t *a = data;

    size_t             len;
    uint8_t            url[US_URL_MAX + 8];
    us_str_t           line;
    uint32_t           number;
    uint64_t           id, first;
    us_store_status_t  status;

    while (text.len) {
        line = us_cli_line(&text);
        id = strtoull((char *) line.data, NULL, 10);
        first = us_store_first_id(a->store);
        status = (id ^ first) <= US_LOCAL_MAX
                 || !us_store_is_shard(a->store, &number)
                 ? us_store_get(a->store, id - first, url, &len) : US_MOVED;

        if (status == US_OK) {
            printf("%" PRIu64 "\t%.*s\n", id, (int) len, url);
            continue;
        }

        printf("%" PRIu64 "\t-\t%s\n", id,
               us_answer_words[us_answer_of(status)].data);
        a->code = US_CLI_REFUSED;
    }

    return US_CLI_DONE;
}


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


/* n URLs of a directory, of which k have no reason why they are refused */

static int
us_ask_group(us_ask_t *a, us_store_item_t *group, unsigned k,
    const char **refused, unsigned n)
{
    int        known;
    size_t     len;
    uint8_t    url[US_URL_MAX + 8];
    unsigned   i;

    if (a->embed) {
        if ((a->set ? us_embed_add_set(a->embed, group, k, a->members)
                    : us_embed_add_older(a->embed, group, k, a->units))
            == -1
            || us_embed_learn(a->embed) == -1)
        {
            return us_cli_failed(a->data.path, us_embed_error(a->embed));
        }

    } else {
        us_store_seen(a->store, group, k);

        if (a->set) {
            us_store_members(a->store, a->members, group, k);
        }

        if (a->units) {
            (void) us_store_due(a->store, group, k, a->units);
        }
    }

    for (i = 0, k = 0; i < n; i++) {

        if (refused[i]) {
            us_ask_print(a, US_STORE_NO_ID, US_ANSWER_INVALID,
                         us_str_of(refused[i]));
            continue;
        }

        if (group[k].status == US_MOVED) {
            us_ask_print(a, US_STORE_NO_ID, US_ANSWER_UNAVAILABLE,
                         us_string("moved"));
            k++;
            continue;
        }

        /* what is not in a set may be in the store */

        known = group[k].status == US_NEW || group[k].status == US_SEEN
                || group[k].status == US_DUE
                || (a->set && group[k].stored == US_SEEN);

        if (!known) {
            us_store_spell(a->store, &group[k]);
        }

        len = us_store_item_url(&group[k], url);
        us_ask_print(a, known
                        ? us_store_first_id(a->store) + group[k].id
                        : US_STORE_NO_ID,
                     us_answer_of(group[k].status), (us_str_t) { len, url });
        k++;
    }

    return US_CLI_DONE;
}


static int
us_ask_urls(void *data, us_str_t text)
{
    us_ask_t *a = data;

    int               rc;
    unsigned          n, k;
    us_canon_t        canon;
    const char       *refused[US_STORE_GROUP];
    us_verdict_t      verdict;
    us_store_item_t   items[US_STORE_GROUP];
    static uint8_t    urls[US_STORE_GROUP][US_URL_MAX];

    rc = US_CLI_DONE;
    n = 0;
    k = 0;

    while (text.len && rc == US_CLI_DONE) {
        verdict = us_normalize(a->norm, a->ws, us_cli_line(&text), NULL,
                               &canon);
        refused[n] = us_verdict_name(verdict);

        if (verdict == US_URL_OK) {
            refused[n] = NULL;
            memset(&items[k], 0, sizeof(us_store_item_t));
            memcpy(urls[k], canon.url.href.data, canon.url.href.len);
            items[k].url = (us_str_t) { canon.url.href.len, urls[k] };
            items[k++].merge = canon.merge;
        }

        if (++n == US_STORE_GROUP || text.len == 0) {
            rc = us_ask_group(a, items, k, refused, n);
            n = 0;
            k = 0;
        }
    }

    return rc;
}


/* the duration in units of the directory, s; 0: it keeps no claims */

static int
us_ask_older(us_ask_t *a, uint64_t unit)
{
    uint64_t  s;
    uint8_t   least[US_TIME_TEXT + 1], most[US_TIME_TEXT + 1];

    if (a->older == NULL) {
        return US_CLI_DONE;
    }

    if (unit == 0) {
        return us_cli_failed(a->data.path, "it keeps no claims; --older needs "
                             "them");
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


static int
us_ask_rules(us_ask_t *a, const char *dir, us_str_t signature)
{
    a->norm = signature.len ? us_norm_of(signature)
                            : us_norm_create(US_PROFILE_CRAWLER);

    if (a->norm && (a->ws = us_norm_ws_create(a->norm)) != NULL) {
        return US_CLI_DONE;
    }

    if (signature.len == 0) {
        return us_cli_failed(dir, "out of memory");
    }

    return us_cli_fail("\"%s\" was normalized by %.*s, which this version "
                       "does not have", dir, (int) signature.len,
                       signature.data);
}


/* add owns the directory: the rules of its manifest, or the default ones */

static int
us_ask_own(us_ask_t *a, const char *dir)
{
    int               code;
    char              error[US_EMBED_ERROR];
    us_manifest_t     m;
    us_data_text_t    text;
    us_disk_error_t   e;
    us_store_conf_t   conf;
    us_embed_conf_t   own;
    us_manifest_rc_t  rc;

    memset(&conf, 0, sizeof(us_store_conf_t));
    a->data.path = dir;

    if (access(dir, F_OK) == 0) {
        if (us_cli_data_open(&a->data, dir) != US_CLI_DONE) {
            return US_CLI_USAGE;
        }

        rc = us_manifest_read(a->data.dirfd, &m, &e);

        if ((rc == US_MANIFEST_OK && us_data_conf(&m, &conf, &text, &e) == -1)
            || (rc != US_MANIFEST_OK && rc != US_MANIFEST_NONE))
        {
            return us_cli_failed(dir, e.text);
        }
    }

    /* before the directory is made */

    code = us_ask_older(a, conf.revisit);

    if (code == US_CLI_DONE) {
        code = us_ask_rules(a, dir, conf.norm);
    }

    if (code != US_CLI_DONE) {
        return code;
    }

    memset(&own, 0, sizeof(us_embed_conf_t));
    own.norm = us_norm_signature(a->norm);
    own.sets = a->set != NULL;

    a->embed = us_embed_open(dir, &own, error);

    if (a->embed == NULL) {
        return us_cli_failed(dir, error);
    }

    if (a->set && us_embed_make_set(a->embed, us_str_of(a->set), &a->members)
                  == -1)
    {
        return us_cli_failed(dir, us_embed_error(a->embed));
    }

    a->store = us_embed_store(a->embed);
    us_store_time(a->store, a->older ? (uint64_t) time(NULL) : 0);

    return US_CLI_DONE;
}


/* the others only read it */

static int
us_ask_read(us_ask_t *a, const char *dir)
{
    int              code;
    us_store_conf_t  conf;

    code = us_cli_data_read(&a->data, dir, a->batch.send == us_ask_ids);

    if (code != US_CLI_DONE) {
        return code;
    }

    a->store = a->data.store;
    us_store_conf(a->store, &conf);
    us_store_time(a->store, a->older ? (uint64_t) time(NULL) : 0);
    code = us_ask_older(a, conf.revisit);

    if (a->set) {
        a->members = us_store_set(a->store, us_str_of(a->set));

        if (a->members.number == 0) {
            return us_cli_fail("%s has no set \"%s\"", a->data.path, a->set);
        }
    }

    return code ? code : us_ask_rules(a, dir, conf.norm);
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

    if (us_client_key(&a->client) == -1) {
        return us_cli_failed(a->client.host, a->client.error);
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


/* of get: a line is an id */

static int
us_ask_id(void *data, us_str_t line)
{
    return us_id_digits(line) && line.len < 20 ? US_CLI_DONE
           : us_cli_fail("\"%.*s\" is not an id, a number of at most 19 digits",
                         line.len > 40 ? 40 : (int) line.len, line.data);
}


static int
us_ask_command(int argc, char **argv)
{
    int          code, rc;
    char         error[US_EMBED_ERROR];
    us_str_t     id;
    const char  *store, *name;

    static us_ask_t  a;

    a.data.dirfd = -1;
    a.data.recovery.readers = -1;

    name = strrchr(argv[0], ' ') + 1;
    a.command = strcmp(name, us_cli_add.name) == 0 ? &us_cli_add
                : strcmp(name, us_cli_seen.name) == 0 ? &us_cli_seen
                : &us_cli_get;
    a.endpoint = a.command == &us_cli_add ? "/add"
                 : a.command == &us_cli_seen ? "/seen" : "/url";

    if (us_cli_options(a.command, argc, argv, &a, 1, -1) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    if (a.older && a.set) {
        return us_cli_fail("--older and --set exclude each other");
    }

    /* of a service, they are part of the request */

    if (a.set || a.older) {
        snprintf(a.path, sizeof(a.path), "%s?%s=%s", a.endpoint,
                 a.set ? "set" : "older", a.set ? a.set : a.older);
        a.endpoint = a.path;
    }

    store = argv[optind++];
    code = US_CLI_DONE;

    if (us_client_is(store)) {
        a.batch.send = us_ask_service;

        if (us_client_init(&a.client, store) == -1) {
            code = us_cli_fail("%s", a.client.error);
        }

    } else {
        a.batch.send = a.command == &us_cli_get ? us_ask_ids : us_ask_urls;
        code = a.command == &us_cli_add ? us_ask_own(&a, store)
                                        : us_ask_read(&a, store);
    }

    a.batch.data = &a;
    a.batch.check = a.command == &us_cli_get ? us_ask_id : NULL;

    if (code == US_CLI_DONE && a.command == &us_cli_get && optind < argc) {

        /* get has ids as arguments, the others names of files */

        for ( /* void */ ; optind < argc && code == US_CLI_DONE; optind++) {
            id = us_str_of(argv[optind]);
            code = id.len ? us_batch_add(&a.batch, id) : us_ask_id(NULL, id);
        }

        code = code ? code : us_batch_flush(&a.batch);

    } else if (code == US_CLI_DONE) {
        code = us_batch_files(&a.batch, argc - optind, argv + optind);
    }

    rc = US_CLI_DONE;

    if (a.embed && us_embed_close(a.embed, error) == -1) {
        rc = us_cli_failed(a.data.path, error);
    }

    us_cli_data_close(&a.data);
    us_norm_ws_destroy(a.ws);
    us_norm_destroy(a.norm);
    us_client_free(&a.client);

    return code ? code : rc ? rc : a.code;
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
    .exits =
        " 0   all ids have URLs\n"
        " 1   some have none\n"
        " 2   wrong usage, or the store could not be read"
};
