
/*
 * See us_peer.h.
 */


#include "us_peer.h"
#include "../us_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>


#define US_PEER_HEAD    16384         /* bytes of the reply's head */
#define US_PEER_BUFFER  (256 * 1024)


void
us_peer_init(us_peer_t *p, int (*stopping)(void *data), void *data)
{
    memset(p, 0, sizeof(us_peer_t));
    p->stopping = stopping;
    p->data = data;
    p->fd = -1;
}


void
us_peer_close(us_peer_t *p)
{
    if (p->fd != -1) {
        (void) close(p->fd);
        p->fd = -1;
    }

    p->pos = 0;
    p->len = 0;
}


void
us_peer_wipe(us_peer_t *p)
{
    if (p->buf) {
        explicit_bzero(p->buf, p->pos);
        explicit_bzero(p->buf + p->len, p->size - p->len);
    }
}


void
us_peer_free(us_peer_t *p)
{
    us_peer_close(p);
    free(p->buf);
    p->buf = NULL;
    p->size = 0;
}


static int
us_peer_fail(us_peer_t *p, const char *what, int err)
{
    (void) snprintf(p->error, sizeof(p->error), "%s%s%s", what,
                    err ? ": " : "", err ? strerror(err) : "");

    return -1;
}


/* a call has taken US_PEER_STEP ms at most: whether it may go on */

static int
us_peer_waits(const us_peer_t *p, uint64_t until)
{
    return us_clock_running() < until && !p->stopping(p->data);
}


static int
us_peer_connect(us_peer_t *p, const struct sockaddr *sa, socklen_t len)
{
    int             on;
    uint64_t        until;
    struct timeval  step = { 0, US_PEER_STEP * 1000 };

    p->fd = socket(sa->sa_family, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (p->fd == -1) {
        return us_peer_fail(p, "socket() failed", errno);
    }

    on = 1;
    (void) setsockopt(p->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));

    if (setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &step, sizeof(step)) == -1
        || setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step))
           == -1)
    {
        return us_peer_fail(p, "setsockopt() failed", errno);
    }

    until = us_clock_running() + US_PEER_CONNECT;

    while (connect(p->fd, sa, len) == -1) {

        if (errno != EINPROGRESS && errno != EALREADY && errno != EINTR) {
            return us_peer_fail(p, "connect() failed", errno);
        }

        if (!us_peer_waits(p, until)) {
            return us_peer_fail(p, "no connection in time", 0);
        }
    }

    return 0;
}


static int
us_peer_send(us_peer_t *p, const char *text, size_t len)
{
    ssize_t   n;
    uint64_t  until;

    until = us_clock_running() + US_PEER_ANSWER;

    while (len) {
        n = send(p->fd, text, len, MSG_NOSIGNAL);

        if (n > 0) {
            text += n;
            len -= (size_t) n;

        } else if (n == -1 && errno != EAGAIN && errno != EINTR) {
            return us_peer_fail(p, "send() failed", errno);

        } else if (!us_peer_waits(p, until)) {
            return us_peer_fail(p, "the request was not taken in time", 0);
        }
    }

    return 0;
}


/* reads the head of the reply; what follows it stays in the buffer */

static int
us_peer_head(us_peer_t *p)
{
    int        rc;
    uint8_t   *end;
    uint64_t   until;

    until = us_clock_running() + US_PEER_ANSWER;
    p->heard = us_clock_running();

    for ( ;; ) {
        rc = us_peer_read(p, US_PEER_HEAD);

        if (rc == -1) {
            return -1;
        }

        end = p->len ? memmem(p->buf, p->len, "\r\n\r\n", 4) : NULL;

        if (end) {
            break;
        }

        if (p->len >= US_PEER_HEAD || !us_peer_waits(p, until)) {
            return us_peer_fail(p, "there is no head of a reply", 0);
        }
    }

    *end = '\0';

    if (sscanf((char *) p->buf, "HTTP/1.%*1[01] %3u", &p->status) != 1) {
        return us_peer_fail(p, "the reply is not HTTP", 0);
    }

    p->pos = (size_t) (end - p->buf) + 4;

    return 0;
}


