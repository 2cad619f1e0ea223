
/*
 * A zone with path= and its replicas, for t/unit/simulate.c, which includes it,
 * in some of the seeds instead of a log:
 *
 *     node 0    the primary: a directory, synced before each answer
 *     node 1    a replica (follow=) without a directory
 *     node 2    a replica with one
 *
 * A replica's connection is what GET /log sends (us_ship.h).  It is served by a
 * worker of the primary and ends with it.  It may be cut between any two bytes.
 *
 * What a replica answers, the primary has; what a replica has answered, it has
 * from then on, also when it has started again, until it begins anew.
 */


#ifndef _FOLLOW_FAKE_H_INCLUDED_
#define _FOLLOW_FAKE_H_INCLUDED_


#include "journal/us_ship.h"
#include "life/us_known.h"
#include "peer_fake.h"


#define FOLLOW_STREAMS  64            /* more than there can be */


/* a connection */

typedef struct {
    int          open;
    worker_t    *server;              /* NULL: it was killed */
    node_t      *to;
    us_ship_t    ship;
    us_known_t   said;
    unsigned     row;
    uint64_t     heard;               /* ms */
    uint8_t     *buf;                 /* what was sent and did not come yet */
    size_t       len;
    size_t       pos;
} link_t;


static struct {
    int          on;
    link_t       streams[FOLLOW_STREAMS];
    uint64_t     had[NODES];          /* ids below were answered there */
    int          anew[NODES];         /* it is going to have nothing */
} follow;


static const us_primary_t  follow_primary = { "http://primary/", "primary", "",
                                              NULL, NULL, 0 };


static void
follow_begin(uint64_t seed)
{
    memset(&follow, 0, sizeof(follow));
    follow.on = seed % 8 == 7;
}


/* of a worker that starts */

static void
follow_conf(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;
    l->conf.replicate = NULL;

    if (w->node != &nodes[0]) {
        l->conf.follow = &follow_primary;
    }
}


/* --- connections ---------------------------------------------------------- */

static void
link_end(link_t *st)
{
    if (st->server) {
        us_ship_end(&st->ship);
    }

    free(st->buf);
    memset(st, 0, sizeof(link_t));
}


/* a worker was killed: what it sends ends */

static void
follow_killed(worker_t *w)
{
    unsigned  i;

    for (i = 0; i < FOLLOW_STREAMS; i++) {
        if (follow.streams[i].open && follow.streams[i].server == w) {
            us_ship_end(&follow.streams[i].ship);
            follow.streams[i].server = NULL;
        }
    }
}


/* the event loop of the server: one part of the stream */

static void
link_produce(link_t *st)
{
    size_t           len;
    worker_t        *w;
    us_beat_t        beat;
    us_tail_t        tail;
    const uint8_t   *p;

    w = st->server;

    if (w == NULL || w->until > clock_ms || w->working) {
        return;
    }

    if (us_life_state(&w->l) != US_LIFE_READY) {
        us_ship_end(&st->ship);
        st->server = NULL;
        return;
    }

    us_life_journal(&w->l, &tail, &beat);
    us_known_beat(w->l.sh, st->row, st->said.id, clock_ms);

    switch (us_ship_send(&st->ship, &tail, &beat, clock_ms, &p, &len)) {

    case US_SHIP_OK:
        st->buf = realloc(st->buf, st->len + len);
        assert_non_null(st->buf);
        memcpy(st->buf + st->len, p, len);
        st->len += len;
        mark(M_SENT);
        break;

    case US_SHIP_WAIT:
        break;

    default:
        say("the journal cannot be sent on: %s", st->ship.error.text);
        us_ship_end(&st->ship);
        st->server = NULL;
    }
}


