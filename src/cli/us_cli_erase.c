
/*
 * urlstore erase: URLs, ids or a site of a directory, or of a service by POST
 * /erase.
 *
 *     lines --> us_embed_erase()                         (DIR)
 *           --> a batch --> POST /erase, with a key      (http://...)
 *
 * The batches of a service have one key, so all are of one erasure.  That of a
 * router has parts, and a batch names those of the shards that it went to: the
 * parts of all batches are its name (0.3_2.7).  Of a directory the records are
 * erased at the end, and files that have them are replaced by a snapshot.
 */


#include "us_cli_data.h"
#include "us_client.h"
#include "us_files.h"
#include "../api/us_audit.h"
#include "../api/us_list.h"
#include "../journal/us_dir.h"
#include "../life/us_embed.h"
#include "../store/us_shard.h"
#include "../us_text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>


/* shards of a cluster, see src/cluster/us_map.h */
#define US_ERASE_PARTS  4096

/* of an id, in a line */
#define US_ERASE_DIGITS  19


/* of an erasure: the shard is -1 if it is no router's */

typedef struct {
    int64_t          shard;
    uint64_t         number;
} us_erase_part_t;


typedef struct {
    const char      *site;
    const char      *reason;          /* or NULL: none */
    const char      *lift;            /* a number or a name, or NULL */
    int              list;

    us_client_t      client;          /* of a service: */
    char             endpoint[US_CLIENT_ENDPOINT];
    us_erase_part_t  parts[US_ERASE_PARTS];
    size_t           nparts;
    size_t           shown;           /* lines of the last answer */
    us_cli_data_t    data;            /* of a directory: */
    uint64_t         number;          /* 0: not begun */

    us_files_t       files;
    int              code;            /* DONE, or REFUSED by some answer */
} us_erasing_t;


static int
us_erase_reason(const us_cli_option_t *o, void *value, const char *arg)
{
    return us_list_is_reason(us_str_of(arg)) ? us_cli_text(o, value, arg)
           : us_cli_fail("invalid --reason; at most %d bytes of UTF-8 without "
                         "control characters are expected", US_ERASURE_REASON);
}


static int
us_erase_number(const us_cli_option_t *o, void *value, const char *arg)
{
    size_t  len;

    /* a number; or a name of a router, which has one dot at least */

    len = strspn(arg, strchr(arg, '.') ? "0123456789._" : "0123456789");

    return len && len < (strchr(arg, '.') ? US_CLIENT_ENDPOINT - 8 : 16)
           && arg[len] == '\0' && (*arg != '0' || arg[1] == '.')
           ? us_cli_text(o, value, arg)
           : us_cli_fail("invalid --lift \"%.40s\"; the number of an erasure, "
                         "or its name at a router, is expected", arg);
}


static int
us_erase_site(const us_cli_option_t *o, void *value, const char *arg)
{
    return strlen(arg) <= US_LOOKUP_NAME && *arg ? us_cli_text(o, value, arg)
           : us_cli_fail("invalid --site \"%.40s\"; HOST[:PORT] is expected",
                         arg);
}


static us_erasing_t  us_erasing;


static const us_cli_option_t  us_erase_list[] = {
    { 's', "site", "HOST", "Erase all URLs of this site, with and without "
      "\"www.\"; no FILE is read.",
      us_erase_site, offsetof(us_erasing_t, site) },
    { 'r', "reason", "TEXT", "Keep this with the erasure.",
      us_erase_reason, offsetof(us_erasing_t, reason) },
    { 'l', "lift", "NUMBER", "Lift an erasure: its URLs may be added again. "
      "At a router it has a name (0.3_2.7).",
      us_erase_number, offsetof(us_erasing_t, lift) },
    { US_CLI_LONG, "list", NULL, "Print all erasures.",
      NULL, offsetof(us_erasing_t, list) },
    { .name = NULL }
};


/* --- a service ------------------------------------------------------------ */

/* "%XX" for all that is not a letter, a digit, or one of these */

static char *
us_erase_encode(char *p, const char *text)
{
    for ( /* void */ ; *text; text++) {
        p += sprintf(p, strchr("-._~:", *text)
                        || (*text >= '0' && *text <= '9')
                        || ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z')
                        ? "%c" : "%%%02X", (unsigned char) *text);
    }

    return p;
}


/*
 * The parts of a name, unless they are known; they are sorted.  A name is a
 * number, or SHARD.NUMBER with "_" between; "-": there is none.
 */

