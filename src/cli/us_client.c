
/*
 * See us_client.h.
 */


#include "us_client.h"
#include "us_cli.h"
#include "../us_text.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


#define US_CLIENT_TIMEOUT  60         /* seconds without a byte */

/* seconds of retries, less than a service keeps its answers */
#define US_CLIENT_PATIENCE 50

/* of a try: the service may have done what it was asked, its answer is lost */
#define US_CLIENT_LOST     0
#define US_CLIENT_REPLY    (64 * 1024 * 1024)


static int
us_client_fail(us_client_t *c, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(c->error, sizeof(c->error), fmt, args);
    va_end(args);

    return -1;
}


int
us_client_is(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0
           || strncasecmp(url, "https://", 8) == 0;
}


int
us_client_init(us_client_t *c, const char *url)
{
    size_t         n;
    const char    *p, *end;
    unsigned long  port;

    memset(c, 0, sizeof(us_client_t));
    c->timeout = US_CLIENT_TIMEOUT;

    if (strncasecmp(url, "http://", 7) != 0) {
        return us_cli_fail("\"%s\" is not http://HOST[:PORT][/PATH]", url);
    }

    /* HOST or [HOST], a port, the path */

    p = url + 7;
    end = p + (*p == '[' ? strcspn(p, "]") : strcspn(p, ":/"));
    p += (*p == '[');
    n = end - p;

    if (n == 0 || n >= sizeof(c->host)) {
        return us_cli_fail("\"%s\" has no host, or too long a one", url);
    }

    memcpy(c->host, p, n);
    p = end + (*end == ']');
    (void) strcpy(c->port, "80");

    if (*p == ':') {
        n = strspn(++p, "0123456789");

        port = n && n < sizeof(c->port) ? strtoul(p, NULL, 10) : 0;

        if (port == 0 || port > 65535) {
            return us_cli_fail("\"%s\" has no port from 1 to 65535", url);
        }

        memcpy(c->port, p, n);
        c->port[n] = '\0';
        p += n;
    }

    n = strlen(p);

    if ((n && *p != '/') || n >= sizeof(c->path)
        || strcspn(p, " \t\r\n?#") != n)
    {
        return us_cli_fail("\"%s\" has a path that is too long, or with a "
                           "blank, \"?\" or \"#\"", url);
    }

    for (memcpy(c->path, p, n); n && c->path[n - 1] == '/'; n--) {
        c->path[n - 1] = '\0';
    }

    return US_CLI_DONE;
}


void
us_client_free(us_client_t *c)
{
    free(c->reply);
}


/* a failed call on the socket; past its timeout it has EAGAIN or EINPROGRESS */

static int
us_client_broken(us_client_t *c)
{
    if (errno == EAGAIN || errno == EINPROGRESS) {
        return us_client_fail(c, "%s:%s: no answer for %ld s", c->host,
                              c->port, c->timeout);
    }

    return us_client_fail(c, "%s:%s: %s", c->host, c->port, strerror(errno));
}


/* a connected socket, or -1 with error */

static int
us_client_connect(us_client_t *c)
{
    int               fd, rc;
    struct timeval    limit = { c->timeout, 0 };
    struct addrinfo   hints, *all, *a;

    memset(&hints, 0, sizeof(struct addrinfo));
    hints.ai_socktype = SOCK_STREAM;

    rc = getaddrinfo(c->host, c->port, &hints, &all);

    if (rc != 0) {
        return us_client_fail(c, "%s: %s", c->host, gai_strerror(rc));
    }

    fd = -1;

    for (a = all; a; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype|SOCK_CLOEXEC, a->ai_protocol);

        if (fd == -1) {
            continue;
        }

        (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));

        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            break;
        }

        (void) close(fd);
        fd = -1;
    }

    freeaddrinfo(all);

    return fd == -1 ? us_client_broken(c) : fd;
}