/* room for `need` bytes from pos on, and for one more at least */

static int
us_peer_room(us_peer_t *p, size_t need)
{
    size_t    size;
    uint8_t  *buf;

    if (p->pos) {
        memmove(p->buf, p->buf + p->pos, p->len - p->pos);
        p->len -= p->pos;
        p->pos = 0;
    }

    size = need > p->len ? need : p->len + 1;
    size = size < US_PEER_BUFFER ? US_PEER_BUFFER : size;

    if (size <= p->size && p->len < p->size) {
        return 0;
    }

    buf = realloc(p->buf, size + 1);

    if (buf == NULL) {
        return -1;
    }

    p->buf = buf;
    p->size = size;

    return 0;
}


/* the body of a refusal as the error: what of it comes in a second */

static int
us_peer_refusal(us_peer_t *p)
{
    size_t    i, len;
    char     *detail, *end;
    uint64_t  until;

    until = us_clock_running() + 1000;

    while (us_clock_running() < until && p->len - p->pos < US_PEER_HEAD
           && us_peer_read(p, US_PEER_HEAD) != -1)
    {
        /* void */
    }

    len = p->len - p->pos;

    if (us_peer_room(p, len + 1) == -1) {
        len = 0;
    }

    detail = NULL;

    if (len) {
        p->buf[p->pos + len] = '\0';
        detail = strstr((char *) p->buf + p->pos, "\"detail\":\"");
    }

    p->detail = (detail != NULL);

    if (detail) {
        detail += sizeof("\"detail\":\"") - 1;
        end = detail;

        while (*end && *end != '"') {
            end += *end == '\\' && end[1] ? 2 : 1;
        }

        *end = '\0';
    }

    (void) snprintf(p->error, sizeof(p->error), "it answered %u%s%.250s",
                    p->status, detail ? ": " : "", detail ? detail : "");

    for (i = 0; p->error[i]; i++) {
        if ((unsigned char) p->error[i] < 0x20) {
            p->error[i] = '?';
        }
    }

    us_peer_close(p);

    return 0;
}


int
us_peer_get(us_peer_t *p, const us_primary_t *primary, unsigned n,
    const char *target)
{
    int   len;
    char  text[2048];

    us_peer_close(p);

    len = snprintf(text, sizeof(text), "GET %s/%s HTTP/1.0\r\nHost: %s\r\n"
                   "Connection: close\r\n\r\n", primary->path, target,
                   primary->host);

    if (len < 0 || (size_t) len >= sizeof(text)) {
        return us_peer_fail(p, "the request is too long", 0);
    }

    n %= primary->naddrs;

    if (us_peer_connect(p, primary->addrs[n], primary->lens[n]) == -1
        || us_peer_send(p, text, (size_t) len) == -1
        || us_peer_head(p) == -1)
    {
        us_peer_close(p);
        return -1;
    }

    return p->status == 200 ? 0 : us_peer_refusal(p);
}


int
us_peer_read(us_peer_t *p, size_t need)
{
    ssize_t  n;

    if (us_peer_room(p, need) == -1) {
        return us_peer_fail(p, "no memory", 0);
    }

    n = recv(p->fd, p->buf + p->len, p->size - p->len, 0);

    if (n > 0) {
        p->len += (size_t) n;
        p->heard = us_clock_running();
        return 1;
    }

    if (n == 0) {
        return us_peer_fail(p, "the connection was closed", 0);
    }

    if (errno != EAGAIN && errno != EINTR) {
        return us_peer_fail(p, "recv() failed", errno);
    }

    return us_clock_running() - p->heard > US_PEER_SILENT
           ? us_peer_fail(p, "nothing came for 10 seconds", 0) : 0;
}
