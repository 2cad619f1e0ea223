
/*
 * Leaves the first line of a file in memory that it frees, prints "left", and
 * waits for a byte of standard input; wipes that memory, prints "wiped", and
 * waits again.
 */


#include "us_wipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define BLOCKS  4000


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


int
main(int argc, char **argv)
{
    /* a buffer that is allocated later would keep what was in that memory */

    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IONBF, 0);

    us_wipe_init();
    fill(argc > 1 ? argv[1] : "");

    say("left");
    getchar();

    us_wipe_stack();
    say(us_wipe_heap() == 0 ? "wiped" : "not wiped");
    getchar();

    return 0;
}
