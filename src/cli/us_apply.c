
/*
 * See us_apply.h.
 */


#include "us_apply.h"
#include "us_cli.h"
#include "us_client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


#define US_APPLY_WAIT   10                /* seconds without a byte */
#define US_APPLY_PAUSE  200               /* milliseconds between rounds */
#define US_APPLY_URL    1536              /* bytes of a target's URL */


typedef enum {
    US_APPLY_PENDING = 0,
    US_APPLY_DONE,
    US_APPLY_STANDBY,
    US_APPLY_REFUSED
} us_apply_state_t;


typedef struct {
    char              *url;
    us_client_t        client;
    us_apply_state_t   state;
    const us_shard_t  *shard;         /* of a node, or NULL */
    us_str_t           node;
    int                known;         /* a map that is there has its shard */
    int                checked;       /* it has agreed */
    char               has[80];       /* the map that is there, or "" */
    char               post[32];      /* the query of a node's shard, or "" */
    char               why[US_CLIENT_ERROR + 128];
} us_target_t;


static int
us_apply_target(us_target_t *t, const char *url)
{
    t->url = strdup(url);

    if (t->url == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return US_CLI_USAGE;
    }

    if (us_client_init(&t->client, url) == -1) {
        fprintf(stderr, "urlstore: %s\n", t->client.error);
        return US_CLI_USAGE;
    }

    return US_CLI_DONE;
}


static int
us_apply_node(us_target_t *t, const us_apply_t *a, const us_nodes_t *nodes,
    const us_shard_t *shard, uint32_t node)
{
    char      url[US_APPLY_URL];
    us_str_t  address;

    t->shard = shard;
    t->node = shard->nodes[node];
    address = us_nodes_address(nodes, t->node);
    (void) snprintf(t->post, sizeof(t->post), "?shard=%u", shard->number);

    if (address.data == NULL) {
        return US_CLI_USAGE;
    }

    (void) snprintf(url, sizeof(url), "http://%.*s%s%s", (int) address.len,
                    address.data, *a->path == '/' ? "" : "/", a->path);

    return us_apply_target(t, url);
}


static void
us_apply_free(us_target_t *t, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        us_client_free(&t[i].client);
        free(t[i].url);
    }

    free(t);
}


/* NULL after a message */

static us_target_t *
us_apply_targets(const us_apply_t *a, const us_nodes_t *nodes, int n,
    char **urls, size_t *ntargets)
{
    int           i, rc;
    size_t        count;
    uint32_t      s, k;
    us_target_t  *t;

    for (s = 0, count = (size_t) n; nodes && s < a->map->nshards; s++) {
        count += a->map->shards[s].nnodes;
    }

    t = calloc(count, sizeof(us_target_t));

    if (t == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return NULL;
    }

    *ntargets = count;
    rc = US_CLI_DONE;
    count = 0;

    for (s = 0; nodes && s < a->map->nshards; s++) {
        for (k = 0; rc == US_CLI_DONE && k < a->map->shards[s].nnodes; k++) {
            rc = us_apply_node(&t[count++], a, nodes,
                               &a->map->shards[s], k);
        }
    }

    for (i = 0; rc == US_CLI_DONE && i < n; i++) {
        t[count].known = 1;
        rc = us_apply_target(&t[count++], urls[i]);
    }

    if (rc != US_CLI_DONE) {
        us_apply_free(t, *ntargets);
        return NULL;
    }

    return t;
}


static double
us_apply_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + ts.tv_nsec / 1e9;
}


/* a try, which waits no longer than up to the end, but a second at least */

static int
us_apply_once(us_target_t *t, const us_client_request_t *r, double end)
{
    double  left;

    left = end - us_apply_now();

    t->client.timeout = left >= US_APPLY_WAIT ? US_APPLY_WAIT
                        : left > 1 ? (long) left : 1;

    return us_client_once(&t->client, r);
}


/* the map of a target, and which shards it has */

