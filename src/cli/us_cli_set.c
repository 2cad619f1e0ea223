
/*
 * urlstore set list|make|drop STORE [NAME...]: the sets of a directory, or of a
 * service by GET, PUT and DELETE of /set/NAME.
 */


#include "us_cli_data.h"
#include "us_client.h"
#include "../api/us_list.h"
#include "../life/us_embed.h"


typedef enum {
    US_SET_LIST = 0,
    US_SET_MAKE,
    US_SET_DROP,
    US_SET_ACTIONS
} us_set_action_t;


static const struct {
    const char  *name;
    const char  *method;
} us_set_actions[US_SET_ACTIONS] = {
    { "list", "GET" },
    { "make", "PUT" },
    { "drop", "DELETE" }
};


int
us_cli_set_name(const us_cli_option_t *o, void *value, const char *arg)
{
    return us_conf_is_set(us_str_of(arg)) ? us_cli_text(o, value, arg)
           : us_cli_fail("invalid name of a set \"%.100s\"; 1 to %u letters, "
                         "digits and _ - . : are expected", arg,
                         US_STORE_SET_LEN);
}


static int
us_set_none(const char *store, const char *name)
{
    (void) us_cli_fail("%s has no set \"%s\"", store, name);

    return US_CLI_REFUSED;
}


/* the sets from a row on, or the one in it */

static void
us_set_print(us_store_t *s, uint32_t row, int all)
{
    uint8_t              line[US_LIST_SET];
    us_store_set_info_t  set;

    while (us_store_set_info(s, &row, &set)) {

        (void) fwrite(line, us_list_set(line, US_FORMAT_TEXT, &set) - line, 1,
                      stdout);

        if (!all) {
            break;
        }
    }
}


/* an exit code, REFUSED if it or another one is REFUSED; the same below */

static int
us_set_directory(const char *path, us_set_action_t action, int n,
    char **names)
{
    int              i, code, rc;
    us_cli_data_t    d;
    us_store_set_t   set;
    us_embed_conf_t  conf = { .sets = (action == US_SET_MAKE) };

    code = action == US_SET_LIST ? us_cli_data_read(&d, path, 1)
                                 : us_cli_data_own(&d, path, &conf);

    if (code == US_CLI_DONE && n == 0) {
        us_set_print(d.store, 0, 1);
    }

    for (i = 0; i < n && code != US_CLI_USAGE; i++) {

        rc = action == US_SET_MAKE
             ? us_embed_make_set(d.embed, us_str_of(names[i]), &set) : 0;

        if (action != US_SET_MAKE) {
            set = us_store_set(d.store, us_str_of(names[i]));

            if (set.number == 0) {
                code = us_set_none(path, names[i]);
                continue;
            }
        }

        if (action == US_SET_DROP) {
            rc = us_embed_drop_set(d.embed, set);

            if (rc == 0) {
                (void) us_cli_fail("the set \"%s\" is declared (marks=), and "
                                   "cannot be dropped", names[i]);
                code = US_CLI_REFUSED;
            }

        } else if (rc != -1) {
            us_set_print(d.store, set.row, 0);
        }

        if (rc == -1) {
            code = us_cli_data_failed(&d);
        }
    }

    return us_cli_data_close(&d, code);
}


/* one of a service, or all */

static int
us_set_ask(us_client_t *c, us_set_action_t action, const char *name)
{
    int       code, status;
    char      path[sizeof("/set/") + US_STORE_SET_LEN];
    us_str_t  line, text;

    (void) snprintf(path, sizeof(path), "/set%s%s", name ? "/" : "",
                    name ? name : "");

    status = us_client_once(c, us_set_actions[action].method, path,
                            "text/plain", US_CLIENT_NO_BODY);

    if (status < 200 || status >= 300) {
        (void) us_cli_fail("%s", c->error);
        return status == 404 && name ? US_CLI_REFUSED : US_CLI_USAGE;
    }

    /* of a router, the last line says which shards do not answer */

    code = US_CLI_DONE;

    for (text = (us_str_t) { c->len, c->reply }; text.len; /* void */ ) {
        line = us_cli_line(&text);

        if (line.len && *line.data == '#') {
            code = US_CLI_REFUSED;
        }

        fprintf(line.len && *line.data == '#' ? stderr : stdout, "%.*s\n",
                (int) line.len, line.data);
    }

    return code;
}


static int
us_set_command(const us_cli_command_t *own, int n, char **args)
{
    int               i, code, rc;
    char            **names;
    const char       *store, *name;
    us_client_t       c;
    us_set_action_t   action;

    for (action = 0;
         action < US_SET_ACTIONS
         && strcmp(args[0], us_set_actions[action].name) != 0;
         action++)
    {
        /* void */
    }

    store = args[1];
    names = args + 2;
    n -= 2;

    if (action == US_SET_ACTIONS || (n == 0 && action != US_SET_LIST)) {
        return us_cli_usage(own);
    }

    for (i = 0; i < n; i++) {
        if (us_cli_set_name(NULL, &name, names[i]) != US_CLI_DONE) {
            return US_CLI_USAGE;
        }
    }

    if (!us_client_is(store)) {
        code = us_set_directory(store, action, n, names);

    } else {
        code = us_client_init(&c, store);

        if (code == US_CLI_DONE && n == 0) {
            code = us_set_ask(&c, action, NULL);
        }

        for (i = 0; i < n && code != US_CLI_USAGE; i++) {
            rc = us_set_ask(&c, action, names[i]);
            code = rc ? rc : code;
        }

        us_client_free(&c);
    }

    return us_cli_output() ? US_CLI_USAGE : code;
}


const us_cli_command_t  us_cli_set = {
    .name = "set",
    .run = us_set_command,
    .args = "list|make|drop STORE [NAME...]",
    .summary = "list, make and drop sets of a store",
    .text =
        "A set contains URLs of a store, such as what a crawl has seen: see "
        "\"add\", \"seen\" and \"dump\", which have --set. \"list\" prints a "
        "line for each set, or for those of the names: name, members, bytes, "
        "when it was made (in seconds since 1970; 0: a mark) and for how many "
        "URLs a service was asked about it, separated by tabs. \"make\" makes "
        "those that are not there, and prints the same of each. \"drop\" drops "
        "them with all that they contain; the URLs stay in the store.\n\n"
        "STORE is a data directory, or http://HOST[:PORT][/PATH] of a running "
        "service (without TLS). To make and drop sets, a directory must have "
        "no owner.",
    .exits =
        " 0   it was done\n"
        " 1   there is no set of some name, or some shards of a router did not "
        "answer; the others were listed or dropped\n"
        " 2   wrong usage, or the store could not be read or written"
};
