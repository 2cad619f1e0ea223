
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
