
/*
 * A writer that dies after each of its instructions, one by one.
 *
 * For each kind of change a store is prepared, in shared memory.  A child does
 * the change; this process runs it instruction by instruction (ptrace) from
 * the moment when it takes the lock.  Whenever an instruction has changed the
 * zone, a copy of it is what the child would have left, had it been killed
 * there.  The copy is looked at as a reader, who must find all that was there
 * and nothing that is not whole; and as the next writer, who completes the
 * change or finds it undone, does it again, and goes on.
 *
 *     steps [NAME]
 */


#include "us_base.h"
#include "store/us_store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>


#define ZONE   ((size_t) 480 << 10)
#define RING   ((size_t) 1 << 16)


/* what the child does to a store that has `before` URLs */

typedef struct {
    const char  *name;
    unsigned     before;
    void       (*change)(us_store_t *s, unsigned before);
    int        (*done)(us_store_t *s, unsigned before);
} change_t;


static uint8_t  *zone;
static uint8_t  *trial;
static int      *locked;
static int       trapped;
static unsigned  failures;


static void
lock(void *data)
{
    *locked = 1;

    if (trapped) {
        raise(SIGSTOP);
    }
}


static void
unlock(void *data)
{
    *locked = 0;
}


static const us_store_lock_t  locks = { lock, unlock, NULL };


static size_t
url(unsigned i, char *buf)
{
    size_t  n;

    n = sprintf(buf, "http://site%u.test/page/%u", i / 10, i);

    if (i % 100 == 77) {
        memset(buf + n, 'x', 3000);
        n += 3000;
    }

    return n;
}


static us_store_item_t
add(us_store_t *s, unsigned i)
{
    static char      buf[4096];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_add(s, &it, 1);

    return it;
}


static uint64_t
seen(us_store_t *s, unsigned i)
{
    char             buf[4096];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_seen(s, &it, 1);

    return it.id;
}


static void
change_add(us_store_t *s, unsigned before)
{
    add(s, before);
}


static int
done_add(us_store_t *s, unsigned before)
{
    return us_store_next_id(s) == before + 1;
}


static void
change_delete(us_store_t *s, unsigned before)
{
    int       was;
    uint64_t  lsn;

    us_store_delete(s, before / 2, &was, &lsn);
}


static int
done_delete(us_store_t *s, unsigned before)
{
    return us_store_deleted(s, before / 2);
}


static void
change_mark(us_store_t *s, unsigned before)
{
    uint64_t  lsn;

    us_store_mark(s, 0, before / 2, 1, &lsn);
}


static int
done_mark(us_store_t *s, unsigned before)
{
    return us_store_marked(s, 0, before / 2);
}


/*
 * A line of lengths has 56 records.  Number 77 is very long.  The index has
 * 2 leaves, and splits one when it has 128 entries (URLs and sites), 192, 256
 * and so on; at 512 for the first time one that must be hashed again.
 */

static const change_t  changes[] = {
    { "first add", 0, change_add, done_add },
    { "add", 30, change_add, done_add },
    { "add, new line", 56, change_add, done_add },
    { "add, very long", 77, change_add, done_add },
    { "add, new site", 90, change_add, done_add },
    { "add, split", 116, change_add, done_add },
    { "add, split", 232, change_add, done_add },
    { "add, split, hash again", 465, change_add, done_add },
    { "delete", 100, change_delete, done_delete },
    { "delete", 3, change_delete, done_delete },
    { "mark", 100, change_mark, done_mark },
    { NULL, 0, NULL, NULL }
};


static void
fail(const change_t *c, unsigned n, const char *what, unsigned i)
{
    if (failures++ < 10) {
        fprintf(stderr, "%s, killed after %u: %s %u\n", c->name, n, what, i);
    }
}


/* everything that was there is there, whole */

static void
check(us_store_t *s, const change_t *c, unsigned n, unsigned ids)
{
    char               want[4096];
    size_t             len, wlen;
    uint8_t            buf[US_URL_MAX + 8];
    unsigned           i;
    us_store_status_t  status;

    for (i = 0; i < ids; i++) {
        status = us_store_get(s, i, buf, &len);
        wlen = url(i, want);

        if (status == US_DELETED) {
            if (c->change != change_delete || i != c->before / 2) {
                fail(c, n, "deleted", i);
            }

            continue;
        }

        if (status != US_OK || len != wlen || memcmp(buf, want, len) != 0) {
            fail(c, n, "wrong text of", i);
        }

        if (seen(s, i) != i && !us_store_deleted(s, i)) {
            fail(c, n, "not seen", i);
        }
    }
}


