
/*
 * Leaves the first line of a file in memory that it frees, some of it in blocks
 * that a second thread keeps; prints "left", and waits for a byte of standard
 * input; wipes that memory, prints "wiped", and waits again.
 */


#include "us_wipe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define BLOCKS  4000
#define KEPT    7


static pthread_barrier_t  turn;


/* blocks of all sizes, of which every second one is freed */

static void
leave(const char *text, size_t len)
{
    size_t     i, k, n;
    unsigned   seed;

    static char  *blocks[BLOCKS];

    for (i = 0, seed = 1; i < BLOCKS; i++) {
        seed = seed * 1103515245 + 12345;
        n = len + (seed >> 8) % (i % 16 ? 3000 : 300000);
        blocks[i] = malloc(n);

        for (k = 0; k + len <= n; k += len) {
            memcpy(blocks[i] + k, text, len);
        }

        if (i % 2) {
            memset(blocks[i], 'x', n);
        }
    }

    for (i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
}


static void
say(const char *word)
{
    puts(word);
}


/* its frame is below that of main() when it has returned */

__attribute__((noinline)) static void
fill(const char *name)
{
    char    text[4096];
    FILE   *f;

    f = fopen(name, "r");

    if (f && fgets(text, sizeof(text), f)) {
        leave(text, strlen(text));
    }

    if (f) {
        fclose(f);
    }
}


/* takes blocks as they are, and frees them */

static void *
keep(void *data)
{
    void      *blocks[KEPT];
    unsigned   n;

    for (n = 0; n < KEPT; n++) {
        blocks[n] = malloc(1000);
    }

    while (n) {
        free(blocks[--n]);
    }

    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    us_wipe_thread();
    pthread_barrier_wait(&turn);

    /* until the process ends, as others would get them */

    pthread_barrier_wait(&turn);

    return NULL;
}


int
main(int argc, char **argv)
{
    pthread_t  thread;

    /* a buffer that is allocated later would keep what was in that memory */

    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IONBF, 0);

    us_wipe_init();
    fill(argc > 1 ? argv[1] : "");

    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, keep, NULL);
    pthread_barrier_wait(&turn);

    say("left");
    getchar();

    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);

    us_wipe_stack();
    say(us_wipe_heap() == 0 ? "wiped" : "not wiped");
    getchar();

    return 0;
}
