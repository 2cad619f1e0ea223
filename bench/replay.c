
/*
 * replay: how fast a store is built again from its operations.
 *
 *     build/generate -n 10000000 -s 1 | build/bench/replay [TAIL...]
 *
 * Reads canonical URLs, adds them all, takes a dump just before the last TAIL
 * of them (a percentage of all; without one 0, 5, 20), and applies the dump,
 * then the operations that follow it, to an empty zone of the same size, as a
 * start does.  100: no dump, the journal alone.  20d: a dump of all, then so
 * many are deleted, in random order.  Prints seconds of the clock and
 * nanoseconds for each operation replayed, and the memory that the process took
 * beside both zones.
 *
 * US_REPLAY_* in us_replay.c were set by it.
 */


#include "us_base.h"
#include "../t/unit/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>


typedef struct {
    char         *text;
    size_t        len;
    size_t       *ends;
    size_t        n;
} urls_t;


static void
no_lock(void *data)
{
}


static const us_store_lock_t  locks = { no_lock, no_lock, NULL };


static void
die(const char *what)
{
    fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
    exit(2);
}


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static double
cpu(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static void *
grow(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        die("no memory");
    }

    return p;
}


static void
urls_read(urls_t *u)
{
    char     *line;
    size_t    size, room, max;
    ssize_t   n;

    memset(u, 0, sizeof(urls_t));
    line = NULL;
    size = 0;
    room = 0;
    max = 0;

    while ((n = getline(&line, &size, stdin)) > 1) {
        n -= line[n - 1] == '\n';

        if (strncmp(line, "http", 4) != 0 || n > US_URL_MAX) {
            continue;
        }

        if (u->n + 1 >= max) {
            max = max * 2 + 1024;
            u->ends = grow(u->ends, max * sizeof(size_t));
        }

        if (u->len + n > room) {
            room = room * 2 + n;
            u->text = grow(u->text, room);
        }

        memcpy(u->text + u->len, line, n);
        u->len += n;
        u->ends[u->n++] = u->len;
    }

    free(line);
}


static us_store_t *
zone(size_t size, const us_store_conf_t *conf, void **mem)
{
    us_store_t  *s;

    *mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);

    if (*mem == MAP_FAILED) {
        die("mmap");
    }

    if (us_store_format(*mem, size, conf) != 0
        || (s = us_store_open(*mem, &locks)) == NULL)
    {
        die("no store");
    }

    return s;
}


static void
add(us_store_t *s, const urls_t *u, size_t from, size_t to, stream_t *st)
{
    size_t           i, n;
    us_store_item_t  items[US_STORE_GROUP];

    for ( /* void */ ; from < to; from += n) {
        n = to - from < US_STORE_GROUP ? to - from : US_STORE_GROUP;
        memset(items, 0, sizeof(items));

        for (i = 0; i < n; i++) {
            items[i].url.data = (uint8_t *) u->text
                                + (from + i ? u->ends[from + i - 1] : 0);
            items[i].url.len = (uint8_t *) u->text + u->ends[from + i]
                               - items[i].url.data;
            items[i].merge = 1;
        }

        us_store_add(s, items, n);
        stream_drain(st, s);

        for (i = 0; i < n; i++) {
            if (items[i].status != US_NEW && items[i].status != US_SEEN) {
                errno = ENOSPC;
                die("the zone is full");
            }
        }

        if (us_store_train_due(s)) {
            us_store_train(s, NULL);
            stream_drain(st, s);
        }
    }
}


/* deletes so many ids, no two alike, in random order */

static void
delete(us_store_t *s, uint64_t n, stream_t *st)
{
    int       was;
    uint64_t  i, ids, lsn;

    ids = us_store_next_id(s);

    for (i = 0; n; i++) {
        us_store_delete(s, (i * 0x9e3779b97f4a7c15 >> 20) % ids, &was, &lsn);
        stream_drain(st, s);
        n -= !was;
    }
}


