
/*
 * Processes that share a store and are killed at random instructions.
 *
 *     xz -dc CORPUS.txt.xz | urlstore normalize | kill SECONDS [SEED]
 *
 * Two writers, four readers and a trainer, each with a mapping of its own at
 * another address.  This process kills one of them every few milliseconds (the
 * trainer now and then, so that some of its models are published), releases
 * its lock as nginx's master would, and starts another in its place; and it is
 * the journal: it takes the operations out of the ring.  After a while
 * everybody is killed, the store is verified, and the operations are replayed
 * into a second store, which must be the same; then it begins again with an
 * empty zone.
 *
 * A commit takes so few instructions that hardly any of these kills hits one.
 * So now and then a writer is stopped again and again, until it has recorded an
 * intent and not carried it out; then it is killed.
 *
 * A run ends when the next writer has completed such an intent, a trainer was
 * killed at work and a model was published; one that has used LATE times as
 * much of a processor as it should last has failed.
 */


#include "stress.h"
#include "zone/us_arena.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define WRITERS   2
#define READERS   4
#define TRAINER   (WRITERS + READERS)
#define PROCESSES (TRAINER + 1)
#define ROUND     30                  /* seconds */
#define LATE      12
#define LEARNING  0.5                 /* seconds after which a trainer dies */
#define STOPS     200                 /* of a writer, in search of an intent */
#define CORPUS    200000              /* URLs of the corpus that are read */
#define ZONE      ((size_t) 48 << 20)
#define RING      ((size_t) 1 << 18)


typedef struct {
    uint64_t     lock;                /* pid of the holder */
    uint64_t     full;
    uint64_t     learning;            /* the trainer is at work */
    uint64_t     learnt;              /* models published */
    stress_t     st;
} shared_t;


/* of all rounds */

static struct {
    unsigned     kills;
    unsigned     held;                /* of these, with the lock held */
    unsigned     learning;            /* of these, trainers at work */
    unsigned     learnt;
    uint64_t     completed;
    uint64_t     ids;
    uint64_t     deleted;
    uint64_t     looks;
    uint64_t     hits;
    uint64_t     due;
    uint64_t     maps;
} total;


static int        zone_fd;
static shared_t  *shared;

static struct {
    uint8_t      *data;
    size_t        len;
    size_t        size;
} stream;


static void
lock(void *data)
{
    uint64_t  expected;

    for ( ;; ) {
        expected = 0;

        if (__atomic_compare_exchange_n(&shared->lock, &expected, getpid(), 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        {
            return;
        }

        sched_yield();
    }
}


static void
unlock(void *data)
{
    uint64_t  expected;

    expected = getpid();
    __atomic_compare_exchange_n(&shared->lock, &expected, 0, 0,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}


static const us_store_lock_t  locks = { lock, unlock, NULL };


static void *
map(int fd, size_t size)
{
    void  *mem;

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);

    if (mem == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }

    return mem;
}


static void *
zone_format(int fd, size_t ring)
{
    void             *mem;
    us_store_conf_t   conf;

    if (ftruncate(fd, 0) == -1 || ftruncate(fd, ZONE) == -1) {
        perror("ftruncate");
        exit(2);
    }

    mem = map(fd, ZONE);

    memset(&conf, 0, sizeof(conf));
    memcpy(conf.hash_key, "stressstressstres", 16);
    conf.nmarks = 1;
    conf.marks[0] = us_string("visited");
    conf.ring = ring;
    conf.sites = 1;
    conf.revisit = 1;
    conf.is_shard = 1;

    if (us_store_format(mem, ZONE, &conf) != 0) {
        fprintf(stderr, "no store\n");
        exit(2);
    }

    return mem;
}


static void
pause_us(unsigned us)
{
    struct timespec  ts = { 0, us * 1000L };

    nanosleep(&ts, NULL);
}


static void
train(us_store_t *s)
{
    if (!us_store_train_due(s)) {
        pause_us(1000);
        return;
    }

    stress_store(&shared->learning, 1);

    if (us_store_train(s, NULL)) {
        stress_count(&shared->learnt);
    }

    stress_store(&shared->learning, 0);
}


static void
child(int number, uint64_t seed)
{
    char        *text;
    us_hot_t    *hot;
    us_store_t  *s;

    /* somewhere else than the parent's */

    map(zone_fd, 4096 * (1 + seed % 64));

    s = stress_open(map(zone_fd, ZONE), &locks, &shared->st, &hot);
    text = malloc(STRESS_BATCH * STRESS_URL);

    /* or it would take the trainer a round to learn a model */

    if (number != TRAINER) {
        errno = 0;

        if (nice(5) == -1 && errno) {
            perror("nice");
        }
    }

    for ( ;; ) {

        if (number == TRAINER) {
            train(s);

        } else if (number >= WRITERS) {
            stress_read(s, &shared->st, &seed);

        } else if (!stress_write(s, &shared->st, &seed, text)) {
            stress_store(&shared->full, 1);
        }
    }
}


static pid_t
start(int number, uint64_t *seed)
{
    pid_t     pid;
    uint64_t  s;

    s = stress_random(seed);
    pid = fork();

    if (pid == 0) {
        child(number, s);
        _exit(0);
    }

    if (pid == -1) {
        perror("fork");
        exit(2);
    }

    return pid;
}


/* 1: it held the lock */

static int
end(pid_t pid)
{
    int  status;

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);

    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
        stress_fail(&shared->st, "a child died of signal %d",
                    WTERMSIG(status));
    }

    if (stress_load(&shared->lock) == (uint64_t) pid) {
        stress_store(&shared->lock, 0);
        return 1;
    }

    return 0;
}


