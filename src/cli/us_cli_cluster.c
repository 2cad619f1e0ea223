
/*
 * urlstore cluster ACTION MAP ...: maps of a cluster are made, checked, shown,
 * turned into nginx configuration, and applied; a standby is promoted, and a
 * log gets a new base.
 *
 *     MAP --> us_map_read --> check, show, conf, new, grow --> standard output
 *                        `--> us_apply: POST to each node, to each router
 *
 * A row of us_cluster_actions[] for each action.
 */


#include "us_apply.h"
#include "us_cli.h"
#include "us_client.h"
#include "us_files.h"
#include "us_nodes.h"
#include "../cluster/us_map_grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>


#define US_CLUSTER_ERROR   512
#define US_CLUSTER_WAIT    60         /* seconds, unless --timeout */
#define US_CLUSTER_REBASE  3600       /* the same of rebase, which is answered
                                         when it is done */
#define US_CLUSTER_ANSWER  20         /* a promotion is after 10 */


enum {
    US_CLUSTER_NODES = US_CLI_LONG,
    US_CLUSTER_FORCE,
    US_CLUSTER_KEY,
    US_CLUSTER_NORM,
    US_CLUSTER_PATH,
    US_CLUSTER_SAMPLE,
    US_CLUSTER_SHARD,
    US_CLUSTER_TIMEOUT
};


typedef struct {
    const char   *nodes;              /* a file, or NULL */
    const char   *norm;
    const char   *sample;             /* a file, or NULL */
    us_key_t      key;
    us_apply_t    apply;
    int           shard;              /* of promote; -1: all */
    uint32_t      weight[US_SLOTS];   /* of the sample */

    int           n;                  /* arguments after the action */
    char        **args;
} us_cluster_t;


typedef struct {
    const char   *name;
    int           least;              /* arguments */
    int           most;
    int         (*run)(us_cluster_t *c);
} us_cluster_action_t;


static int us_cluster_command(int argc, char **argv);
static int us_cluster_check(us_cluster_t *c);
static int us_cluster_show(us_cluster_t *c);
static int us_cluster_conf(us_cluster_t *c);
static int us_cluster_new(us_cluster_t *c);
static int us_cluster_grow(us_cluster_t *c);
static int us_cluster_apply(us_cluster_t *c);
static int us_cluster_promote(us_cluster_t *c);
static int us_cluster_forget(us_cluster_t *c);
static int us_cluster_rebase(us_cluster_t *c);


static const us_cluster_action_t  us_cluster_actions[] = {
    { "check", 1, 2, us_cluster_check },
    { "show", 1, 1 << 30, us_cluster_show },
    { "conf", 1, 1, us_cluster_conf },
    { "new", 1, US_SHARDS, us_cluster_new },
    { "grow", 2, US_SHARDS, us_cluster_grow },
    { "apply", 1, 1 << 30, us_cluster_apply },
    { "promote", 1, 1, us_cluster_promote },
    { "forget", 1, 1, us_cluster_forget },
    { "rebase", 1, 1, us_cluster_rebase },
    { NULL, 0, 0, NULL }
};


static const us_cli_option_t  us_cluster_list[] = {
    { US_CLUSTER_NODES, "nodes", "FILE", "Of conf and apply: lines NODE "
      "HOST:PORT, the addresses of the nodes." },
    { US_CLUSTER_FORCE, "force", NULL, "Of apply: post the map although no "
      "node of a new shard could be asked for its uuid. A wrong uuid in a map "
      "cannot be mended." },
    { US_CLUSTER_KEY, "key", "KEY", "Of new: \"url\" (the default) or "
      "\"site\", what decides the slot of a URL. It can never be changed." },
    { US_CLUSTER_NORM, "norm", "TEXT", "Of new: \"normalization\" of GET "
      "/stats of the shards. The default is that of zones with the defaults." },
    { US_CLUSTER_PATH, "path", "PATH", "Of apply: the path of "
      "urlstore_cluster_admin at the nodes; /cluster is the default." },
    { US_CLUSTER_SAMPLE, "sample", "FILE", "Of new and grow: different URLs, "
      "one a line. The shards get as many of them, not as many slots: by "
      "\"site\", large sites are divided." },
    { US_CLUSTER_SHARD, "shard", "NUMBER", "Of promote, forget and rebase: "
      "this shard only." },
    { US_CLUSTER_TIMEOUT, "timeout", "SECONDS", "Of apply, promote, forget and "
      "rebase: how long to try; 60 is the default, of rebase 3600." },
    { 0, NULL, NULL, NULL }
};


