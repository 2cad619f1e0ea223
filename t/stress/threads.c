
/*
 * The same by threads, for ThreadSanitizer: two writers, three readers, a
 * trainer, a journal; each has a handle of its own.
 *
 * A run takes SECONDS, and goes on until a model was published.  A busy machine
 * makes that long, so the limit is one of processor time: a run has failed if
 * its threads have used LATE times SECONDS each by then.
 *
 *     threads SECONDS
 */


#include "stress.h"
#include "mutex.h"

#include <sys/mman.h>
#include <time.h>


#define WRITERS   2
#define READERS   3
#define THREADS   (WRITERS + READERS + 2)
#define LATE      12
#define ZONE      ((size_t) 24 << 20)


static void             *mem;
static stress_t         *st;
static int               stop;
static unsigned          learnt;


static void *
writer(void *data)
{
    char        *text;
    uint64_t     seed;
    us_hot_t    *hot;
    us_store_t  *s;

    s = stress_open(mem, &mutex_lock, st, &hot);
    text = malloc(STRESS_BATCH * STRESS_URL);
    seed = (uintptr_t) data;

    while (!stress_load(&stop) && stress_write(s, st, &seed, text)) {
        /* void */
    }

    free(text);
    us_store_close(s);
    us_hot_destroy(hot);

    return NULL;
}


static void *
reader(void *data)
{
    uint64_t     seed;
    us_hot_t    *hot;
    us_store_t  *s;

    s = stress_open(mem, &mutex_lock, st, &hot);
    seed = (uintptr_t) data;

    while (!stress_load(&stop)) {
        stress_read(s, st, &seed);
    }

    us_store_close(s);
    us_hot_destroy(hot);

    return NULL;
}


static void *
trainer(void *data)
{
    us_store_t      *s;
    struct timespec  ts = { 0, 1000000 };

    s = us_store_open(mem, &mutex_lock);

    while (!stress_load(&stop)) {
        if (us_store_train_due(s) && us_store_train(s, &stop)) {
            stress_count(&learnt);
        }

        nanosleep(&ts, NULL);
    }

    us_store_close(s);

    return NULL;
}


/* reads every byte of the ring */

static void *
journal(void *data)
{
    size_t           i, k, sum;
    uint64_t         lsn;
    us_str_t         pieces[2];
    us_store_t      *s;
    struct timespec  ts = { 0, 1000000 };

    s = us_store_open(mem, &mutex_lock);
    sum = 0;

    while (!stress_load(&stop)) {
        lsn = us_store_published(s);
        us_store_ops(s, us_store_written(s), pieces);

        for (i = 0; i < 2; i++) {
            for (k = 0; k < pieces[i].len; k++) {
                sum += pieces[i].data[k];
            }
        }

        us_store_set_written(s, us_store_written(s) + pieces[0].len
                                + pieces[1].len);
        us_store_set_durable(s, lsn);
        nanosleep(&ts, NULL);
    }

    us_store_close(s);

    return (void *) sum;
}


/* whether all has happened that a run is about */

static int
met(void)
{
    return stress_load(&learnt) && stress_load(&st->hits)
           && stress_load(&st->due) && stress_load(&st->maps) > 1
           && stress_load(&st->erased);
}


/* processor time of all threads, seconds */

static time_t
used(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec;
}


int
main(int argc, char **argv)
{
    int               i;
    uint64_t          ids;
    pthread_t         t[THREADS];
    us_store_t       *s;
    us_store_conf_t   conf;
    struct timespec   ts = { argc > 1 ? atoi(argv[1]) : 5, 0 };
    struct timespec   look = { 0, 100000000 };

    mem = mmap(NULL, ZONE, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
               0);
    st = calloc(1, sizeof(stress_t));

    memset(&conf, 0, sizeof(conf));
    memcpy(conf.hash_key, "threadsthreadsth", 16);
    conf.nmarks = 1;
    conf.marks[0] = us_string("visited");
    conf.ring = 1 << 18;
    conf.sites = 1;
    conf.revisit = 1;
    conf.is_shard = 1;

    if (us_store_format(mem, ZONE, &conf) != 0) {
        return 2;
    }

    s = us_store_open(mem, &mutex_lock);
    stress_adopt(s, st);

    for (i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, i == 0 ? journal : i == 1 ? trainer
                                    : i <= 1 + WRITERS ? writer : reader,
                       (void *) (uintptr_t) (i + 1));
    }

    nanosleep(&ts, NULL);

    while (!met() && used() < ts.tv_sec * LATE * THREADS) {
        nanosleep(&look, NULL);
    }

    stress_store(&stop, 1);

    for (i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }

    ids = stress_verify(s, st);
    us_store_close(s);

    printf("%lu ids, %u models, %lu adds, %lu deletes, %lu due, %lu maps, "
           "%lu look-ups, %lu hits of hot tables, %lu failed\n",
           (unsigned long) ids, learnt, (unsigned long) st->adds,
           (unsigned long) st->deletes, (unsigned long) st->due,
           (unsigned long) st->maps, (unsigned long) st->looks,
           (unsigned long) st->hits, (unsigned long) st->failed);

    i = st->failed != 0 || ids == 0 || !met();
    free(st);

    return i;
}
