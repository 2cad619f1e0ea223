
/*
 * One GET to a server of the test's own: what it may answer, and what it may
 * not.
 */

#include "life/us_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


/* a server that answers one request with these bytes, in pieces */

typedef struct {
    int                     fd;
    struct sockaddr_in      sin;
    const char             *reply;
    size_t                  len;
    size_t                  piece;
    char                    request[4096];
    pthread_t               thread;
    const struct sockaddr  *addrs[1];
    socklen_t               lens[1];
    us_primary_t            primary;
} fake_server_t;


static int  fake_stop;


static int
fake_stopping(void *data)
{
    return fake_stop;
}


static void *
server_run(void *data)
{
    fake_server_t  *s = data;

    int      fd;
    size_t   n, at;
    ssize_t  got;

    fd = accept(s->fd, NULL, NULL);

    if (fd == -1) {
        return NULL;
    }

    got = recv(fd, s->request, sizeof(s->request) - 1, 0);
    s->request[got > 0 ? got : 0] = '\0';

    for (at = 0; at < s->len; at += n) {
        n = s->piece < s->len - at ? s->piece : s->len - at;

        if (send(fd, s->reply + at, n, MSG_NOSIGNAL) != (ssize_t) n) {
            break;
        }

        if (s->len > s->piece) {
            usleep(1000);
        }
    }

    (void) close(fd);

    return NULL;
}


static void
server_start(fake_server_t *s, const char *reply, size_t len, size_t piece)
{
    socklen_t  size;

    memset(s, 0, sizeof(fake_server_t));

    s->reply = reply;
    s->len = len;
    s->piece = piece;
    s->fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);
    s->sin.sin_family = AF_INET;
    s->sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof(s->sin);

    assert_int_equal(bind(s->fd, (struct sockaddr *) &s->sin, size), 0);
    assert_int_equal(listen(s->fd, 1), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *) &s->sin, &size),
                     0);

    s->addrs[0] = (struct sockaddr *) &s->sin;
    s->lens[0] = size;
    s->primary.name = "http://test/a";
    s->primary.host = "test";
    s->primary.path = "/a";
    s->primary.addrs = s->addrs;
    s->primary.lens = s->lens;
    s->primary.naddrs = 1;

    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}


static void
server_end(fake_server_t *s)
{
    (void) shutdown(s->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void) close(s->fd);
}


/* a request whose reply is the text; the result of us_peer_get() */

static int
ask(us_peer_t *p, const char *reply, size_t piece)
{
    int            rc;
    fake_server_t  s;

    server_start(&s, reply, strlen(reply), piece);
    us_peer_init(p, fake_stopping, NULL);
    rc = us_peer_get(p, &s.primary, 7, "log");

    if (rc == 0) {
        assert_string_equal(s.request, "GET /a/log HTTP/1.0\r\nHost: test\r\n"
                            "Connection: close\r\n\r\n");
    }

    server_end(&s);

    return rc;
}