/* a copy of the zone after n instructions; done: the child got to the end */

static int
try(const change_t *c, unsigned n, int ended)
{
    int          done, was;
    unsigned     i;
    uint64_t     lsn;
    us_store_t  *s;

    s = us_store_open(trial, &locks);

    /* a reader, before any writer comes */

    check(s, c, n, us_store_next_id(s));

    /* any other writer: completes it, or not */

    us_store_mark(s, 0, 1 << 30, 1, &lsn);
    done = c->done(s, c->before);

    if (ended && !done) {
        fail(c, n, "answered, but not done", 0);
    }

    /* the same again, and others */

    c->change(s, c->before);

    if (!c->done(s, c->before)) {
        fail(c, n, "cannot be done again", 0);
    }

    for (i = c->before; i < c->before + 150; i++) {
        add(s, i);
    }

    us_store_delete(s, c->before + 5, &was, &lsn);
    add(s, c->before + 5);

    if (us_store_next_id(s) != c->before + 151) {
        fail(c, n, "ids", us_store_next_id(s));
    }

    check(s, c, n, c->before + 5);

    us_store_close(s);

    return done;
}


/* the child has read all URLs before: its tables for decoding are built */

static pid_t
start(const change_t *c)
{
    int          status;
    pid_t        pid;
    size_t       len;
    uint8_t      buf[US_URL_MAX + 8];
    unsigned     i;
    us_store_t  *s;

    pid = fork();

    if (pid == 0) {
        s = us_store_open(zone, &locks);

        for (i = 0; s && i < c->before; i++) {
            us_store_get(s, i, buf, &len);
        }

        trapped = 1;

        if (s && ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
            c->change(s, c->before);
        }

        _exit(0);
    }

    /* it stops in lock() */

    waitpid(pid, &status, 0);

    if (!WIFSTOPPED(status)) {
        fprintf(stderr, "no ptrace\n");
        exit(2);
    }

    return pid;
}


static void
steps(const change_t *c)
{
    int          status;
    pid_t        pid;
    uint8_t     *last;
    unsigned     i, n, tries, done;
    us_store_t  *s;

    us_store_conf_t  conf = {
        .hash_key = "stepsstepssteps",
        .marks = { us_string("visited") },
        .nmarks = 1,
        .sites = 1,
        .ring = RING
    };

    memset(zone, 0, ZONE);

    if (us_store_format(zone, ZONE, &conf) != 0) {
        fprintf(stderr, "no store\n");
        exit(2);
    }

    s = us_store_open(zone, &locks);

    for (i = 0; i < c->before; i++) {
        add(s, i);
    }

    us_store_set_written(s, us_store_published(s));
    us_store_close(s);

    last = malloc(ZONE);
    memcpy(last, zone, ZONE);

    pid = start(c);
    tries = 0;
    done = 0;

    for (n = 1; *locked; n++) {

        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == -1
            || waitpid(pid, &status, 0) == -1 || !WIFSTOPPED(status))
        {
            fail(c, n, "the child ended", 0);
            break;
        }

        if (memcmp(last, zone, ZONE) != 0) {
            memcpy(last, zone, ZONE);
            memcpy(trial, zone, ZONE);
            *locked = 0;
            done += try(c, n, 0);
            *locked = 1;
            tries++;
        }
    }

    memcpy(trial, zone, ZONE);
    done += try(c, n, 1);

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    *locked = 0;
    free(last);

    if (tries < 5) {
        fail(c, n, "changes seen", tries);
    }

    printf("%-26s %4u URLs: %6u instructions, %4u changes of memory, "
           "%u undone, %u done\n",
           c->name, c->before, n, tries, tries + 1 - done, done);
}


int
main(int argc, char **argv)
{
    const change_t  *c;

    zone = mmap(NULL, ZONE + 4096, PROT_READ|PROT_WRITE,
                MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    locked = (int *) (zone + ZONE);
    trial = mmap(NULL, ZONE, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                 -1, 0);

    for (c = changes; c->name; c++) {
        if (argc < 2 || strcmp(argv[1], c->name) == 0) {
            steps(c);
            fflush(stdout);
        }
    }

    printf("%u failures\n", failures);

    return failures != 0;
}