static void
us_erase_name(us_erasing_t *e, const char *p)
{
    char             *end;
    size_t            i;
    us_erase_part_t   part, *at;

    for ( ;; ) {
        part.shard = -1;
        part.number = strtoull(p, &end, 10);

        if (*end == '.') {
            part.shard = (int64_t) part.number;
            part.number = strtoull(end + 1, &end, 10);
        }

        for (i = e->nparts; i; i--) {
            at = &e->parts[i - 1];

            if (at->shard < part.shard
                || (at->shard == part.shard && at->number <= part.number))
            {
                break;
            }
        }

        if (part.number && e->nparts < US_ERASE_PARTS
            && (i == 0 || e->parts[i - 1].shard != part.shard
                || e->parts[i - 1].number != part.number))
        {
            at = &e->parts[i];
            memmove(at + 1, at, (e->nparts++ - i) * sizeof(us_erase_part_t));
            *at = part;
        }

        if (*end != '_') {
            return;
        }

        p = end + 1;
    }
}


/* the value of a line with #, up to a space; NULL: it does not have it */

static const char *
us_erase_value(const us_str_t *line, const char *name, int *len)
{
    const char  *p;

    p = memmem(line->data, line->len, name, strlen(name));

    if (p) {
        p += strlen(name);
        *len = (int) strcspn(p, " \n");
    }

    return p;
}


/*
 * Prints what a service has answered.  A line with # has the name of an
 * erasure; or, of a list, where it goes on, which is the next endpoint.  A
 * router also says there which shards do not answer.
 */

static void
us_erase_print(us_erasing_t *e)
{
    int             len;
    us_str_t        line, text;
    const char     *value;
    const uint8_t  *tab;

    text = (us_str_t) { e->client.len, e->client.reply };
    e->shown = 0;

    while (text.len) {
        line = us_cli_line(&text);

        if (line.len && *line.data == '#') {
            value = us_erase_value(&line, " erasure=", &len);

            if (value) {
                us_erase_name(e, value);
            }

            value = us_erase_value(&line, " unavailable=", &len);

            if (value && e->shown == 0) {
                (void) us_cli_fail("shards that do not answer: %.*s", len,
                                   value);
                e->code = US_CLI_REFUSED;
            }

            value = us_erase_value(&line, " next=", &len);

            if (value) {
                (void) snprintf(e->endpoint, sizeof(e->endpoint),
                                "/erase?summary=1&from=%.*s", len, value);
            }

            value = us_erase_value(&line, " cursor=", &len);

            if (value) {
                (void) snprintf(e->endpoint, sizeof(e->endpoint),
                                "/erase?cursor=%.*s", len, value);
            }

            continue;
        }

        e->shown++;

        tab = memchr(line.data, '\t', line.len);

        if (e->site == NULL && !e->list
            && (tab == NULL || strncmp((const char *) tab, "\terased\t", 8)))
        {
            e->code = US_CLI_REFUSED;
        }

        (void) fwrite(line.data, line.len, 1, stdout);
        (void) putchar('\n');
    }
}


/* a batch of lines */

static int
us_erase_post(void *data, us_str_t text)
{
    us_erasing_t *e = data;

    int  status;

    status = us_client_post(&e->client, e->endpoint, text);

    if (status != 200 && status != 202) {
        return us_cli_fail("%s", e->client.error);
    }

    us_erase_print(e);

    return US_CLI_DONE;
}


/* one request without lines: a site, a list, or what is lifted */

static int
us_erase_once(us_erasing_t *e, const char *method)
{
    int  status;

    status = us_client_once(&e->client, method, e->endpoint, "text/plain",
                            US_CLIENT_NO_BODY);

    if (status < 200 || status >= 300) {
        (void) us_cli_fail("%s", e->client.error);
        return status == 404 ? US_CLI_REFUSED : US_CLI_USAGE;
    }

    us_erase_print(e);

    return US_CLI_DONE;
}


/* --- a directory ---------------------------------------------------------- */

static int
us_erase_begin(us_erasing_t *e, us_erasure_kind_t kind)
{
    return e->number
           || us_embed_erase_begin(e->data.embed, kind,
                                   us_str_of(e->reason ? e->reason : ""),
                                   &e->number) == 0
           ? US_CLI_DONE : us_cli_data_failed(&e->data);
}


/* erases the URL or the id of each line, and prints what it was answered */