const us_cli_command_t  us_cli_cluster = {
    .name = "cluster",
    .run = us_cluster_command,
    .args = "ACTION [ARGUMENT...]",
    .summary = "make, check and apply the map of a cluster",
    .text =
        "A map says which shard has which URLs. Everywhere MAP is a file, "
        "\"-\", or http://HOST[:PORT][/PATH] of a running node or router, "
        "whose map is read (/cluster without a path).\n\n"
        " check MAP [OLD]      is it a map, and may it follow OLD?\n"
        " show MAP [URL...]    the shards and their shares; with URLs a line\n"
        "                      for each: slot, owner, former owners or \"-\",\n"
        "                      and the canonical URL\n"
        " conf MAP             prints an upstream for each node, to include\n"
        "                      in the http block of nginx.conf\n"
        " new SHARD...         prints the first map, of stores without URLs;\n"
        "                      a store that has some is the only SHARD, and\n"
        "                      the others come by grow\n"
        " grow MAP SHARD...    prints the next map, with more shards: slots\n"
        "                      move to them until all have as many\n"
        " apply MAP [URL...]   posts the map to the nodes of --nodes, then to\n"
        "                      the URLs, until each has it; a standby gets it\n"
        "                      from its primary\n"
        " promote URL          makes the standbys of the nginx at URL, its\n"
        "                      urlstore_cluster_admin (/cluster without a\n"
        "                      path), the primaries of their shards; prints\n"
        "                      shard, node and term of each\n"
        " forget URL           of a log that has lost rows: gives them up,\n"
        "                      and raises the epoch. The nodes read the log\n"
        "                      anew, and that at URL is the primary. The ids\n"
        "                      go to other URLs: save them first\n"
        " rebase URL           makes new bases of the logs whose primaries\n"
        "                      are in the nginx at URL, and removes the rows\n"
        "                      before them; prints shard, node, LSN and bytes\n"
        "                      of each\n\n"
        "SHARD is NUMBER=UUID,NODE[,NODE...]: the uuid of the shard's store, "
        "which \"urlstore stat\" and GET /stats report, and the names of its "
        "nodes, as the upstreams are called.\n\n"
        "apply may be killed at any time and run again. It first asks all "
        "whether they may have MAP, each node for its shard and its uuid, and "
        "posts nothing if one refuses, or no node of a new shard answers. It "
        "prints a line for each: SHARD, NODE (\"-\" for a URL), URL, "
        "\"adopted\", \"standby\", \"pending\" or \"refused\", and why.",
    .options = us_cluster_list,
    .exits =
        " 0   all was done; apply: every node and router has the map\n"
        " 1   it is no map, or may not follow; apply, promote, forget and "
        "rebase: it was refused\n"
        " 2   wrong usage, something could not be read or written; apply,\n"
        "     promote and rebase: not all nodes have done it in time"
};


typedef struct {
    us_norm_t     *norm;
    us_norm_ws_t  *ws;
    us_key_t       key;
    uint32_t      *weight;
} us_sampling_t;


static int
us_sample_lines(void *data, us_str_t *lines, size_t n)
{
    us_sampling_t *s = data;

    size_t      i;
    us_canon_t  canon;
    uint32_t   *weight;

    for (i = 0; i < n; i++) {
        if (us_normalize(s->norm, s->ws, lines[i], NULL, &canon)
            == US_URL_OK)
        {
            weight = &s->weight[us_slot_of(s->key, canon.url.href)];
            *weight += *weight < UINT32_MAX;
        }
    }

    return US_CLI_DONE;
}