/*
 * Stops a writer where it has an intent to carry out, or after STOPS attempts.
 * SIGKILL ends it there.
 */

static void
catch(pid_t pid, const us_head_t *head, uint64_t *seed)
{
    int       status;
    unsigned  i;

    for (i = 0; i < STOPS; i++) {
        kill(pid, SIGSTOP);

        if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) {
            stress_fail(&shared->st, "a writer ended");
            return;
        }

        if (stress_load(&shared->lock) == (uint64_t) pid
            && stress_load(&head->intents))
        {
            return;
        }

        kill(pid, SIGCONT);
        pause_us(stress_random(seed) % 50);
    }
}


static void
drain(us_store_t *s)
{
    unsigned  i;
    us_str_t  pieces[2];

    us_store_ops(s, us_store_written(s), pieces);

    for (i = 0; i < 2; i++) {

        if (stream.len + pieces[i].len > stream.size) {
            stream.size = (stream.len + pieces[i].len) * 2;
            stream.data = realloc(stream.data, stream.size);
        }

        if (pieces[i].len) {
            memcpy(stream.data + stream.len, pieces[i].data, pieces[i].len);
            stream.len += pieces[i].len;
        }
    }

    us_store_set_written(s, stream.len);
}


/* the store that the operations give must be the store that made them */

static void
compare(us_store_t *s)
{
    int           fd;
    void         *mem;
    size_t        la, lb;
    uint8_t       ua[STRESS_URL], ub[STRESS_URL];
    uint64_t      id, next;
    us_store_t   *r;

    fd = memfd_create("replay", 0);
    mem = zone_format(fd, 0);
    r = us_store_open(mem, &locks);

    if (us_store_apply(r, stream.data, stream.len) != (ssize_t) stream.len) {
        stress_fail(&shared->st, "the stream does not apply");
    }

    next = us_store_next_id(s);

    if (us_store_next_id(r) != next) {
        stress_fail(&shared->st, "replay has %lu ids, not %lu",
                    (unsigned long) us_store_next_id(r), (unsigned long) next);
    }

    for (id = 0; id < next; id++) {
        if (us_store_get(s, id, ua, &la) != us_store_get(r, id, ub, &lb)
            || mark_has(s, 0, id) != mark_has(r, 0, id)
            || us_store_claimed(s, id) != us_store_claimed(r, id)
            || (!us_store_deleted(s, id)
                && (la != lb || memcmp(ua, ub, la) != 0)))
        {
            stress_fail(&shared->st, "replay: id %lu differs",
                        (unsigned long) id);
        }
    }

    if (us_store_map(r)->version != us_store_map(s)->version
        || memcmp(us_store_map(r)->digest, us_store_map(s)->digest, 16) != 0)
    {
        stress_fail(&shared->st, "replay: the map differs");
    }

    us_store_close(r);
    munmap(mem, ZONE);
    close(fd);
}


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


/* the seconds of processors that the processes have used which were killed */

static double
used(void)
{
    struct rusage  r;

    getrusage(RUSAGE_CHILDREN, &r);

    return r.ru_utime.tv_sec + r.ru_stime.tv_sec
           + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}


/*
 * Writers twice as often as readers; every second trainer, when it has been at
 * work for a while (*at: until then, or 0).
 */

static int
victim(uint64_t *seed, double *at)
{
    int              i;
    static unsigned  lives;

    if (!stress_load(&shared->learning)) {
        *at = 0;

    } else if (*at == 0) {
        *at = now() + LEARNING * (stress_random(seed) % 1000) / 1e3
              + (lives++ % 2 ? ROUND : 0);

    } else if (now() > *at) {
        *at = 0;
        return TRAINER;
    }

    i = stress_random(seed) % (2 * WRITERS + READERS);

    return i < 2 * WRITERS ? i % WRITERS : i - WRITERS;
}