static int
us_erase_own(void *data, us_str_t *lines, size_t n)
{
    us_erasing_t *e = data;

    size_t              i, k, len;
    uint8_t             url[US_URL_MAX + 8];
    uint64_t            id;
    us_canon_t          canon;
    us_store_t         *s;
    us_verdict_t        verdict;
    us_store_item_t     item;
    us_store_status_t   status;

    s = e->data.store;

    for (i = 0; i < n; i++) {
        k = 0;
        status = US_OK;

        memset(&item, 0, sizeof(us_store_item_t));
        item.url.data = url;

        if (lines[i].len <= US_ERASE_DIGITS
            && us_read_u64(lines[i], &k, UINT64_MAX, &id) == 0
            && k == lines[i].len)
        {
            id -= us_store_first_id(s);
            status = us_store_text(s, id, url, &len);

            if (status == US_OK) {
                item.url.len = len;
                item.merge = us_norm_merge(e->data.norm, e->data.ws, item.url);
            }

        } else {
            id = US_STORE_NO_ID;
            verdict = us_normalize(e->data.norm, e->data.ws, lines[i], NULL,
                                   &canon);

            if (verdict != US_URL_OK) {
                printf("-\tinvalid\t%s\n", us_verdict_name(verdict));
                e->code = US_CLI_REFUSED;
                continue;
            }

            memcpy(url, canon.url.href.data, canon.url.href.len);
            item.url.len = canon.url.href.len;
            item.merge = canon.merge;
        }

        if (status == US_OK) {

            if (us_erase_begin(e, US_ERASURE_URLS) != US_CLI_DONE) {
                return US_CLI_USAGE;
            }

            if (us_embed_erase(e->data.embed, e->number, &item, 1) == -1) {
                return us_cli_data_failed(&e->data);
            }

            status = item.status;
            id = id == US_STORE_NO_ID ? item.id : id;
        }

        if (status == US_ERASED && id != US_STORE_NO_ID) {
            printf("%" PRIu64, us_store_first_id(s) + id);

        } else {
            (void) putchar('-');
        }

        printf("\t%s\t%.*s\n", status == US_ERASED ? "erased"
               : (char *) us_answer_words[us_answer_of(status)].data,
               (int) lines[i].len, lines[i].data);

        if (status != US_ERASED) {
            e->code = US_CLI_REFUSED;
        }
    }

    return us_cli_output();
}


static void
us_erase_show(us_erasing_t *e, uint64_t number)
{
    uint8_t            line[US_LIST_ERASURE];
    us_erasure_info_t  info;

    if (us_store_erasure(e->data.store, number, &info)) {
        (void) fwrite(line, us_list_erasure(line, US_FORMAT_TEXT, &info,
                                            us_embed_left(e->data.embed, &info),
                                            us_string(""))
                            - line, 1, stdout);
    }
}


/* the line of the audit; 0, or -1 with errno */

static int
us_erase_audit(us_erasing_t *e, uint64_t number)
{
    int                rc;
    us_audit_t         audit;
    us_erasure_info_t  info;

    if (!us_store_erasure(e->data.store, number, &info)) {
        return 0;
    }

    if (us_audit_open(&audit, e->data.dirfd) == -1) {
        return -1;
    }

    do {
        rc = us_audit_read(&audit, number);
    } while (rc == 1);

    if (rc == 0) {
        rc = us_audit_add(&audit, &info, us_embed_left(e->data.embed, &info));
    }

    us_audit_close(&audit);

    return rc;
}


static int
us_erase_service(us_erasing_t *e, const char *url, int n, char **args)
{
    int      code;
    char    *p;
    size_t   i;

    if (us_client_init(&e->client, url) != US_CLI_DONE
        || us_client_key(&e->client) != US_CLI_DONE)
    {
        return US_CLI_USAGE;
    }

    p = e->endpoint + sprintf(e->endpoint, "/erase");

    if (e->lift) {
        (void) sprintf(p, "/%s", e->lift);
        return us_erase_once(e, "DELETE");
    }

    if (e->list) {

        /* pages, up to one that has none */

        (void) strcpy(e->endpoint, "/erase?summary=1");

        do {
            code = us_erase_once(e, "GET");
        } while (code == US_CLI_DONE && e->shown);

        return code;
    }

    p += sprintf(p, e->site ? "?site=" : "?");
    p = us_erase_encode(p, e->site ? e->site : "");
    p += sprintf(p, e->reason ? e->site ? "&reason=" : "reason=" : "");
    p = us_erase_encode(p, e->reason ? e->reason : "");
    *p = '\0';

    if (e->site) {
        return us_erase_once(e, "POST");
    }

    e->files.send = us_erase_post;
    code = us_files_all(&e->files, n, args);

    for (i = 0; i < e->nparts; i++) {
        (void) fputs(i ? "_" : "# erasure=", stdout);

        if (e->parts[i].shard != -1) {
            printf("%" PRId64 ".", e->parts[i].shard);
        }

        printf("%" PRIu64, e->parts[i].number);
    }

    (void) fputs(e->nparts ? "\n" : "", stdout);

    return code;
}