static int
us_sample_read(us_sampling_t *s, const char *path)
{
    int         code;
    char       *names[1];
    us_files_t  files;

    memset(&files, 0, sizeof(us_files_t));
    files.take = us_sample_lines;
    files.data = s;
    files.cut = 1;
    names[0] = (char *) path;
    code = US_CLI_USAGE;

    if (us_files_init(&files) == 0) {
        code = us_files_run(&files, 1, names);

        if (code == US_CLI_DONE) {
            code = us_files_code(&files);
        }
    }

    us_files_free(&files);

    return code;
}


/*
 * Counts the URLs of a file, or of standard input for "-", by slot, after
 * normalization by `norm`; refused URLs are left out, and each slot has one
 * more.  0, or US_CLI_USAGE after a message.
 */

static int
us_sample(const char *path, us_str_t norm, us_key_t key,
    uint32_t weight[US_SLOTS])
{
    int          code;
    unsigned     slot;
    us_sampling_t  s;

    s.key = key;
    s.weight = weight;
    s.norm = us_cli_norm(norm);
    s.ws = s.norm ? us_norm_ws_create(s.norm) : NULL;

    for (slot = 0; slot < US_SLOTS; slot++) {
        weight[slot] = 1;
    }

    if (s.ws == NULL) {
        fprintf(stderr, "urlstore: no normalization \"%.*s\"\n",
                (int) norm.len, norm.data);
        us_norm_destroy(s.norm);
        return US_CLI_USAGE;
    }

    code = us_sample_read(&s, path);
    us_norm_ws_destroy(s.ws);
    us_norm_destroy(s.norm);

    return code;
}


static int
us_cluster_options(us_cluster_t *c, int argc, char **argv)
{
    int      key;
    char    *end;
    double   shard;

    while ((key = us_cli_option(&us_cli_cluster, argc, argv)) != -1) {

        switch (key) {

        case US_CLUSTER_NODES:
            c->nodes = optarg;
            break;

        case US_CLUSTER_FORCE:
            c->apply.force = 1;
            break;

        case US_CLUSTER_KEY:
            if (strcmp(optarg, "url") != 0 && strcmp(optarg, "site") != 0) {
                fprintf(stderr, "urlstore: --key \"%.40s\" is neither \"url\" "
                        "nor \"site\"\n", optarg);
                return US_CLI_USAGE;
            }

            c->key = *optarg == 's' ? US_KEY_SITE : US_KEY_URL;
            break;

        case US_CLUSTER_NORM:
            c->norm = optarg;
            break;

        case US_CLUSTER_PATH:
            c->apply.path = optarg;
            break;

        case US_CLUSTER_SAMPLE:
            c->sample = optarg;
            break;

        case US_CLUSTER_SHARD:
            shard = us_cli_count(optarg, &end);

            if (*end || *optarg == '\0' || shard >= US_SHARDS) {
                fprintf(stderr, "urlstore: --shard \"%.40s\" is not the "
                        "number of a shard\n", optarg);
                return US_CLI_USAGE;
            }

            c->shard = (int) shard;
            break;

        case US_CLUSTER_TIMEOUT:
            c->apply.timeout = us_cli_count(optarg, &end);

            if (c->apply.timeout == 0 || *end) {
                fprintf(stderr, "urlstore: --timeout \"%.40s\" is not a "
                        "number of seconds from 1\n", optarg);
                return US_CLI_USAGE;
            }

            break;

        default:
            return US_CLI_USAGE;
        }
    }

    return US_CLI_DONE;
}


static int
us_cluster_command(int argc, char **argv)
{
    us_cluster_t                c;
    const us_cluster_action_t  *a;

    memset(&c, 0, sizeof(us_cluster_t));
    c.apply.path = "/cluster";
    c.shard = -1;

    if (us_cluster_options(&c, argc, argv) != US_CLI_DONE || optind == argc) {
        return us_cli_usage(&us_cli_cluster);
    }

    c.n = argc - optind - 1;
    c.args = argv + optind + 1;

    for (a = us_cluster_actions; a->name; a++) {
        if (strcmp(a->name, argv[optind]) == 0) {
            break;
        }
    }

    if (a->name == NULL) {
        fprintf(stderr, "urlstore: no action \"%.40s\"\n", argv[optind]);
        return us_cli_usage(&us_cli_cluster);
    }

    return c.n < a->least || c.n > a->most ? us_cli_usage(&us_cli_cluster)
                                           : a->run(&c);
}