static void
us_apply_look(const us_apply_t *a, us_target_t *t, size_t n, size_t i,
    double end)
{
    size_t               k;
    us_map_t            *old;
    us_client_request_t  r = { "GET", "", "application/json", { 0, NULL } };

    if (us_apply_once(&t[i], &r, end) != 200) {
        return;
    }

    old = us_map_read((us_str_t) { t[i].client.len, t[i].client.reply },
                      t[i].why, sizeof(t[i].why));

    if (old == NULL) {
        return;
    }

    (void) snprintf(t[i].has, sizeof(t[i].has), "; there is version %" PRIu64
                    ", digest ", old->version);

    for (k = 0; k < 16; k++) {
        (void) snprintf(t[i].has + strlen(t[i].has), 3, "%02x",
                        old->digest[k]);
    }

    if (us_map_follows(old, a->map, t[i].why, sizeof(t[i].why)) == -1) {
        t[i].state = US_APPLY_REFUSED;
        (void) strncat(t[i].why, t[i].has,
                       sizeof(t[i].why) - strlen(t[i].why) - 1);
    }

    for (k = 0; k < n; k++) {
        t[k].known |= t[k].shard
                      && us_map_shard(old, t[k].shard->number) != -1;
    }

    us_map_free(old);
}


/* whether target i is of a shard that is new, and that nobody has checked */

static int
us_apply_new(const us_target_t *t, size_t n, size_t i)
{
    size_t  k;

    if (t[i].known) {
        return 0;
    }

    for (k = 0; k < n; k++) {
        if (t[k].checked && t[k].shard == t[i].shard) {
            return 0;
        }
    }

    return 1;
}


static int
us_apply_refused(const us_target_t *t, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (t[i].state == US_APPLY_REFUSED) {
            return 1;
        }
    }

    return 0;
}


/* of a node that is asked for its shard alone; a URL may be of several */

static int
us_apply_standby(const us_target_t *t, int status)
{
    static const char  reason[] = "\"reason\":\"standby\"";

    return status == 503 && t->post[0]
           && memmem(t->client.reply, t->client.len, reason,
                     sizeof(reason) - 1) != NULL;
}


static void
us_apply_post(const us_apply_t *a, us_target_t *t, int check, double end)
{
    int                  status;
    char                 query[64];
    us_client_request_t  r = { "POST", t->post, "application/json",
                               a->map->text };

    if (check) {
        (void) snprintf(query, sizeof(query), "%s%ccheck=1", t->post,
                        t->post[0] ? '&' : '?');
        r.endpoint = query;
    }

    status = us_apply_once(t, &r, end);

    if (status == 204) {
        t->checked = 1;
        t->state = check ? US_APPLY_PENDING : US_APPLY_DONE;
        return;
    }

    /* a shard that starts; one that is down; an answer that was lost */

    t->state = us_apply_standby(t, status) ? US_APPLY_STANDBY
               : status <= 0 || status >= 500 ? US_APPLY_PENDING
               : US_APPLY_REFUSED;

    if (status > 0 && status < 400) {
        (void) snprintf(t->why, sizeof(t->why), "%d is no answer of "
                        "urlstore_cluster_admin", status);

    } else {
        (void) snprintf(t->why, sizeof(t->why), "%s%s", t->client.error,
                        t->state == US_APPLY_REFUSED ? t->has : "");
    }
}


static void
us_apply_pause(void)
{
    struct timespec  pause = { 0, US_APPLY_PAUSE * 1000000L };

    (void) nanosleep(&pause, NULL);
}


/*
 * Whether the map may be posted: all that can be asked have agreed, and so has
 * a node of each new shard.  A mistake is found before the first shard has
 * adopted it; a shard decides for itself when it is posted to.
 */

static int
us_apply_checked(const us_apply_t *a, us_target_t *t, size_t n, double end)
{
    size_t  i, left;

    for (i = 0; i < n; i++) {
        us_apply_look(a, t, n, i, end);
    }

    for ( ;; ) {
        for (i = 0, left = 0; i < n; i++) {
            if (t[i].state == US_APPLY_PENDING && !t[i].checked) {
                us_apply_post(a, &t[i], 1, end);
            }
        }

        for (i = 0; i < n; i++) {
            left += us_apply_new(t, n, i);
        }

        if (left == 0 || a->force || us_apply_refused(t, n)
            || us_apply_now() >= end)
        {
            break;
        }

        us_apply_pause();
    }

    for (i = 0; left && !a->force && i < n; i++) {
        if (t[i].state == US_APPLY_PENDING && us_apply_new(t, n, i)) {
            t[i].state = US_APPLY_REFUSED;
            (void) strncat(t[i].why, "; its shard is new, and the uuid in the "
                           "map was not checked by any node of it (--force)",
                           sizeof(t[i].why) - strlen(t[i].why) - 1);
        }
    }

    if (!us_apply_refused(t, n)) {
        return 1;
    }

    for (i = 0; i < n; i++) {
        if (t[i].state == US_APPLY_PENDING) {
            (void) snprintf(t[i].why, sizeof(t[i].why), "nothing was posted%s",
                            t[i].has);
        }
    }

    return 0;
}


