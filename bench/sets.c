
/*
 * What sets cost: bytes and time a member of each shape, and of an empty set;
 * 50 crawls of overlapping sites; and how long the lock is held while a set of
 * 10 M members is dropped.
 *
 *     build/bench/sets [IDS]         below which ids are: 100 M
 *     build/bench/sets snapshot DIR  writes one: a start has no journal to read
 *
 * One thread, a zone of 2 GB for each line.  "objects" are the bytes that live,
 * "chunks" all that the sets have of the zone, of which up to two chunks are
 * partly empty.  Times are of CPU: to put one id in, in the order that the line
 * says, and to test one, at random.
 */


#include "life/us_data.h"
#include "life/us_embed.h"
#include "store/us_store_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>


#define ZONE     ((size_t) 2 << 30)
#define AT_ONCE  256
#define TESTS    2000000
#define CRAWLS   50
#define EMPTY    1000
#define FINDS    100000


static us_arena_t   arena;
static uint64_t     seed;


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static uint64_t
rnd(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint64_t) (((unsigned __int128) (seed ^ seed >> 29) * n) >> 64);
}


static void *
zone(void)
{
    void             *mem;
    us_store_conf_t   conf;

    mem = mmap(NULL, ZONE, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    memset(&conf, 0, sizeof(conf));
    conf.sets = 1;

    if (mem == MAP_FAILED || us_arena_format(&arena, mem, ZONE, &conf) != 0) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }

    seed = 1;

    return mem;
}


static uint32_t
make(uint64_t number)
{
    char      text[32];
    uint32_t  row;
    us_str_t  name;

    name.data = (uint8_t *) text;
    name.len = sprintf(text, "crawl-%lu", (unsigned long) number);

    if (us_set_make_locked(&arena, number, name, 1, NULL, &row) != 0) {
        fprintf(stderr, "no room\n");
        exit(2);
    }

    return row;
}


static void
put(uint32_t row, const us_set_run_t *runs, size_t n)
{
    if (us_set_change_locked(&arena, row, runs, n, 1, 0) != n) {
        fprintf(stderr, "no room\n");
        exit(2);
    }
}


/* each id below `ids` with a chance of `part` in `of`, in order */

static void
put_part(uint32_t row, uint64_t ids, uint64_t part, uint64_t of)
{
    size_t         n;
    uint64_t       id;
    us_set_run_t   runs[AT_ONCE];

    for (id = 0, n = 0; id < ids; id++) {

        if (rnd(of) < part) {
            runs[n].first = id;
            runs[n++].last = id;
        }

        if (n == AT_ONCE || id == ids - 1) {
            put(row, runs, n);
            n = 0;
        }
    }
}


/* n ids, some of which come twice, one by one, in no order */

static void
put_random(uint32_t row, uint64_t ids, uint64_t n)
{
    us_set_run_t  run;

    while (n--) {
        run.first = rnd(ids);
        run.last = run.first;
        put(row, &run, 1);
    }
}


static void
report(const char *what, uint32_t row, uint64_t sets, uint64_t ids, double s,
    uint64_t puts)
{
    double     t;
    uint64_t   i, found, members;

    found = 0;
    t = now();

    for (i = 0; i < TESTS; i++) {
        found += us_set_has(&arena, row, rnd(ids));
    }

    t = now() - t;
    members = us_set_row(&arena, row)->members * sets;

    printf("%-38s %11lu %9.4f %9.4f %7.0f %7.0f\n", what,
           (unsigned long) members,
           (double) arena.head->members_live / members,
           (double) us_area_bytes(&arena, US_AREA_MEMBERS) / members,
           s * 1e9 / puts, t * 1e9 / TESTS);

    if (found == 0) {
        fprintf(stderr, "none found\n");
        exit(1);
    }
}


static void
shape(const char *what, uint64_t ids, uint64_t part, uint64_t of, int random)
{
    void         *mem;
    double        s;
    uint32_t      row;
    uint64_t      n;

    mem = zone();
    row = make(20);
    n = part == of ? part : ids / of * part;
    s = now();

    if (part == of) {
        put_part(row, part, 1, 1);

    } else if (random) {
        put_random(row, ids, n);

    } else {
        put_part(row, ids, part, of);
    }

    report(what, row, 1, part == of ? part : ids, now()
           - s, n);
    munmap(mem, ZONE);
}


/* crawls that go on side by side, each of a fifth of what all have seen */