static int
us_cluster_get(const char *url, us_str_t *text)
{
    int                  status;
    us_client_t          c;
    us_client_request_t  r = { "GET", "", "application/json", { 0, NULL } };

    if (us_client_init(&c, url) == -1) {
        fprintf(stderr, "urlstore: %s\n", c.error);
        return US_CLI_USAGE;
    }

    r.endpoint = c.path[0] ? "" : "/cluster";
    status = us_client_once(&c, &r);

    if (status != 200) {
        fprintf(stderr, "urlstore: %s\n", status <= 0 || status >= 400
                                          ? c.error : "no map was answered");
        us_client_free(&c);
        return US_CLI_USAGE;
    }

    *text = (us_str_t) { c.len, c.reply };

    return US_CLI_DONE;
}


/* a map; NULL with an exit code after a message */

static us_map_t *
us_cluster_load(const char *from, int *code)
{
    char       err[US_CLUSTER_ERROR];
    us_map_t  *map;
    us_str_t   text;

    *code = us_client_is(from) ? us_cluster_get(from, &text)
                               : us_cli_slurp(from, US_MAP_TEXT_MAX, &text);

    if (*code != US_CLI_DONE) {
        return NULL;
    }

    map = us_map_read(text, err, sizeof(err));
    free((void *) text.data);

    if (map == NULL) {
        (void) us_cli_failed(from, err);
        *code = US_CLI_REFUSED;
    }

    return map;
}


static void
us_cluster_hex(const uint8_t *bytes)
{
    unsigned  i;

    for (i = 0; i < 16; i++) {
        printf("%02x", bytes[i]);
    }
}


static int
us_cluster_check(us_cluster_t *c)
{
    int        code;
    char       err[US_CLUSTER_ERROR];
    us_map_t  *map, *old;

    map = us_cluster_load(c->args[0], &code);

    if (map == NULL) {
        return code;
    }

    if (c->n == 2) {
        old = us_cluster_load(c->args[1], &code);

        if (old && us_map_follows(old, map, err, sizeof(err)) == -1) {
            (void) us_cli_failed(c->args[0], err);
            code = US_CLI_REFUSED;
        }

        us_map_free(old);
    }

    if (code == US_CLI_DONE) {
        printf("version %" PRIu64 ", %u shards, digest ", map->version,
               map->nshards);
        us_cluster_hex(map->digest);
        printf("\n");
    }

    us_map_free(map);

    return code;
}


static void
us_cluster_shards(const us_map_t *map)
{
    uint32_t   i, n;
    unsigned   slot, questions;
    uint32_t   owned[US_SHARDS], asked[US_SHARDS];

    memset(owned, 0, sizeof(owned));
    memset(asked, 0, sizeof(asked));
    questions = 0;

    for (slot = 0; slot < US_SLOTS; slot++) {
        owned[map->slots[slot].owner]++;
        questions += map->slots[slot].nformer;

        for (n = 0; n < map->slots[slot].nformer; n++) {
            asked[map->slots[slot].former[n]]++;
        }
    }

    printf("cluster    ");
    us_cluster_hex(map->cluster);
    printf("\nversion    %" PRIu64 "\ndigest     ", map->version);
    us_cluster_hex(map->digest);
    printf("\nnorm       %.*s\nkey        %s\nquestions  %.3f a new URL\n\n"
           "shard  slots     share  asked  uuid                              "
           "nodes\n", (int) map->norm.len, map->norm.data,
           map->key == US_KEY_URL ? "url" : "site",
           (double) questions / US_SLOTS);

    for (i = 0; i < map->nshards; i++) {
        printf("%-5u  %-5u  %6.2f %%  %-5u  ", map->shards[i].number, owned[i],
               owned[i] * 100.0 / US_SLOTS, asked[i]);
        us_cluster_hex(map->shards[i].uuid);
        printf(" ");

        for (n = 0; n < map->shards[i].nnodes; n++) {
            printf(" %.*s", (int) map->shards[i].nodes[n].len,
                   map->shards[i].nodes[n].data);
        }

        printf("\n");
    }
}