/*
 * Whether target i is to be posted to.  A standby has the map by the log, as
 * soon as another node of its shard has adopted it.
 */

static int
us_apply_lacks(const us_target_t *t, size_t n, size_t i)
{
    size_t  k;

    if (t[i].state != US_APPLY_STANDBY) {
        return t[i].state == US_APPLY_PENDING;
    }

    for (k = 0; k < n; k++) {
        if (t[k].state == US_APPLY_DONE && strcmp(t[k].post, t[i].post) == 0) {
            return 0;
        }
    }

    return 1;
}


static int
us_apply_report(const us_target_t *t, size_t n)
{
    int     pending, refused;
    size_t  i;

    static const char *const  words[] = {
        [US_APPLY_PENDING] = "pending",
        [US_APPLY_DONE] = "adopted",
        [US_APPLY_STANDBY] = "standby",
        [US_APPLY_REFUSED] = "refused"
    };

    for (i = 0, pending = 0, refused = 0; i < n; i++) {
        pending += us_apply_lacks(t, n, i);
        refused += t[i].state == US_APPLY_REFUSED;

        if (t[i].shard) {
            printf("%u\t%.*s", t[i].shard->number, (int) t[i].node.len,
                   t[i].node.data);

        } else {
            printf("-\t-");
        }

        printf("\t%s\t%s%s%s\n", t[i].url, words[t[i].state],
               t[i].state == US_APPLY_DONE ? "" : "\t",
               t[i].state == US_APPLY_DONE ? "" : t[i].why);
    }

    return refused ? US_CLI_REFUSED : pending ? US_CLI_USAGE : US_CLI_DONE;
}


int
us_apply(const us_apply_t *a, const us_nodes_t *nodes, int n, char **urls)
{
    int           code, known;
    size_t        i, count, left;
    double        end;
    us_target_t  *t;

    t = us_apply_targets(a, nodes, n, urls, &count);

    if (t == NULL) {
        return US_CLI_USAGE;
    }

    end = us_apply_now() + a->timeout;
    left = us_apply_checked(a, t, count, end) ? count : 0;

    while (left) {

        for (known = 0, left = 0; known < 2; known++) {
            for (i = 0; i < count; i++) {
                if (t[i].known == known && us_apply_lacks(t, count, i)) {
                    us_apply_post(a, &t[i], 0, end);
                    left += us_apply_lacks(t, count, i);
                }
            }

            /* what was checked is refused: the others need not have it */

            if (known == 0 && us_apply_refused(t, count)) {
                left = 0;
                break;
            }
        }

        if (left && us_apply_now() >= end) {
            break;
        }

        if (left) {
            us_apply_pause();
        }
    }

    code = us_apply_report(t, count);
    us_apply_free(t, count);

    return code;
}


int
us_command(const char *name, const char *url, int shard, double timeout,
    double answer)
{
    int                  status, lost;
    char                 number[16], endpoint[64];
    double               end;
    us_client_t          c;
    us_client_request_t  r = { "POST", endpoint, "text/plain", { 0, NULL } };

    if (us_client_init(&c, url) == -1) {
        fprintf(stderr, "urlstore: %s\n", c.error);
        return US_CLI_USAGE;
    }

    (void) snprintf(number, sizeof(number), "=%d", shard);
    (void) snprintf(endpoint, sizeof(endpoint), "%s?%s%s",
                    c.path[0] ? "" : "/cluster", name,
                    shard == -1 ? "" : number);

    c.timeout = (long) answer;
    end = us_apply_now() + timeout;
    lost = 0;

    /* a node that still reads the log; one that starts; a lost answer */

    while (((status = us_client_once(&c, &r)) <= 0 || status >= 500)
           && us_apply_now() < end)
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
                "lost: the " : "", lost && status >= 400 ? name : "",
                lost && status >= 400 ? " was interrupted, or is done" : "");
    }

    us_client_free(&c);

    return status == 200 ? US_CLI_DONE
           : status >= 400 && status < 500 ? US_CLI_REFUSED : US_CLI_USAGE;
}