static int
us_client_send(us_client_t *c, int fd, const void *p, size_t n)
{
    ssize_t  rc;

    for ( /* void */ ; n; p = (const char *) p + rc, n -= rc) {
        rc = send(fd, p, n, MSG_NOSIGNAL);

        if (rc == -1 && errno == EINTR) {
            rc = 0;

        } else if (rc == -1) {
            return us_client_broken(c);
        }
    }

    return 0;
}


/* all that comes up to the end of the connection, with a zero after it */

static int
us_client_receive(us_client_t *c, int fd)
{
    ssize_t   n;
    uint8_t  *p;

    c->len = 0;

    for ( ;; ) {

        if (c->size - c->len < 65536) {
            p = c->size < US_CLIENT_REPLY ? realloc(c->reply, c->size * 2
                                                              + 131072) : NULL;
            if (p == NULL) {
                return us_client_fail(c, "%s:%s: the answer is too large",
                                      c->host, c->port);
            }

            c->reply = p;
            c->size = c->size * 2 + 131072;
        }

        n = recv(fd, c->reply + c->len, c->size - c->len - 1, 0);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1) {
            return us_client_broken(c);
        }

        c->len += n;
        c->reply[c->len] = '\0';

        if (n == 0) {
            return 0;
        }
    }
}


/* "detail" of a problem, or what there is, on one line */

static int
us_client_problem(us_client_t *c, const char *endpoint, int status)
{
    int          n;
    char         text[200];
    const char  *p;

    p = strstr((char *) c->reply, "\"detail\":\"");
    p = p ? p + 10 : (char *) c->reply;

    for (n = 0; *p && *p != '"' && n < (int) sizeof(text); p++) {
        p += (*p == '\\' && p[1]);
        text[n++] = iscntrl((unsigned char) *p) ? ' ' : *p;
    }

    return us_client_fail(c, "%s:%s%s%s: %d: %.*s", c->host, c->port, c->path,
                          endpoint, status, n, text);
}


int
us_client_once(us_client_t *c, const char *method, const char *endpoint,
    const char *type, us_str_t body)
{
    int          fd, n, rc, got, found, status;
    char         head[2048 + US_CLIENT_ENDPOINT];
    long         length;
    us_str_t     text, line;
    const char  *p;

    c->retry = -1;
    c->repeated = 0;
    c->connected = 0;

    if (strlen(endpoint) > US_CLIENT_ENDPOINT) {
        return us_client_fail(c, "%s: too long", endpoint);
    }

    fd = us_client_connect(c);

    if (fd == -1) {
        return -1;
    }

    c->connected = 1;

    n = snprintf(head, sizeof(head), "%s %s%s HTTP/1.0\r\n"
                 "Host: %s%s%s:%s\r\nAccept: %s\r\n",
                 method, c->path, endpoint,
                 strchr(c->host, ':') ? "[" : "", c->host,
                 strchr(c->host, ':') ? "]" : "", c->port, type);

    if (body.data) {
        n += snprintf(head + n, sizeof(head) - n, "Content-Type: %s\r\n"
                      "Content-Length: %zu\r\n", type, body.len);
    }

    n += snprintf(head + n, sizeof(head) - n,
                  c->key[0] ? "Idempotency-Key: \"%s\"\r\n\r\n" : "%s\r\n",
                  c->key);

    rc = us_client_send(c, fd, head, n);

    if (rc == 0 && body.data) {
        rc = us_client_send(c, fd, body.data, body.len);
    }

    /* the service may answer before all was sent: its answer has the reason */

    got = us_client_receive(c, fd);
    (void) close(fd);

    if (got == -1 || (rc == -1 && c->len == 0)) {
        return c->len < US_CLIENT_REPLY ? US_CLIENT_LOST : -1;
    }

    if (c->len == 0) {
        (void) us_client_fail(c, "%s:%s: the connection was closed without "
                              "an answer", c->host, c->port);
        return US_CLIENT_LOST;
    }

    if (sscanf((char *) c->reply, "HTTP/1.%*d %d", &status) != 1) {
        return us_client_fail(c, "%s:%s: the answer is not HTTP", c->host,
                              c->port);
    }

    /* the first line, headers, and an empty line, which has its \r */

    text = (us_str_t) { c->len, c->reply };
    length = -1;

    do {
        found = us_str_cut(&text, '\n', &line);
        p = (char *) line.data;

        if (strncasecmp(p, "Content-Length:", 15) == 0) {
            length = strtol(p + 15, NULL, 10);

        } else if (strncasecmp(p, "Retry-After:", 12) == 0) {
            c->retry = strtol(p + 12, NULL, 10);

        } else if (strncasecmp(p, "Idempotency-Status:", 19) == 0) {
            p += 19 + strspn(p + 19, " ");
            c->repeated = strncmp(p, "repeated", 8) == 0;
        }

    } while (found && line.len && *line.data != '\r');

    c->len = text.len;
    memmove(c->reply, text.data, text.len + 1);

    if (!found || line.len == 0
        || (length >= 0 && c->len != (size_t) length))
    {
        (void) us_client_fail(c, "%s:%s: the answer is cut off", c->host,
                              c->port);
        return US_CLIENT_LOST;
    }

    if (status != 200 && status != 202) {
        (void) us_client_problem(c, endpoint, status);
    }

    return status;
}