static void
crawls(uint64_t n)
{
    void           *mem;
    double          s;
    uint64_t        i, k;
    us_set_run_t    run;

    mem = zone();

    for (k = 0; k < CRAWLS; k++) {
        (void) make(20 + k);
    }

    s = now();

    for (i = 0; i < n; i++) {
        for (k = 0; k < CRAWLS; k++) {
            run.first = rnd(5 * n);
            run.last = run.first;
            put(k, &run, 1);
        }
    }

    report("50 crawls, each of a fifth of the URLs", 0, CRAWLS, 5 * n,
           now() - s, n * CRAWLS);
    munmap(mem, ZONE);
}


static void
empty(void)
{
    void      *mem;
    double     s;
    unsigned   i;

    mem = zone();
    s = now();

    for (i = 0; i < EMPTY; i++) {
        (void) make(20 + i);
    }

    printf("\n%d empty sets: %.0f bytes each, made in %.1f us each\n", EMPTY,
           (double) us_area_bytes(&arena, US_AREA_SETS) / EMPTY,
           (now() - s) * 1e6 / EMPTY);
    munmap(mem, ZONE);
}


/* finding a set by its name, as each request with set= does */

static void
find(uint64_t sets)
{
    char       text[32];
    void      *mem;
    double     s, t;
    uint32_t   row;
    uint64_t   i, found;
    us_str_t   name;

    mem = zone();
    s = now();

    for (i = 0; i < sets; i++) {
        (void) make(20 + i);
    }

    s = now() - s;
    name.data = (uint8_t *) text;
    found = 0;
    t = now();

    for (i = 0; i < FINDS; i++) {
        name.len = sprintf(text, "crawl-%lu",
                           (unsigned long) (20 + rnd(2 * sets)));
        found += us_set_find(&arena, name, &row) != 0;
    }

    t = now() - t;

    printf("of %5lu sets one is found, or none, by a name in %.2f us; "
           "each made in %.2f us\n", (unsigned long) sets, t * 1e6 / FINDS,
           s * 1e6 / sets);

    if (found == 0 || found == FINDS) {
        fprintf(stderr, "%lu found\n", (unsigned long) found);
        exit(1);
    }

    munmap(mem, ZONE);
}


static void
drop(uint64_t ids, uint64_t of)
{
    int        more;
    void      *mem;
    double     t, longest;
    uint32_t   row;
    unsigned   holds;
    uint64_t   members;

    mem = zone();
    row = make(20);
    put_part(row, ids, 1, of);
    members = us_set_row(&arena, row)->members;
    us_set_drop_locked(&arena, row, NULL);

    for (longest = 0, holds = 0, more = 1; more; holds++) {
        t = now();
        more = us_sets_tend_locked(&arena);
        t = now() - t;
        longest = t > longest ? t : longest;
    }

    printf("a drop of %lu members: %u holds of the lock, the longest %.2f ms, "
           "%lu bytes left\n", (unsigned long) members, holds, longest * 1e3,
           (unsigned long) us_area_bytes(&arena, US_AREA_MEMBERS));
    munmap(mem, ZONE);
}


static int
snapshot(const char *dir)
{
    int               fd, rc;
    char              error[US_EMBED_ERROR] = "no such directory";
    us_embed_t       *embed;
    us_manifest_t     m;
    us_disk_error_t   e;
    us_embed_conf_t   conf;

    memset(&conf, 0, sizeof(us_embed_conf_t));

    fd = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    embed = fd == -1 ? NULL : us_embed_open(dir, &conf, error);

    if (embed == NULL) {
        fprintf(stderr, "sets: %s: %s\n", dir, error);
        return 1;
    }

    rc = us_data_snapshot(us_embed_store(embed), fd, NULL, NULL, NULL, &m, &e);

    if (rc != 0) {
        fprintf(stderr, "sets: %s: %s\n", dir, e.text);
    }

    return us_embed_close(embed, error) != 0 || rc != 0;
}


int
main(int argc, char **argv)
{
    uint64_t  ids;

    if (argc == 3 && strcmp(argv[1], "snapshot") == 0) {
        return snapshot(argv[2]);
    }

    ids = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;

    if (ids < 1000) {
        fprintf(stderr, "usage: sets [IDS | snapshot DIR]\n");
        return 2;
    }

    setlinebuf(stdout);
    printf("%-38s %11s %9s %9s %7s %7s\n", "", "members", "objects", "chunks",
           "ns put", "ns test");

    shape("a hundredth of the ids, in a run", ids, ids / 100, ids / 100, 0);
    shape("1 % of the ids, at random", ids, 1, 100, 1);
    shape("9.5 %, at random", ids, 95, 1000, 1);
    shape("9.5 %, in order", ids, 95, 1000, 0);
    shape("50 %, in order", ids, 1, 2, 0);
    crawls(ids / 100);
    empty();
    find(1);
    find(64);
    find(1000);
    find(65535);
    drop(ids, 10);

    return 0;
}