/* a site: HOST[:PORT], in any spelling */

static int
us_erase_own_site(us_erasing_t *e)
{
    uint8_t     buf[US_LOOKUP_BUF];
    us_canon_t  canon;

    if (us_lookup_site(e->data.norm, e->data.ws, us_str_of(e->site), buf,
                       &canon)
        != 0)
    {
        return us_cli_fail("invalid --site \"%.40s\"; HOST[:PORT] is "
                           "expected", e->site);
    }

    if (us_erase_begin(e, US_ERASURE_SITE) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    return us_embed_erase_site(e->data.embed, e->number, us_canon_site(&canon))
           == -1 ? us_cli_data_failed(&e->data) : US_CLI_DONE;
}


static int
us_erase_directory(us_erasing_t *e, const char *dir, int n, char **args)
{
    int              code, rc;
    uint64_t         number;
    us_embed_conf_t  own = { .erases = 1 };

    /* as its owner, but none is made */

    code = us_cli_data_own(&e->data, dir, &own);
    code = code ? code : us_cli_data_rules(&e->data);
    number = 0;

    if (code == US_CLI_DONE && e->lift) {

        /* a name is one of a router: there is none of such a number */

        number = strchr(e->lift, '.') ? 0 : strtoull(e->lift, NULL, 10);
        rc = us_embed_erase_lift(e->data.embed, number);
        code = rc == -1 ? us_cli_data_failed(&e->data) : US_CLI_DONE;

        if (rc == 0) {
            (void) us_cli_fail("%s has no erasure %s", dir, e->lift);
            code = US_CLI_REFUSED;
        }

    } else if (code == US_CLI_DONE && e->list) {
        while (number < us_store_erasures(e->data.store)) {
            us_erase_show(e, ++number);
        }

        number = 0;

    } else if (code == US_CLI_DONE) {
        e->files.take = us_erase_own;
        code = e->site ? us_erase_own_site(e)
                       : us_files_all(&e->files, n, args);
        number = e->number;

        if (number && us_embed_erase_end(e->data.embed, number) == -1) {
            code = us_cli_data_failed(&e->data);
        }

        if (number && e->site) {
            us_erase_show(e, number);

        } else if (number) {
            printf("# erasure=%" PRIu64 "\n", number);
        }
    }

    if (number && us_erase_audit(e, number) == -1) {
        code = us_cli_failed(dir, "\"" US_DIR_AUDIT "\" could not be written");
    }

    return us_cli_data_close(&e->data, code);
}


static int
us_erase_command(const us_cli_command_t *c, int n, char **args)
{
    us_erasing_t *e = c->own;

    int          code;
    const char  *store;

    store = *args++;
    n--;

    if ((e->site != NULL) + (e->lift != NULL) + e->list > 1
        || (e->reason && (e->lift || e->list))
        || (n && (e->site || e->lift || e->list)))
    {
        return us_cli_usage(c);
    }

    e->files.flush = us_cli_flush;
    e->files.data = e;
    e->files.progress = !isatty(1);
    e->files.cut = 1;
    e->files.urls = 1;

    code = us_client_is(store) ? us_erase_service(e, store, n, args)
                               : us_erase_directory(e, store, n, args);

    us_client_free(&e->client);

    return us_cli_output() ? US_CLI_USAGE : code ? code : e->code;
}


const us_cli_command_t  us_cli_erase = {
    .name = "erase",
    .run = us_erase_command,
    .args = "STORE [FILE...]",
    .summary = "erase URLs of a store, which are refused from then on",
    .text =
        "Erases the URLs and ids of files, or of standard input (\"-\"), one a "
        "line: what is stored is deleted, and none of the URLs can be added "
        "any more, also if it was not stored. Prints a line for each: the id "
        "or \"-\", \"erased\" or what is wrong, and the line; then the number "
        "of the erasure. --site and --list print a line for an erasure, and at "
        "a router for each of its parts: number, kind, state, entries of the "
        "list, deleted ids, when it was begun, done and lifted (in seconds "
        "since 1970), where bytes may be left, reason, separated by tabs.\n\n"
        "STORE is a data directory, or http://HOST[:PORT][/PATH] of a running "
        "service (without TLS). A directory must have no owner. Its records of "
        "deleted URLs are overwritten, and its files are replaced by a "
        "snapshot.",
    .options = us_erase_list,
    .own = &us_erasing,
    .exits =
        " 0   it was done\n"
        " 1   some lines could not be erased, or there is no such erasure\n"
        " 2   wrong usage, or the store or a file could not be read or "
        "written"
};