static void
feed(us_store_t *s, const stream_t *st, size_t from)
{
    size_t   n;
    ssize_t  rc;

    for ( /* void */ ; from < st->len; from += rc) {
        n = st->len - from < 65536 ? st->len - from : 65536;
        rc = us_store_apply(s, st->data + from, n);

        if (rc <= 0 && n < st->len - from) {
            rc = us_store_apply(s, st->data + from, st->len - from);
        }

        if (rc <= 0) {
            errno = EINVAL;
            die("apply");
        }
    }
}


static void
replay(const us_store_conf_t *conf, size_t size, const stream_t *dump,
    const stream_t *since, size_t from, uint64_t ids, uint64_t tail)
{
    void           *mem;
    long            before;
    double          t[3], used;
    us_store_t     *s;
    struct rusage   ru;

    getrusage(RUSAGE_SELF, &ru);
    before = ru.ru_maxrss;

    s = zone(size, conf, &mem);

    used = cpu();
    t[0] = now();
    feed(s, dump, 0);
    t[1] = now();
    feed(s, since, from);

    if (us_store_set_lsn(s, since->len) != 0) {
        die("no store");
    }

    t[2] = now();
    used = cpu() - used;

    if (us_store_next_id(s) != ids) {
        die("ids");
    }

    getrusage(RUSAGE_SELF, &ru);

    printf("%10lu %10lu %8.3f s %8.3f s %8.3f s %8.3f s %6.0f ns %6ld MB\n",
           (unsigned long) ids, (unsigned long) tail, t[1] - t[0],
           t[2] - t[1], t[2] - t[0], used,
           tail ? (t[2] - t[1]) * 1e9 / tail : (t[1] - t[0]) * 1e9 / ids,
           (ru.ru_maxrss - before) / 1024);

    us_store_close(s);
    munmap(mem, size);
}


int
main(int argc, char **argv)
{
    int              i, deletes;
    void            *mem;
    double           share;
    size_t           size, cut, from;
    urls_t           u;
    uint64_t         lsn, ids, n;
    stream_t         dump, since;
    us_store_t      *s;
    us_store_conf_t  conf;

    static char     *usual[] = { NULL, "0", "5", "20", "20d" };

    if (argc < 2) {
        argc = 5;
        argv = usual;
    }

    urls_read(&u);
    size = (size_t) 16 << 20;
    size += u.len / 4 + u.n * 20;

    printf("%10s %10s %10s %10s %10s %10s %9s %9s\n", "ids", "tail", "dump",
           "tail", "in all", "CPU", "each", "private");

    for (i = 1; i < argc; i++) {
        deletes = argv[i][strlen(argv[i]) - 1] == 'd';
        share = atof(argv[i]) / 100;
        cut = deletes ? u.n : (size_t) (u.n * (1 - share));

        memset(&conf, 0, sizeof(conf));
        memset(&dump, 0, sizeof(dump));
        memset(&since, 0, sizeof(since));
        memcpy(conf.hash_key, "replayreplayrepl", 16);
        conf.ring = (size_t) 4 << 20;
        conf.norm = us_string("bench");

        s = zone(size, &conf, &mem);
        add(s, &u, 0, cut, &since);
        from = 0;
        ids = us_store_next_id(s);

        if (ids) {
            if (us_store_dump(s, stream_put, &dump, &lsn) != 0) {
                die("dump");
            }

            from = lsn;
        }

        if (deletes) {
            n = (uint64_t) (ids * share);
            delete(s, n, &since);

        } else {
            add(s, &u, cut, u.n, &since);
            n = us_store_next_id(s) - ids;
        }

        ids = us_store_next_id(s);
        us_store_close(s);
        munmap(mem, size);

        replay(&conf, size, &dump, &since, from, ids, n);

        free(dump.data);
        free(since.data);
    }

    return 0;
}