int
us_peer_get(us_peer_t *p, const us_primary_t *primary, unsigned n,
    const char *target)
{
    int                  len, news;
    unsigned             keeps, i;
    link_t            *st;
    worker_t            *w, *to, *server;
    us_beat_t            beat;
    us_tail_t            tail;
    us_place_t           at, *place;
    us_ship_rc_t         rc;
    unsigned long long   id, erased;

    (void) primary;
    (void) n;

    to = disk.acts;
    assert_non_null(to);
    disk_call();

    assert_int_equal(sscanf(target, "log?replica=%llu&erased=%llu&keeps=%u%n",
                            &id, &erased, &keeps, &len), 3);
    target += len;
    place = NULL;

    if (*target) {
        assert_int_equal(strncmp(target, "&at=", 4), 0);
        assert_int_equal(us_place_parse(&at, target + 4, strlen(target + 4)),
                         0);
        place = &at;
    }

    server = &nodes[0].workers[any(WORKERS)];
    (void) strcpy(p->error, "connect() failed");
    p->detail = 1;

    if (is_cut(&nodes[0]) || is_cut(to->node) || server->until > clock_ms
        || server->working || server->l.sh == NULL)
    {
        return -1;
    }

    if (us_life_state(&server->l) != US_LIFE_READY) {
        p->status = 503;
        return 0;
    }

    for (i = 0; follow.streams[i].open; i++) {
        assert_true(i + 1 < FOLLOW_STREAMS);
    }

    st = &follow.streams[i];

    w = disk.acts;
    disk.acts = NULL;
    disk.opens = server;

    us_life_journal(&server->l, &tail, &beat);
    rc = us_ship_begin(&st->ship, server->l.dirfd, &us_data_ops, place, &tail);

    if (rc == US_SHIP_OK) {
        st->open = 1;
        st->server = server;
        st->to = to->node;
        st->heard = clock_ms;
        st->said.id = id;
        st->said.erased = erased;
        st->said.keeps = keeps;
        st->said.seen = clock_ms;
        st->row = us_known_enter_locked(server->l.sh, &st->said, &news);
        p->fd = (int) i;
        mark(place ? M_RESUMED : M_FETCHED);

    } else {
        us_ship_end(&st->ship);
        memset(st, 0, sizeof(link_t));
    }

    disk.acts = w;
    disk.opens = w;
    p->status = rc == US_SHIP_OK ? 200 : rc == US_SHIP_GONE ? 410 : 503;
    say("%s asks %s: %u", to->node->name, place ? "to go on" : "for all",
        p->status);

    return 0;
}


int
us_peer_read(us_peer_t *p, size_t need)
{
    size_t     len;
    link_t  *st;
    worker_t  *w;

    (void) need;

    w = disk.acts;
    assert_non_null(w);
    disk_call();

    st = &follow.streams[p->fd];

    if (p->pos) {
        memmove(p->buf, p->buf + p->pos, p->len - p->pos);
        p->len -= p->pos;
        p->pos = 0;
    }

    if (st->len == st->pos) {
        st->len = 0;
        st->pos = 0;
        disk.acts = NULL;
        disk.opens = st->server;
        link_produce(st);
        disk.acts = w;
        disk.opens = w;
    }

    len = st->len - st->pos;

    if (is_cut(&nodes[0]) || is_cut(st->to) || (len == 0 && !st->server)
        || clock_ms - st->heard > US_PEER_SILENT
        || (!quiet && calm == 0 && chance(3)))
    {
        (void) strcpy(p->error, "the connection was closed");
        mark(M_STREAM_CUT);
        return -1;
    }

    if (len == 0) {
        clock_ms += US_PEER_STEP / 2;
        return 0;
    }

    len = chance(500) ? 1 + any((unsigned) len) : len;
    p->buf = realloc(p->buf, p->len + len);
    assert_non_null(p->buf);
    memcpy(p->buf + p->len, st->buf + st->pos, len);
    p->len += len;
    st->pos += len;
    st->heard = clock_ms;

    return 1;
}


void
us_peer_close(us_peer_t *p)
{
    if (p->fd != -1) {
        link_end(&follow.streams[p->fd]);
    }

    p->fd = -1;
    p->pos = 0;
    p->len = 0;
}


/* --- what must hold ------------------------------------------------------- */

/* if it starts again before it has all, it has nothing */

static void
follow_anew(const node_t *n)
{
    follow.had[n - nodes] = 0;
    follow.anew[n - nodes] = 1;
}


/* what a node logs */

static void
follow_says(const node_t *n, const char *text)
{
    if (strstr(text, "the copy of ") || strstr(text, "a replica of ")) {
        follow.anew[n - nodes] = 0;
    }

    if (strstr(text, "all is fetched")) {
        follow_anew(n);
    }
}


/* a replica has answered an id with its URL: the primary has it */

static void
follow_answered(const node_t *n, uint64_t id)
{
    char                url[64];
    size_t              len;
    uint8_t             buf[US_URL_MAX + 8];
    us_life_t          *l;
    us_store_status_t   status;

    if (!follow.on || n == &nodes[0]) {
        return;
    }

    mark(M_REPLICA);

    if (id >= follow.had[n - nodes] && !follow.anew[n - nodes]) {
        follow.had[n - nodes] = id + 1;
    }

    l = &nodes[0].workers[0].l;

    if (nodes[0].workers[0].serial == 0
        || us_share_state(&nodes[0].sh) != US_LIFE_READY
        || us_life_state(l) != US_LIFE_READY || nodes[0].workers[0].working)
    {
        return;
    }

    status = us_store_get(l->store, id, buf, &len);
    assert_true(status == US_OK || status == US_DELETED);

    if (status == US_OK && ids[id].key) {
        text_of(ids[id].key - 1, url);
        assert_int_equal(len, strlen(url));
        assert_memory_equal(buf, url, len);
    }
}


#endif /* _FOLLOW_FAKE_H_INCLUDED_ */