int
us_client_key(us_client_t *c)
{
    uint8_t  bytes[16];

    /* 32 hexadecimal digits that no other has */

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        return us_cli_fail("getrandom: %s", strerror(errno));
    }

    *us_put_hex((uint8_t *) c->key, bytes, sizeof(bytes)) = '\0';

    c->lost = 0;

    return US_CLI_DONE;
}


int
us_client_post(us_client_t *c, const char *endpoint, us_str_t body)
{
    int          status, before;
    long         wait;
    size_t       i, len, asked, answered;
    time_t       end;
    const char  *n;

    end = time(NULL) + US_CLIENT_PATIENCE;
    before = 0;

    for ( ;; ) {
        status = us_client_once(c, "POST", endpoint, "text/plain", body);

        if (status == 200 || status == 202) {

            /*
             * An answer for each line: one without Content-Length can be cut
             * off.  A line that begins with # is about all of them.
             */

            for (i = 0, asked = 0; i < body.len; i++) {
                asked += (body.data[i] == '\n');
            }

            for (i = 0, answered = 0; i < c->len; i++) {
                answered += (c->reply[i] == '\n');
                answered -= (c->reply[i] == '#'
                             && (i == 0 || c->reply[i - 1] == '\n'));
            }

            if (answered == asked
                && (c->len == 0 || c->reply[c->len - 1] == '\n'))
            {
                c->unsure = c->lost && !c->repeated;
                return status;
            }

            (void) us_client_fail(c, "%s:%s%s%s: %zu answers to %zu lines",
                                  c->host, c->port, c->path, endpoint,
                                  answered, asked);
            status = US_CLIENT_LOST;
        }

        /*
         * What was refused may have been applied: the service says how much it
         * has applied, and a proxy that waits in vain does not know.
         */

        n = status > 0 ? strstr((char *) c->reply, "\"processed\":") : NULL;

        c->lost += status == US_CLIENT_LOST
                   || (n ? strtoul(n + 12, NULL, 10) > 0
                         : status == 502 || status == 504);
        c->unsure = c->lost > 0;

        wait = c->retry > 0 ? c->retry : 1;

        /*
         * Another try can help: quota, no answer yet, a lost answer.  A service
         * that was there before may be on its way up again.
         */

        if ((status > 0 && status != 429 && (status < 502 || status > 504))
            || (status == -1 && (c->connected || !before))
            || wait > end - time(NULL))
        {
            if (c->retry > 0) {
                len = strlen(c->error);
                (void) snprintf(c->error + len, sizeof(c->error) - len,
                                "; it asks to wait %ld s", c->retry);
            }

            return status;
        }

        before = 1;

        (void) sleep((unsigned) wait);
    }
}
