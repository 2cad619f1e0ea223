
/*
 * Records which functions of the module the event loop enters and leaves: a
 * library for LD_PRELOAD, beside a module that was compiled with
 * -finstrument-functions.  US_VISITS is a file of 16 MiB, which all processes
 * map:
 *
 *     word 0    number of words that follow
 *     others    address of a function; bit 63: left
 *
 * Functions of other threads than a process's first one are left out.
 */


#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


#define SIZE  (16 * 1024 * 1024)


void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);


static uint64_t  *words;


__attribute__((constructor))
static void
visits_open(void)
{
    int   fd;
    void *p;

    fd = open(getenv("US_VISITS"), O_RDWR|O_CLOEXEC);
    p = mmap(NULL, SIZE, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
    words = p == MAP_FAILED ? NULL : p;
}


static void
visits_record(void *function, uint64_t bit)
{
    uint64_t  n;

    if (words == NULL || gettid() != getpid()) {
        return;
    }

    n = __atomic_add_fetch(words, 1, __ATOMIC_RELAXED);

    if (n < SIZE / sizeof(uint64_t)) {
        words[n] = (uint64_t) (uintptr_t) function | bit;
    }
}


void
__cyg_profile_func_enter(void *function, void *caller)
{
    (void) caller;
    visits_record(function, 0);
}


void
__cyg_profile_func_exit(void *function, void *caller)
{
    (void) caller;
    visits_record(function, 1ULL << 63);
}
