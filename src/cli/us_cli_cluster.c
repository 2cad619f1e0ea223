
/*
 * urlstore cluster ACTION MAP ...: maps of a cluster are made, checked, shown,
 * turned into nginx configuration, and applied; a standby is promoted, and a
 * log gets a new base.
 *
 *     MAP --> us_map_read --> check, show, conf, new, grow --> standard output
 *                        `--> us_apply: POST to each node, to each router
 *
 * A row of us_cluster_actions[] for each action.
 *
 *
 * A map has no addresses: a node that moves needs no new version.  They are in
 * a file of lines of a name and an address:
 *
 *     # the name of the upstream, and where it is
 *     us_0a 10.0.0.1:8080
 *     us_0b 10.0.0.2:8080
 *
 *
 * A map goes to all nodes and routers of a cluster; the command to become the
 * primary goes to one node.
 *
 *     target --GET--> its map, which the new one must be able to follow
 *            --POST check--> whether it is this node, with the uuid of the map
 *            --POST--> 204: adopted and durable
 *
 * Nothing is posted as long as one of them refuses.  A map is for ever: a wrong
 * uuid in it cannot be mended, so each shard that no map had before is checked,
 * and gets the map first.
 *
 * Targets are posted to one after another, and those that did not answer once
 * more, until all have the map.  Any order is safe, and so is a kill between
 * any two: a shard denies nothing of a slot under a map that another owner of
 * the slot has not adopted (docs/cluster.md).
 */


#include "us_cli.h"
#include "us_client.h"
#include "us_files.h"
#include "../cluster/us_map.h"
#include "../us_clock.h"
#include "../us_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>


#define US_CLUSTER_ERROR   512
#define US_CLUSTER_WAIT    60         /* seconds, unless --timeout */
#define US_CLUSTER_REBASE  3600       /* the same of rebase, which is answered
                                         when it is done */
#define US_CLUSTER_ANSWER  20         /* a promotion is after 10 */

#define US_NODES_MAX  (4 * 1024 * 1024)   /* bytes of the file */
#define US_NODES_GAP  " \t\r"

#define US_APPLY_WAIT   10                /* seconds without a byte */
#define US_APPLY_PAUSE  200               /* milliseconds between rounds */
#define US_APPLY_URL    1536              /* bytes of a target's URL */


/* of a map that is to be applied */

typedef struct {
    const us_shard_t  *shard;         /* NULL: of the URLs */
    unsigned           known:1;       /* a map that is there has it */
    unsigned           checked:1;     /* a node of it has agreed */
    unsigned           adopted:1;     /* a node of it has the map */
} us_apply_shard_t;


typedef enum {
    US_APPLY_PENDING = 0,
    US_APPLY_DONE,
    US_APPLY_STANDBY,
    US_APPLY_REFUSED
} us_apply_state_t;


/* a node of the map, or a URL */

typedef struct {
    us_apply_shard_t  *of;
    us_str_t           node;
    const char        *address;       /* by --nodes, or NULL */
    char               url[US_APPLY_URL];
    char               post[32];      /* the query of a node's shard, or "" */
    char               has[80];       /* the map that is there, or "" */
    char               why[US_CLIENT_ERROR + 128];
    us_client_t        client;
    us_apply_state_t   state;
    int                checked;       /* it has agreed */
} us_target_t;


typedef struct {
    const char       *nodes;          /* a file, or NULL */
    const char       *norm;
    const char       *sample;         /* a file, or NULL */
    us_key_t          key;
    const char       *path;           /* at nodes */
    double            timeout;        /* seconds */
    int               force;          /* a new shard may be down */
    int               shard;          /* of promote; -1: all */

    us_map_t         *map;            /* of an action that has one */
    const char       *action;         /* its name */
    int               n;              /* arguments after it, and after MAP */
    char            **args;

    us_target_t      *targets;        /* the nodes of the map, then URLs */
    size_t            ntargets;
    size_t            refused;        /* how many of them */
    us_apply_shard_t  shards[US_SHARDS + 1];

    us_norm_t        *rules;
    us_norm_ws_t     *ws;
    uint32_t          weight[US_SLOTS];  /* of the sample */
} us_cluster_t;