static void
round_of(double until, uint64_t *seed)
{
    int              i, held, kills, learning;
    void            *mem;
    pid_t            pids[PROCESSES];
    double           trainer_at;
    uint64_t         ids;
    us_store_t      *s;
    us_store_info_t  info;

    memset(shared, 0, sizeof(shared_t));
    mem = zone_format(zone_fd, RING);
    s = us_store_open(mem, &locks);
    stress_adopt(s, &shared->st);
    stream.len = 0;
    held = 0;
    kills = 0;
    learning = 0;
    trainer_at = 0;

    for (i = 0; i < PROCESSES; i++) {
        pids[i] = start(i, seed);
    }

    while (now() < until && !stress_load(&shared->full)
           && !stress_load(&shared->st.failed))
    {
        pause_us(stress_random(seed) % 3000);
        drain(s);

        i = victim(seed, &trainer_at);

        if (i < WRITERS && kills % 32 == 0) {
            catch(pids[i], mem, seed);
        }

        held += end(pids[i]);
        kills++;

        if (i == TRAINER) {
            learning += stress_load(&shared->learning);
            stress_store(&shared->learning, 0);
        }

        pids[i] = start(i, seed);
    }

    for (i = 0; i < PROCESSES; i++) {
        held += end(pids[i]);
    }

    /* the next one to take the lock completes what they left */

    lock(NULL);
    unlock(NULL);
    mark_put(s, 0, 0, 1, &ids);
    drain(s);

    ids = stress_verify(s, &shared->st);
    compare(s);

    us_store_info(s, &info);

    printf("%d kills, %d with the lock held, %lu completed, %d while learning; "
           "%lu models, %lu ids, %lu deleted, %lu adds, %lu due, %lu maps, "
           "%lu look-ups%s\n",
           kills, held, (unsigned long) info.recoveries, learning,
           (unsigned long) shared->learnt, (unsigned long) ids,
           (unsigned long) info.deleted, (unsigned long) shared->st.adds,
           (unsigned long) shared->st.due, (unsigned long) shared->st.maps,
           (unsigned long) shared->st.looks, shared->full ? ", full" : "");
    fflush(stdout);

    total.kills += kills;
    total.held += held;
    total.learning += learning;
    total.learnt += shared->learnt;
    total.completed += info.recoveries;
    total.ids += ids;
    total.deleted += info.deleted;
    total.looks += shared->st.looks;
    total.hits += shared->st.hits;
    total.due += shared->st.due;
    total.maps += shared->st.maps - 1;

    us_store_close(s);
    munmap(mem, ZONE);
}


static int
met(void)
{
    return total.learning && total.learnt && total.deleted && total.completed
           && total.hits && total.due && total.maps;
}


int
main(int argc, char **argv)
{
    double     until, round, t;
    uint64_t   seed;

    t = argc > 1 ? atof(argv[1]) : 20;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t) time(NULL);

    printf("seed %lu, %u URLs of a corpus\n", (unsigned long) seed,
           stress_corpus_read(stdin, CORPUS));

    until = now() + t;
    round = t < ROUND ? t : ROUND;

    shared = mmap(NULL, sizeof(shared_t), PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    zone_fd = memfd_create("zone", 0);

    if (shared == MAP_FAILED || zone_fd == -1) {
        perror("no memory");
        return 2;
    }

    do {
        round_of(now() + round, &seed);

        if (shared->st.failed) {
            printf("FAILED: %lu\n", (unsigned long) shared->st.failed);
            return 1;
        }

        if (used() > t * LATE && !met()) {
            printf("FAILED: %lu intents completed, %u kills while learning, "
                   "%u models, %lu deleted, %lu hits of hot tables, %lu "
                   "due, %lu maps\n",
                   (unsigned long) total.completed, total.learning,
                   total.learnt, (unsigned long) total.deleted,
                   (unsigned long) total.hits, (unsigned long) total.due,
                   (unsigned long) total.maps);
            return 1;
        }

        /* on a busy machine no model is learnt in so short a round */

        round *= met() ? 1 : 2;

    } while (now() < until || !met());

    printf("ok: %u kills, %u with the lock held, %lu completed, %u while "
           "learning; %u models, %lu ids, %lu deleted, %lu due, %lu maps, "
           "%lu look-ups, %lu hits of hot tables\n",
           total.kills, total.held, (unsigned long) total.completed,
           total.learning, total.learnt, (unsigned long) total.ids,
           (unsigned long) total.deleted, (unsigned long) total.due,
           (unsigned long) total.maps, (unsigned long) total.looks,
           (unsigned long) total.hits);

    return 0;
}