static void
us_cluster_url(const us_map_t *map, us_str_t url)
{
    unsigned            slot, n;
    const us_owners_t  *o;

    slot = us_slot_of(map->key, url);
    o = &map->slots[slot];
    printf("%u\t%u\t%s", slot, map->shards[o->owner].number,
           o->nformer ? "" : "-");

    for (n = 0; n < o->nformer; n++) {
        printf("%s%u", n ? "," : "", map->shards[o->former[n]].number);
    }

    printf("\t%.*s\n", (int) url.len, url.data);
}


static int
us_cluster_urls(const us_map_t *map, int n, char **urls)
{
    int            i, code;
    us_str_t       in;
    us_norm_t     *norm;
    us_canon_t     canon;
    us_verdict_t   rc;
    us_norm_ws_t  *ws;

    norm = us_cli_norm(map->norm);
    ws = norm ? us_norm_ws_create(norm) : NULL;

    if (ws == NULL) {
        fprintf(stderr, "urlstore: no normalization \"%.*s\"\n",
                (int) map->norm.len, map->norm.data);
        us_norm_destroy(norm);
        return US_CLI_USAGE;
    }

    for (i = 0, code = US_CLI_DONE; i < n; i++) {
        in = us_str_of(urls[i]);
        rc = us_normalize(norm, ws, in, NULL, &canon);

        if (rc == US_URL_OK) {
            us_cluster_url(map, canon.url.href);

        } else {
            printf("!%s\n", us_verdict_name(rc));
            code = US_CLI_REFUSED;
        }
    }

    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return code;
}


static int
us_cluster_show(us_cluster_t *c)
{
    int        code;
    us_map_t  *map;

    map = us_cluster_load(c->args[0], &code);

    if (map == NULL) {
        return code;
    }

    if (c->n > 1) {
        code = us_cluster_urls(map, c->n - 1, c->args + 1);

    } else {
        us_cluster_shards(map);
    }

    us_map_free(map);

    return code;
}


/* all nodes have an address */

static void
us_cluster_upstreams(const us_map_t *map, const us_nodes_t *nodes)
{
    us_str_t  address, name;
    uint32_t  i, n;

    printf("# urlstore cluster conf, cluster ");
    us_cluster_hex(map->cluster);
    printf(", version %" PRIu64 "\n", map->version);

    for (i = 0; i < map->nshards; i++) {
        for (n = 0; n < map->shards[i].nnodes; n++) {
            name = map->shards[i].nodes[n];
            address = us_nodes_address(nodes, name);

            printf("\nupstream %.*s {\n    server %.*s;\n"
                   "    keepalive 32;\n}\n", (int) name.len, name.data,
                   (int) address.len, address.data);
        }
    }
}


static int
us_cluster_conf(us_cluster_t *c)
{
    int         code;
    us_map_t   *map;
    us_nodes_t  nodes;

    if (c->nodes == NULL) {
        fprintf(stderr, "urlstore: conf needs --nodes, the addresses of the "
                "nodes\n");
        return us_cli_usage(&us_cli_cluster);
    }

    map = us_cluster_load(c->args[0], &code);

    if (map == NULL) {
        return code;
    }

    code = us_nodes_read(&nodes, c->nodes);

    if (code == US_CLI_DONE) {
        code = us_nodes_check(&nodes, map);
    }

    if (code == US_CLI_DONE) {
        us_cluster_upstreams(map, &nodes);
    }

    us_nodes_free(&nodes);
    us_map_free(map);

    return code;
}


/* the shards of arguments; NULL after a message */

static us_shard_t *
us_cluster_parse(int n, char **args)
{
    int          i;
    char         err[US_CLUSTER_ERROR];
    us_shard_t  *shards;

    shards = calloc((size_t) n, sizeof(us_shard_t));

    if (shards == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return NULL;
    }

    for (i = 0; i < n; i++) {
        if (us_shard_parse(&shards[i], us_str_of(args[i]), err, sizeof(err))
            == -1)
        {
            fprintf(stderr, "urlstore: %s\n", err);
            free(shards);
            return NULL;
        }
    }

    return shards;
}


/* prints the map and frees it; NULL: prints why there is none */