/*
 * The nodes of the map, and their addresses by the lines of a file: a name, an
 * address and nothing else, or nothing; "#" begins a comment.  Each has one.
 * Then the arguments, which are URLs.  0, or US_CLI_USAGE after messages.
 */

static int
us_cluster_targets(us_cluster_t *c)
{
    int                n, code;
    char              *line, *end, *name, *address, *rest;
    uint32_t           i, k;
    us_str_t           text;
    us_target_t       *t, *first;
    const us_shard_t  *shard;

    c->ntargets = (size_t) c->n;

    for (i = 0; c->nodes && i < c->map->nshards; i++) {
        c->ntargets += c->map->shards[i].nnodes;
    }

    first = calloc(c->ntargets, sizeof(us_target_t));

    if (first == NULL) {
        return us_cli_fail("out of memory");
    }

    c->targets = first;
    t = first;

    for (i = 0; c->nodes && i < c->map->nshards; i++) {
        shard = &c->map->shards[i];
        c->shards[i].shard = shard;

        for (k = 0; k < shard->nnodes; k++, t++) {
            t->of = &c->shards[i];
            t->node = shard->nodes[k];
            (void) snprintf(t->post, sizeof(t->post), "?shard=%u",
                            shard->number);
        }
    }

    for (n = 0; n < c->n; n++) {
        first[c->ntargets - c->n + n].of = &c->shards[US_SHARDS];
        (void) snprintf(first[c->ntargets - c->n + n].url, US_APPLY_URL, "%s",
                        c->args[n]);
    }

    c->shards[US_SHARDS].known = 1;

    if (c->nodes == NULL) {
        return US_CLI_DONE;
    }

    if (us_cli_slurp(c->nodes, US_NODES_MAX, &text) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    code = US_CLI_DONE;

    for (n = 1, line = (char *) text.data; *line; line = end, n++) {
        end = line + strcspn(line, "\n");

        if (*end) {
            *end++ = '\0';
        }

        line[strcspn(line, "#")] = '\0';
        name = strtok_r(line, US_NODES_GAP, &rest);

        if (name == NULL) {
            continue;
        }

        address = strtok_r(NULL, US_NODES_GAP, &rest);

        /* it becomes a part of nginx.conf */

        if (address == NULL || strtok_r(NULL, US_NODES_GAP, &rest)
            || address[strcspn(address, "'\"\\;{}$/")])
        {
            return us_cli_fail("\"%s\": line %d is not NODE HOST:PORT",
                               c->nodes, n);
        }

        for (t = first; t < first + c->ntargets - c->n; t++) {

            if (us_str_compare(t->node, us_str_of(name)) != 0) {
                continue;
            }

            if (t->address) {
                code = us_cli_fail("more than one address of node \"%s\"",
                                   name);
            }

            t->address = address;
            (void) snprintf(t->url, sizeof(t->url), "http://%s%s%s", address,
                            *c->path == '/' ? "" : "/", c->path);
        }
    }

    for (t = first; t < first + c->ntargets - c->n; t++) {
        if (t->address == NULL) {
            code = us_cli_fail("no address of node \"%.*s\"",
                               (int) t->node.len, t->node.data);
        }
    }

    return code;
}


/* a try, which waits no longer than up to the end, but a second at least */

static int
us_apply_once(us_target_t *t, const char *method, const char *endpoint,
    us_str_t body, uint64_t end)
{
    uint64_t  now, left;

    now = us_clock_running();
    left = end > now ? (end - now) / 1000 : 0;

    t->client.timeout = left >= US_APPLY_WAIT ? US_APPLY_WAIT
                        : left > 1 ? (long) left : 1;

    return us_client_once(&t->client, method, endpoint, "application/json",
                          body);
}


/* adds to the reason, up to its room */

static void
us_apply_refuse(us_cluster_t *c, us_target_t *t, const char *why)
{
    size_t  len;

    len = strlen(t->why);
    (void) snprintf(t->why + len, sizeof(t->why) - len, "%s", why);
    t->state = US_APPLY_REFUSED;
    c->refused++;
}


static void
us_apply_post(us_cluster_t *c, us_target_t *t, int check, uint64_t end)
{
    int   status;
    char  query[64];

    static const char  standby[] = "\"reason\":\"standby\"";

    (void) snprintf(query, sizeof(query), check ? "%s%ccheck=1" : "%s",
                    t->post, t->post[0] ? '&' : '?');

    status = us_apply_once(t, "POST", query, c->map->text, end);

    if (status == 204) {
        t->checked = 1;
        t->of->checked = 1;
        t->of->adopted |= !check;
        t->state = check ? US_APPLY_PENDING : US_APPLY_DONE;
        return;
    }

    (void) snprintf(t->why, sizeof(t->why), "%s", t->client.error);

    if (status > 0 && status < 400) {
        (void) snprintf(t->why, sizeof(t->why), "%d is no answer of "
                        "urlstore_cluster_admin", status);
    }

    /*
     * A standby says so if it is asked for its shard alone: a URL may be of
     * several.  Pending: it starts, or is down, or the answer was lost.
     */

    if (status > 0 && status < 500) {
        us_apply_refuse(c, t, status < 400 ? "" : t->has);

    } else {
        t->state = status == 503 && t->post[0]
                   && memmem(t->client.reply, t->client.len, standby,
                             sizeof(standby) - 1)
                   ? US_APPLY_STANDBY : US_APPLY_PENDING;
    }
}


static void
us_apply_pause(void)
{
    struct timespec  pause = { 0, US_APPLY_PAUSE * 1000000L };

    (void) nanosleep(&pause, NULL);
}


/* whether a target is of a shard that is new, and that nobody has checked */

static int
us_apply_new(const us_target_t *t)
{
    return !t->of->known && !t->of->checked;
}


/*
 * Asks whether the map may be posted: all that can be asked have to agree, and
 * so has a node of each new shard.  A mistake is found before the first shard
 * has adopted it; a shard decides for itself when it is posted to.
 */

static void
us_apply_check(us_cluster_t *c, uint64_t end)
{
    size_t        i, left;
    us_map_t     *old;
    us_target_t  *t, *last;

    last = c->targets + c->ntargets;

    /* the maps of the targets, and which shards they have */

    for (t = c->targets; t < last; t++) {

        if (us_apply_once(t, "GET", "", US_CLIENT_NO_BODY, end) != 200) {
            continue;
        }

        old = us_map_read((us_str_t) { t->client.len, t->client.reply },
                          t->why, sizeof(t->why));

        if (old == NULL) {
            continue;
        }

        i = snprintf(t->has, sizeof(t->has), "; there is version %" PRIu64
                     ", digest ", old->version);
        *us_put_hex((uint8_t *) t->has + i, old->digest, 16) = '\0';

        if (us_map_follows(old, c->map, t->why, sizeof(t->why)) == -1) {
            us_apply_refuse(c, t, t->has);
        }

        for (i = 0; c->shards[i].shard; i++) {
            c->shards[i].known |= us_map_shard(old, c->shards[i].shard->number)
                                  != -1;
        }

        us_map_free(old);
    }

    for ( ;; ) {
        for (t = c->targets; t < last; t++) {
            if (t->state == US_APPLY_PENDING && !t->checked) {
                us_apply_post(c, t, 1, end);
            }
        }

        for (t = c->targets, left = 0; t < last; t++) {
            left += us_apply_new(t);
        }

        if (left == 0 || c->force || c->refused || us_clock_running() >= end) {
            break;
        }

        us_apply_pause();
    }

    for (t = c->targets; left && !c->force && t < last; t++) {
        if (t->state == US_APPLY_PENDING && us_apply_new(t)) {
            us_apply_refuse(c, t, "; its shard is new, and the uuid in the "
                            "map was not checked by any node of it (--force)");
        }
    }
}


/*
 * Whether a target is to be posted to.  A standby has the map by the log, as
 * soon as another node of its shard has adopted it.
 */

static int
us_apply_lacks(const us_target_t *t)
{
    return t->state == US_APPLY_PENDING
           || (t->state == US_APPLY_STANDBY && !t->of->adopted);
}


static us_cluster_t  us_cluster = { .path = "/cluster", .shard = -1 };


typedef struct {
    const char   *name;
    int           map;                /* the first argument is MAP */
    int           least;              /* arguments, MAP included */
    int           most;
    int         (*run)(us_cluster_t *c);
} us_cluster_action_t;


static int
us_cluster_key(const us_cli_option_t *o, void *value, const char *arg)
{
    if (strcmp(arg, "url") != 0 && strcmp(arg, "site") != 0) {
        return us_cli_fail("--key \"%.40s\" is neither \"url\" nor \"site\"",
                           arg);
    }

    *(us_key_t *) value = *arg == 's' ? US_KEY_SITE : US_KEY_URL;

    return 0;
}


static int
us_cluster_number(const us_cli_option_t *o, void *value, const char *arg)
{
    size_t    i;
    uint64_t  shard;

    i = 0;

    if (us_read_u64(us_str_of(arg), &i, US_SHARDS - 1, &shard) == -1
        || arg[i] != '\0')
    {
        return us_cli_fail("--shard \"%.40s\" is not the number of a shard",
                           arg);
    }

    *(int *) value = (int) shard;

    return 0;
}


static int
us_cluster_seconds(const us_cli_option_t *o, void *value, const char *arg)
{
    char  *end;

    *(double *) value = us_cli_count(arg, &end);

    if (*(double *) value == 0 || *end) {
        return us_cli_fail("--timeout \"%.40s\" is not a number of seconds "
                           "from 1", arg);
    }

    return 0;
}


static const us_cli_option_t  us_cluster_list[] = {
    { US_CLI_LONG, "nodes", "FILE", "Of conf and apply: lines NODE "
      "HOST:PORT, the addresses of the nodes.",
      us_cli_text, offsetof(us_cluster_t, nodes) },
    { US_CLI_LONG + 1, "force", NULL, "Of apply: post the map although no "
      "node of a new shard could be asked for its uuid. A wrong uuid in a map "
      "cannot be mended.",
      NULL, offsetof(us_cluster_t, force) },
    { US_CLI_LONG + 2, "key", "KEY", "Of new: \"url\" (the default) or "
      "\"site\", what decides the slot of a URL. It can never be changed.",
      us_cluster_key, offsetof(us_cluster_t, key) },
    { US_CLI_LONG + 3, "norm", "TEXT", "Of new: \"normalization\" of GET "
      "/stats of the shards. The default is that of zones with the defaults.",
      us_cli_text, offsetof(us_cluster_t, norm) },
    { US_CLI_LONG + 4, "path", "PATH", "Of apply: the path of "
      "urlstore_cluster_admin at the nodes; /cluster is the default.",
      us_cli_text, offsetof(us_cluster_t, path) },
    { US_CLI_LONG + 5, "sample", "FILE", "Of new and grow: different URLs, "
      "one a line. The shards get as many of them, not as many slots: by "
      "\"site\", large sites are divided.",
      us_cli_text, offsetof(us_cluster_t, sample) },
    { US_CLI_LONG + 6, "shard", "NUMBER", "Of promote, forget and rebase: "
      "this shard only.",
      us_cluster_number, offsetof(us_cluster_t, shard) },
    { US_CLI_LONG + 7, "timeout", "SECONDS", "Of apply, promote, forget and "
      "rebase: how long to try; 60 is the default, of rebase 3600.",
      us_cluster_seconds, offsetof(us_cluster_t, timeout) },
    { .name = NULL }
};


static int
us_cluster_rules(us_cluster_t *c, us_str_t norm)
{
    c->rules = us_norm_of(norm);
    c->ws = c->rules ? us_norm_ws_create(c->rules) : NULL;

    return c->ws ? US_CLI_DONE
           : us_cli_fail("no normalization \"%.*s\"", (int) norm.len,
                         norm.data);
}


static int
us_sample_lines(void *data, us_str_t *lines, size_t n)
{
    us_cluster_t *c = data;

    size_t      i;
    us_canon_t  canon;
    uint32_t   *weight;

    for (i = 0; i < n; i++) {
        if (us_normalize(c->rules, c->ws, lines[i], NULL, &canon)
            == US_URL_OK)
        {
            weight = &c->weight[us_slot_of(c->key, canon.url.href)];
            *weight += *weight < UINT32_MAX;
        }
    }

    return US_CLI_DONE;
}


/*
 * Counts the URLs of a file, or of standard input for "-", by slot, after
 * normalization by `norm`; refused URLs are left out, and each slot has one
 * more.  0, or US_CLI_USAGE after a message.
 */

static int
us_sample(us_cluster_t *c, us_str_t norm)
{
    unsigned    slot;
    us_files_t  files;

    for (slot = 0; slot < US_SLOTS; slot++) {
        c->weight[slot] = 1;
    }

    if (us_cluster_rules(c, norm) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    memset(&files, 0, sizeof(us_files_t));
    files.take = us_sample_lines;
    files.data = c;
    files.cut = 1;

    return us_files_all(&files, 1, (char **) &c->sample);
}


/* a map; NULL with an exit code after a message */

static us_map_t *
us_cluster_load(const char *from, int *code)
{
    int           status;
    char          err[US_CLUSTER_ERROR];
    us_map_t     *map;
    us_str_t      text;
    us_client_t   c;

    *code = US_CLI_USAGE;

    if (!us_client_is(from)) {
        if (us_cli_slurp(from, US_MAP_TEXT_MAX, &text) != US_CLI_DONE) {
            return NULL;
        }

    } else if (us_client_init(&c, from) != US_CLI_DONE) {
        return NULL;

    } else {
        status = us_client_once(&c, "GET", c.path[0] ? "" : "/cluster",
                                "application/json", US_CLIENT_NO_BODY);

        if (status != 200) {
            (void) us_cli_fail("%s", status <= 0 || status >= 400
                                     ? c.error : "no map was answered");
            return NULL;
        }

        text = (us_str_t) { c.len, c.reply };
    }

    map = us_map_read(text, err, sizeof(err));
    free((void *) text.data);

    if (map == NULL) {
        (void) us_cli_failed(from, err);
    }

    *code = map ? US_CLI_DONE : US_CLI_REFUSED;

    return map;
}


static int
us_cluster_check(us_cluster_t *c)
{
    int        code;
    char       err[US_CLUSTER_ERROR];
    us_map_t  *old;

    code = US_CLI_DONE;

    if (c->n) {
        old = us_cluster_load(c->args[0], &code);

        if (old && us_map_follows(old, c->map, err, sizeof(err)) == -1) {
            (void) us_cli_failed(c->args[-1], err);
            code = US_CLI_REFUSED;
        }
    }

    if (code == US_CLI_DONE) {
        printf("version %" PRIu64 ", %u shards, digest ", c->map->version,
               c->map->nshards);
        us_cli_hex(c->map->digest);
        printf("\n");
    }

    return code;
}


static int
us_cluster_show(us_cluster_t *c)
{
    int                 k, code;
    unsigned            slot, questions;
    uint32_t            i, n, owned[US_SHARDS], asked[US_SHARDS];
    us_canon_t          canon;
    us_verdict_t        rc;
    const us_map_t     *map;
    const us_owners_t  *o;

    map = c->map;

    if (c->n) {
        code = us_cluster_rules(c, map->norm);

        for (k = 0; k < c->n && code != US_CLI_USAGE; k++) {
            rc = us_normalize(c->rules, c->ws, us_str_of(c->args[k]), NULL,
                              &canon);

            if (rc != US_URL_OK) {
                printf("!%s\n", us_verdict_name(rc));
                code = US_CLI_REFUSED;
                continue;
            }

            slot = us_slot_of(map->key, canon.url.href);
            o = &map->slots[slot];
            printf("%u\t%u\t%s", slot, map->shards[o->shards[0]].number,
                   o->n > 1 ? "" : "-");

            for (n = 1; n < o->n; n++) {
                printf("%s%u", n > 1 ? "," : "",
                       map->shards[o->shards[n]].number);
            }

            printf("\t%.*s\n", (int) canon.url.href.len,
                   canon.url.href.data);
        }

        return code;
    }

    memset(owned, 0, sizeof(owned));
    memset(asked, 0, sizeof(asked));
    questions = 0;

    for (slot = 0; slot < US_SLOTS; slot++) {
        o = &map->slots[slot];
        owned[o->shards[0]]++;
        questions += o->n - 1;

        for (n = 1; n < o->n; n++) {
            asked[o->shards[n]]++;
        }
    }

    printf("cluster    ");
    us_cli_hex(map->cluster);
    printf("\nversion    %" PRIu64 "\ndigest     ", map->version);
    us_cli_hex(map->digest);
    printf("\nnorm       %.*s\nkey        %s\nquestions  %.3f a new URL\n\n"
           "shard  slots     share  asked  uuid                              "
           "nodes\n", (int) map->norm.len, map->norm.data,
           map->key == US_KEY_URL ? "url" : "site",
           (double) questions / US_SLOTS);

    for (i = 0; i < map->nshards; i++) {
        printf("%-5u  %-5u  %6.2f %%  %-5u  ", map->shards[i].number, owned[i],
               owned[i] * 100.0 / US_SLOTS, asked[i]);
        us_cli_hex(map->shards[i].uuid);
        printf(" ");

        for (n = 0; n < map->shards[i].nnodes; n++) {
            printf(" %.*s", (int) map->shards[i].nodes[n].len,
                   map->shards[i].nodes[n].data);
        }

        printf("\n");
    }

    return US_CLI_DONE;
}


static int
us_cluster_conf(us_cluster_t *c)
{
    us_target_t  *t;

    if (c->nodes == NULL) {
        (void) us_cli_fail("conf needs --nodes, the addresses of the nodes");
        return us_cli_usage(&us_cli_cluster);
    }

    if (us_cluster_targets(c) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    printf("# urlstore cluster conf, cluster ");
    us_cli_hex(c->map->cluster);
    printf(", version %" PRIu64 "\n", c->map->version);

    for (t = c->targets; t < c->targets + c->ntargets; t++) {
        printf("\nupstream %.*s {\n    server %s;\n    keepalive 32;\n}\n",
               (int) t->node.len, t->node.data, t->address);
    }

    return US_CLI_DONE;
}


/* the first map of a cluster, or what follows the map that there is */

static int
us_cluster_draw(us_cluster_t *c)
{
    int              i, code;
    char             err[US_CLUSTER_ERROR];
    uint8_t          cluster[16];
    us_str_t         norm;
    us_map_t        *map;
    us_norm_t       *own;
    us_shard_t      *shards;
    const uint32_t  *weight;

    shards = calloc((size_t) c->n, sizeof(us_shard_t));
    own = us_norm_create(US_PROFILE_CRAWLER);

    if (shards == NULL || own == NULL) {
        return us_cli_fail("out of memory");
    }

    if (getrandom(cluster, sizeof(cluster), 0) != sizeof(cluster)) {
        return us_cli_fail("getrandom: %s", strerror(errno));
    }

    for (i = 0; i < c->n; i++) {
        if (us_shard_parse(&shards[i], us_str_of(c->args[i]), err,
                           sizeof(err))
            == -1)
        {
            return us_cli_fail("%s", err);
        }
    }

    norm = c->map ? c->map->norm
           : c->norm ? us_str_of(c->norm) : us_norm_signature(own);
    c->key = c->map ? c->map->key : c->key;
    weight = c->sample ? c->weight : NULL;
    code = c->sample ? us_sample(c, norm) : US_CLI_DONE;

    if (code != US_CLI_DONE) {
        return code;
    }

    map = c->map ? us_map_grow(c->map, shards, (uint32_t) c->n, weight, err,
                               sizeof(err))
                 : us_map_first(cluster, norm, c->key, shards, (uint32_t) c->n,
                                weight, err, sizeof(err));

    if (map == NULL) {
        (void) us_cli_fail("%s", err);
        return US_CLI_REFUSED;
    }

    printf("%.*s", (int) map->text.len, map->text.data);

    return US_CLI_DONE;
}


/*
 * To all nodes of the map, if there are --nodes, then to the URLs.  Prints a
 * line for each target.  US_CLI_DONE: all have the map; US_CLI_REFUSED: a
 * target has refused it; US_CLI_USAGE: a target has not answered in time, or a
 * URL is none.
 */

static int
us_cluster_apply(us_cluster_t *c)
{
    int           known, pending;
    size_t        left;
    uint64_t      end;
    us_target_t  *t, *last;

    static const char *const  words[] = {
        [US_APPLY_PENDING] = "pending",
        [US_APPLY_DONE] = "adopted",
        [US_APPLY_STANDBY] = "standby",
        [US_APPLY_REFUSED] = "refused"
    };

    if (c->nodes == NULL && c->n == 0) {
        (void) us_cli_fail("apply needs --nodes or URLs");
        return us_cli_usage(&us_cli_cluster);
    }

    if (us_cluster_targets(c) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    last = c->targets + c->ntargets;

    for (t = c->targets; t < last; t++) {
        if (us_client_init(&t->client, t->url) != US_CLI_DONE) {
            return US_CLI_USAGE;
        }
    }

    end = us_clock_running()
          + (uint64_t) ((c->timeout ? c->timeout : US_CLUSTER_WAIT) * 1000);

    us_apply_check(c, end);

    for (t = c->targets; c->refused && t < last; t++) {
        if (t->state == US_APPLY_PENDING) {
            (void) snprintf(t->why, sizeof(t->why), "nothing was posted%s",
                            t->has);
        }
    }

    left = c->refused ? 0 : c->ntargets;

    while (left) {

        for (known = 0, left = 0; known < 2; known++) {
            for (t = c->targets; t < last; t++) {
                if (t->of->known == known && us_apply_lacks(t)) {
                    us_apply_post(c, t, 0, end);
                    left += us_apply_lacks(t);
                }
            }

            /* what was checked is refused: the others need not have it */

            if (known == 0 && c->refused) {
                left = 0;
                break;
            }
        }

        if (left && us_clock_running() >= end) {
            break;
        }

        if (left) {
            us_apply_pause();
        }
    }

    for (t = c->targets, pending = 0; t < last; t++) {
        pending |= us_apply_lacks(t);

        if (t->of->shard) {
            printf("%u\t%.*s", t->of->shard->number, (int) t->node.len,
                   t->node.data);

        } else {
            printf("-\t-");
        }

        printf("\t%s\t%s%s%s\n", t->url, words[t->state],
               t->state == US_APPLY_DONE ? "" : "\t",
               t->state == US_APPLY_DONE ? "" : t->why);
    }

    return c->refused ? US_CLI_REFUSED : pending ? US_CLI_USAGE : US_CLI_DONE;
}


/*
 * "promote", "forget" or "rebase", to the replicated zones of the nginx at URL,
 * that of one shard if it is not -1.  Prints the reply: a line for each zone.
 * US_CLI_USAGE: not in time, or the URL is none.
 */

static int
us_cluster_order(us_cluster_t *o)
{
    int          status, lost, rebase;
    char         number[16], endpoint[64];
    double       timeout;
    uint64_t     end;
    us_client_t  c;

    if (us_client_init(&c, o->args[0]) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    (void) snprintf(number, sizeof(number), "=%d", o->shard);
    (void) snprintf(endpoint, sizeof(endpoint), "%s?%s%s",
                    c.path[0] ? "" : "/cluster", o->action,
                    o->shard == -1 ? "" : number);

    /* a rebase is answered when it is done */

    rebase = strcmp(o->action, "rebase") == 0;
    timeout = o->timeout ? o->timeout
              : rebase ? US_CLUSTER_REBASE : US_CLUSTER_WAIT;

    c.timeout = (long) (rebase ? timeout : US_CLUSTER_ANSWER);
    end = us_clock_running() + (uint64_t) (timeout * 1000);
    lost = 0;

    /* a node that still reads the log; one that starts; a lost answer */

    while (((status = us_client_once(&c, "POST", endpoint, "text/plain",
                                     US_CLIENT_NO_BODY))
            <= 0 || status >= 500)
           && us_clock_running() < end)
    {
        lost |= status == 0;
        us_apply_pause();
    }

    if (status == 200) {
        printf("%.*s", (int) c.len, c.reply);

    } else {
        fprintf(stderr, "urlstore: %s%s%s%s\n", status <= 0 || status >= 400
                ? c.error : "the answer is of no node",
                lost && status >= 400 ? "; the answer to an earlier try was "
                "lost: the " : "", lost && status >= 400 ? o->action : "",
                lost && status >= 400 ? " was interrupted, or is done" : "");
    }

    return status == 200 ? US_CLI_DONE
           : status >= 400 && status < 500 ? US_CLI_REFUSED : US_CLI_USAGE;
}


static const us_cluster_action_t  us_cluster_actions[] = {
    { "check", 1, 1, 2, us_cluster_check },
    { "show", 1, 1, 1 << 30, us_cluster_show },
    { "conf", 1, 1, 1, us_cluster_conf },
    { "new", 0, 1, US_SHARDS, us_cluster_draw },
    { "grow", 1, 2, US_SHARDS, us_cluster_draw },
    { "apply", 1, 1, 1 << 30, us_cluster_apply },
    { "promote", 0, 1, 1, us_cluster_order },
    { "forget", 0, 1, 1, us_cluster_order },
    { "rebase", 0, 1, 1, us_cluster_order },
    { NULL, 0, 0, 0, NULL }
};


static int
us_cluster_command(const us_cli_command_t *own, int n, char **args)
{
    us_cluster_t *c = own->own;

    int                         code;
    const us_cluster_action_t  *a;

    c->n = n - 1;
    c->args = args + 1;

    for (a = us_cluster_actions; a->name; a++) {
        if (strcmp(a->name, args[0]) == 0) {
            break;
        }
    }

    if (a->name == NULL) {
        (void) us_cli_fail("no action \"%.40s\"", args[0]);
    }

    if (a->name == NULL || c->n < a->least || c->n > a->most) {
        return us_cli_usage(own);
    }

    c->action = a->name;

    if (a->map) {
        c->map = us_cluster_load(*c->args++, &code);
        c->n--;

        if (c->map == NULL) {
            return code;
        }
    }

    return a->run(c);
}


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
    .own = &us_cluster,
    .exits =
        " 0   all was done; apply: every node and router has the map\n"
        " 1   it is no map, or may not follow; apply, promote, forget and "
        "rebase: it was refused\n"
        " 2   wrong usage, something could not be read or written; apply,\n"
        "     promote and rebase: not all nodes have done it in time"
};
