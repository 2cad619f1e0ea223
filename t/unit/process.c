
/*
 * Identities of processes: who is alive, who is dead, and that another process
 * with the same pid is not taken for the first.
 */


#include "us_base.h"
#include "us_process.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>


#define TICK  ((us_process_t) 1 << US_PROCESS_PID_BITS)


/* a child that runs body(), writes its identity, and waits to be killed */

static pid_t
child(void (*body)(void), us_process_t *word)
{
    int    fd[2];
    pid_t  pid;

    assert_int_equal(pipe(fd), 0);
    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        *word = us_process_self();

        if (write(fd[1], word, sizeof(*word)) == sizeof(*word)) {
            body();
        }

        _exit(0);
    }

    assert_int_equal(read(fd[0], word, sizeof(*word)), sizeof(*word));
    close(fd[0]);
    close(fd[1]);

    return pid;
}


static void
forever(void)
{
    for ( ;; ) {
        pause();
    }
}


static void *
thread(void *data)
{
    forever();

    return NULL;
}


/* the first thread ends, another goes on */

static void
headless(void)
{
    pthread_t  t;

    if (pthread_create(&t, NULL, thread, NULL) == 0) {
        pthread_exit(NULL);
    }
}


/* the state of a child, once it is no longer what it is when it starts */

static void
await_state(pid_t pid, char want)
{
    char   path[32], buf[256], *p;
    FILE  *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);

    for ( ;; ) {
        f = fopen(path, "r");
        assert_non_null(f);
        p = fgets(buf, sizeof(buf), f);
        fclose(f);
        assert_non_null(p);

        p = strrchr(buf, ')');
        assert_non_null(p);

        if (p[2] == want) {
            return;
        }

        usleep(1000);
    }
}


static void
self(void **state)
{
    us_process_t  me;

    me = us_process_self();

    assert_int_equal(us_process_pid(me), getpid());
    assert_true(me >= TICK);
    assert_true(us_process_self() == me);
    assert_true(us_process_alive(me));
    assert_false(us_process_alive(0));
}


static void
lives_and_dies(void **state)
{
    pid_t         pid;
    us_process_t  word;

    pid = child(forever, &word);

    assert_int_equal(us_process_pid(word), pid);
    assert_true(us_process_alive(word));

    kill(pid, SIGKILL);
    await_state(pid, 'Z');
    assert_false(us_process_alive(word));

    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(us_process_alive(word));
}


/* the pid is in use, by a process that began at another time */

static void
reused(void **state)
{
    us_process_t  me;

    me = us_process_self();

    assert_false(us_process_alive(me - TICK));
    assert_false(us_process_alive(me + TICK));
}


static void
odd_name(void **state)
{
    pid_t         pid;
    us_process_t  word;

    /* children inherit it */

    assert_int_equal(prctl(PR_SET_NAME, ") Z 1 1 (a b"), 0);
    pid = child(forever, &word);
    assert_int_equal(prctl(PR_SET_NAME, "process"), 0);

    assert_true(word >= TICK);
    assert_true(us_process_alive(word));
    assert_false(us_process_alive(word - TICK));

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}


/* a zombie that has a thread left is at work */

static void
leader_gone(void **state)
{
    pid_t         pid;
    us_process_t  word;

    pid = child(headless, &word);
    await_state(pid, 'Z');

    assert_true(us_process_alive(word));

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(us_process_alive(word));
}


/* where there is no /proc: the pid alone */

static void
pid_alone(void **state)
{
    pid_t         pid;
    us_process_t  word;

    pid = child(forever, &word);
    word = (us_process_t) pid;

    assert_true(us_process_alive(word));

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(us_process_alive(word));
}


/* a tree of files like /proc and /sys has the limits */

static void
put(const char *root, const char *path, const char *text)
{
    int    n;
    char   cmd[600];

    n = snprintf(cmd, sizeof(cmd), "mkdir -p $(dirname %s/%s) && "
                 "printf '%s' > %s/%s", root, path, text, root, path);
    assert_in_range(n, 1, sizeof(cmd) - 1);
    assert_int_equal(system(cmd), 0);
}


static void
memory(void **state)
{
    char      root[] = "/tmp/us_process.XXXXXX", cmd[80];
    uint64_t  all;

    (void) state;

    assert_non_null(mkdtemp(root));
    all = us_process_memory(root);
    assert_true(all == (uint64_t) sysconf(_SC_PHYS_PAGES)
                       * (uint64_t) sysconf(_SC_PAGESIZE));

    /* v2: the least one up to the root; "max" is none */

    put(root, "proc/self/cgroup", "0::/a/b\n");
    put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_true(us_process_memory(root) == all);
    put(root, "sys/fs/cgroup/a/memory.max", "3000000\n");
    assert_true(us_process_memory(root) == 3000000);
    put(root, "sys/fs/cgroup/a/b/memory.max", "2000000\n");
    assert_true(us_process_memory(root) == 2000000);
    put(root, "sys/fs/cgroup/memory.max", "1000000\n");
    assert_true(us_process_memory(root) == 1000000);

    /* a path that only the host has */

    put(root, "proc/self/cgroup", "0::/docker/0123\n");
    assert_true(us_process_memory(root) == 1000000);

    /* v1: of the controller that it has in its line; "/" */

    put(root, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "700000\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "9223372036854771712\n");
    put(root, "proc/self/cgroup", "12:pids:/x\n3:cpu,memory:/x\n0::/\n");
    assert_true(us_process_memory(root) == 700000);
    put(root, "proc/self/cgroup", "12:pids,memory2:/x\n3:hugetlb:/x\n");
    assert_true(us_process_memory(root) == all);

    (void) snprintf(cmd, sizeof(cmd), "rm -r %s", root);
    assert_int_equal(system(cmd), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(self),
        cmocka_unit_test(lives_and_dies),
        cmocka_unit_test(reused),
        cmocka_unit_test(odd_name),
        cmocka_unit_test(leader_gone),
        cmocka_unit_test(pid_alone),
        cmocka_unit_test(memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
