
/*
 * Threads that ask for the same URLs at the same time: in each period, each
 * URL is due to one of them, and to its retry.  For ThreadSanitizer, too.
 *
 *     claims PERIODS
 *
 * In each period the clock has advanced, and all threads begin at once, most of
 * them with the same URL.
 */


#include "stress.h"
#include "mutex.h"

#include <sys/mman.h>


#define THREADS  4
#define URLS     500
#define OLDER    2
#define ZONE     ((size_t) 64 << 20)


static void               *mem;
static unsigned            periods;
static uint64_t            now;
static uint64_t            due[URLS], asked, other;
static pthread_barrier_t   barrier;


/* all URLs, in some order, in batches of several sizes */

static void
ask(us_store_t *s, uint64_t *seed)
{
    char             text[64][40];
    size_t           i, k, n, first;
    unsigned         of[64];
    us_store_key_t   key;
    us_store_item_t  items[64], again[64];

    first = stress_random(seed) % 3 ? 0 : stress_random(seed) % URLS;

    for (i = 0; i < URLS; i += n) {
        n = 1 + stress_random(seed) % 64;
        n = n < URLS - i ? n : URLS - i;

        for (k = 0; k < n; k++) {
            of[k] = (unsigned) ((first + i + k) % URLS);
            memset(&items[k], 0, sizeof(us_store_item_t));
            items[k].url.data = (uint8_t *) text[k];
            items[k].url.len = sprintf(text[k], "http://hot.test/%u", of[k]);
        }

        /* every other batch has a key, and is sent once more */

        key.name = stress_random(seed) | 1;
        key.until = now + 1;
        memcpy(again, items, sizeof(items));
        us_store_add_key(s, items, n, OLDER, i % 2 ? &key : NULL);

        if (i % 2) {
            us_store_add_key(s, again, n, OLDER, &key);
        }

        for (k = 0; k < n; k++) {
            stress_count(&asked);

            if (i % 2 && again[k].status != items[k].status) {
                stress_count(&other);
            }

            if (items[k].status == US_DUE || items[k].status == US_NEW) {
                stress_count(&due[of[k]]);
            }
        }
    }
}


static void *
thread(void *data)
{
    unsigned     i;
    uint64_t     seed;
    us_store_t  *s;

    s = us_store_open(mem, &mutex_lock);
    seed = (uintptr_t) data;

    for (i = 0; i < periods; i++) {
        pthread_barrier_wait(&barrier);
        us_store_time(s, now);
        ask(s, &seed);
        pthread_barrier_wait(&barrier);
    }

    us_store_close(s);

    return NULL;
}


int
main(int argc, char **argv)
{
    unsigned          i, k;
    uint64_t          wrong;
    pthread_t         t[THREADS];
    us_store_conf_t   conf;

    periods = argc > 1 ? (unsigned) atoi(argv[1]) : 100;

    memset(&conf, 0, sizeof(conf));
    memcpy(conf.hash_key, "claimsclaimsclai", 16);
    conf.revisit = 1;
    conf.keys = 1 << 20;

    mem = mmap(NULL, ZONE, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
               0);

    if (mem == MAP_FAILED || us_store_format(mem, ZONE, &conf) != 0) {
        fprintf(stderr, "no store\n");
        return 2;
    }

    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    now = 1000000000;

    for (i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, thread, (void *) (uintptr_t) (i + 1));
    }

    wrong = 0;

    for (i = 0; i < periods; i++) {
        now += OLDER + 1;
        memset(due, 0, sizeof(due));

        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);

        for (k = 0; k < URLS; k++) {
            if (due[k] != 1 && wrong++ < 5) {
                fprintf(stderr, "period %u: URL %u was due %lu times\n", i, k,
                        (unsigned long) due[k]);
            }
        }
    }

    for (i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }

    printf("%u periods, %lu answers, %lu failed, %lu others to a retry\n",
           periods, (unsigned long) asked, (unsigned long) wrong,
           (unsigned long) other);

    return wrong != 0 || other != 0;
}