static void
test_body(void **state)
{
    us_peer_t  p;

    assert_int_equal(ask(&p, "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 3), 0);
    assert_int_equal(p.status, 200);

    while (us_peer_read(&p, 10) != -1) {
        /* void */
    }

    assert_string_equal(p.error, "the connection was closed");
    assert_int_equal(p.len - p.pos, 4);
    assert_memory_equal(p.buf + p.pos, "body", 4);
    us_peer_free(&p);
}


static void
test_long(void **state)
{
    size_t         i, len, need;
    char          *text;
    us_peer_t      p;
    fake_server_t  s;

    len = 3000000;
    text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    memcpy(text, "HTTP/1.0 200 OK\r\n\r\n", 19);

    for (i = 19; i < len; i++) {
        text[i] = (char) (i * 7);
    }

    server_start(&s, text, len, len);
    us_peer_init(&p, fake_stopping, NULL);
    assert_int_equal(us_peer_get(&p, &s.primary, 0, "log"), 0);

    /* frames of 1,000,000 bytes, taken whole */

    for (i = 19, need = 1000000; i + need <= len; i += need) {

        while (p.len - p.pos < need) {
            assert_int_not_equal(us_peer_read(&p, need), -1);
        }

        assert_memory_equal(p.buf + p.pos, text + i, need);
        p.pos += need;
    }

    us_peer_free(&p);
    server_end(&s);
    free(text);
}


static void
test_refusals(void **state)
{
    us_peer_t  p;

    assert_int_equal(ask(&p, "HTTP/1.1 410 Gone\r\n\r\n{\"status\":410,"
                             "\"detail\":\"no \\\"such\\\" LSN\",\"x\":1}", 5),
                     0);
    assert_int_equal(p.status, 410);
    assert_string_equal(p.error, "it answered 410: no \\\"such\\\" LSN");
    assert_int_equal(p.detail, 1);
    us_peer_free(&p);

    assert_int_equal(ask(&p, "HTTP/1.1 503 x\r\n\r\n<html>", 100), 0);
    assert_string_equal(p.error, "it answered 503");
    assert_int_equal(p.detail, 0);
    us_peer_free(&p);

    assert_int_equal(ask(&p, "HTTP/1.1 500 x\r\n\r\n\"detail\":\"a\nb\\", 100),
                     0);
    assert_string_equal(p.error, "it answered 500: a?b\\");
    us_peer_free(&p);
}


static void
test_no_http(void **state)
{
    char       *text;
    us_peer_t   p;

    assert_int_equal(ask(&p, "", 1), -1);
    assert_string_equal(p.error, "the connection was closed");
    us_peer_free(&p);

    assert_int_equal(ask(&p, "SSH-2.0\r\n\r\n", 100), -1);
    assert_string_equal(p.error, "the reply is not HTTP");
    us_peer_free(&p);

    assert_int_equal(ask(&p, "HTTP/1.1 200", 1), -1);
    us_peer_free(&p);

    text = malloc(40001);
    assert_non_null(text);
    memset(text, 'x', 40000);
    text[40000] = '\0';
    assert_int_equal(ask(&p, text, 40000), -1);
    assert_string_equal(p.error, "there is no head of a reply");
    us_peer_free(&p);
    free(text);
}


/* what a system call has said, in words of the C library */

static void
refused(const us_peer_t *p, const char *call, int err)
{
    char  text[128];

    (void) snprintf(text, sizeof(text), "%s%s", call, strerror(err));
    assert_string_equal(p->error, text);
}


/* nobody listens; the thread is to stop */

static void
test_no_server(void **state)
{
    char           target[8192];
    us_peer_t      p;
    fake_server_t  s;
    struct rlimit  was, none;

    server_start(&s, "", 0, 1);
    server_end(&s);
    us_peer_init(&p, fake_stopping, NULL);
    assert_int_equal(us_peer_get(&p, &s.primary, 0, "log"), -1);
    refused(&p, "connect() failed: ", ECONNREFUSED);
    assert_int_equal(p.fd, -1);

    fake_stop = 1;
    assert_int_equal(us_peer_get(&p, &s.primary, 0, "log"), -1);
    fake_stop = 0;

    /* an address for which the system has no connection; no descriptor */

    s.sin.sin_addr.s_addr = INADDR_BROADCAST;
    assert_int_equal(us_peer_get(&p, &s.primary, 0, "log"), -1);
    assert_non_null(strstr(p.error, "connect() failed: "));
    assert_int_equal(p.fd, -1);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(us_peer_get(&p, &s.primary, 0, "log"), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    refused(&p, "socket() failed: ", EMFILE);
    assert_int_equal(p.fd, -1);

    memset(target, 'x', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    assert_int_equal(us_peer_get(&p, &s.primary, 0, target), -1);
    assert_string_equal(p.error, "the request is too long");
    us_peer_free(&p);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_http),
        cmocka_unit_test(test_no_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