static int
us_cluster_print(us_map_t *map, const char *err)
{
    if (map == NULL) {
        fprintf(stderr, "urlstore: %s\n", err);
        return US_CLI_REFUSED;
    }

    printf("%.*s", (int) map->text.len, map->text.data);
    us_map_free(map);

    return US_CLI_DONE;
}


static int
us_cluster_new(us_cluster_t *c)
{
    int          code;
    char         err[US_CLUSTER_ERROR];
    uint8_t      cluster[16];
    us_str_t     norm;
    us_map_t    *map;
    us_norm_t   *own;
    us_shard_t  *shards;

    if (getrandom(cluster, sizeof(cluster), 0) != sizeof(cluster)) {
        fprintf(stderr, "urlstore: getrandom: %s\n", strerror(errno));
        return US_CLI_USAGE;
    }

    shards = us_cluster_parse(c->n, c->args);

    if (shards == NULL) {
        return US_CLI_USAGE;
    }

    own = us_cli_norm((us_str_t) { 0, NULL });

    if (own == NULL) {
        free(shards);
        return us_cli_failed("norm", "out of memory");
    }

    norm = us_norm_signature(own);

    if (c->norm) {
        norm = us_str_of(c->norm);
    }

    code = c->sample ? us_sample(c->sample, norm, c->key, c->weight)
                     : US_CLI_DONE;

    if (code == US_CLI_DONE) {
        map = us_map_first(cluster, norm, c->key, shards, (uint32_t) c->n,
                           c->sample ? c->weight : NULL, err, sizeof(err));
        code = us_cluster_print(map, err);
    }

    us_norm_destroy(own);
    free(shards);

    return code;
}


static int
us_cluster_grow(us_cluster_t *c)
{
    int          code;
    char         err[US_CLUSTER_ERROR];
    us_map_t    *map, *next;
    us_shard_t  *shards;

    map = us_cluster_load(c->args[0], &code);

    if (map == NULL) {
        return code;
    }

    shards = us_cluster_parse(c->n - 1, c->args + 1);

    if (shards == NULL) {
        us_map_free(map);
        return US_CLI_USAGE;
    }

    if (c->sample) {
        code = us_sample(c->sample, map->norm, map->key, c->weight);
    }

    if (code == US_CLI_DONE) {
        next = us_map_grow(map, shards, (uint32_t) c->n - 1,
                           c->sample ? c->weight : NULL, err, sizeof(err));
        code = us_cluster_print(next, err);
    }

    us_map_free(map);
    free(shards);

    return code;
}


static int
us_cluster_apply(us_cluster_t *c)
{
    int         code;
    us_map_t   *map;
    us_nodes_t  nodes;

    if (c->nodes == NULL && c->n == 1) {
        fprintf(stderr, "urlstore: apply needs --nodes or URLs\n");
        return us_cli_usage(&us_cli_cluster);
    }

    map = us_cluster_load(c->args[0], &code);

    if (map == NULL) {
        return code;
    }

    code = us_nodes_read(&nodes, c->nodes);

    if (code == US_CLI_DONE) {
        c->apply.map = map;
        c->apply.timeout = c->apply.timeout ? c->apply.timeout
                                            : US_CLUSTER_WAIT;
        code = us_apply(&c->apply, c->nodes ? &nodes : NULL, c->n - 1,
                        c->args + 1);
    }

    us_nodes_free(&nodes);
    us_map_free(map);

    return code;
}


static int
us_cluster_promote(us_cluster_t *c)
{
    return us_command("promote", c->args[0], c->shard,
                      c->apply.timeout ? c->apply.timeout : US_CLUSTER_WAIT,
                      US_CLUSTER_ANSWER);
}


static int
us_cluster_forget(us_cluster_t *c)
{
    return us_command("forget", c->args[0], c->shard,
                      c->apply.timeout ? c->apply.timeout : US_CLUSTER_WAIT,
                      US_CLUSTER_ANSWER);
}


static int
us_cluster_rebase(us_cluster_t *c)
{
    double  timeout;

    timeout = c->apply.timeout ? c->apply.timeout : US_CLUSTER_REBASE;

    return us_command("rebase", c->args[0], c->shard, timeout, timeout);
}
