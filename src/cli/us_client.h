
/*
 * A client of a running service: one request, one connection, one answer.
 * HTTP/1.0, so that the answer comes in one piece; no TLS.
 */


#ifndef _US_CLIENT_H_INCLUDED_
#define _US_CLIENT_H_INCLUDED_


#include "../us_base.h"


#define US_CLIENT_ERROR  512


typedef struct {
    char        host[256];
    char        port[8];
    char        path[1024];           /* of the store, without a final slash */

    char        key[40];              /* Idempotency-Key, or empty */
    unsigned    lost;                 /* tries with it that may have added */
    long        timeout;              /* seconds without a byte; the caller's */
    long        retry;                /* seconds to wait, of the last answer;
                                         -1: it does not say */
    unsigned    connected:1;          /* there was a service */
    unsigned    repeated:1;           /* what was new before is so again */
    unsigned    unsure:1;             /* see us_client_post() */
    uint8_t    *reply;                /* the body of the last answer */
    size_t      len;
    size_t      size;
    char        error[US_CLIENT_ERROR];
} us_client_t;


/* as nginx reads lines of requests: large_client_header_buffers */
#define US_CLIENT_ENDPOINT  (8 * 1024)


/* whether the text is the address of a service, not a directory */
int us_client_is(const char *url);

/*
 * US_CLI_DONE; or US_CLI_USAGE after a message: it is no
 * http://HOST[:PORT][/PATH].
 */
int us_client_init(us_client_t *c, const char *url);
void us_client_free(us_client_t *c);

/*
 * A key for the posts from now on: what one of them adds is "new" to the others
 * as well.  US_CLI_DONE; or US_CLI_USAGE after a message.
 */
int us_client_key(us_client_t *c);

/*
 * POSTs lines to an endpoint.  Tries again while the service answers that a
 * retry can help, and when its answer is lost.  200 or 202 with the lines of
 * the answer in c->reply; or what us_client_once() may return, with error.
 * c->unsure: a try with the key may have added lines, and the service does not
 * repeat that they are "new".
 */
int us_client_post(us_client_t *c, const char *endpoint, us_str_t body);

/*
 * One try.  endpoint: after c->path, may be empty, at most US_CLIENT_ENDPOINT
 * bytes; type: of body and answer.  Returns the status of the answer, with its
 * body in c->reply, and with error unless it is 200 or 202; 0 with error: the
 * answer was lost, and the request may have been done; -1 with error: it was
 * not done, or the answer is none.
 */
int us_client_once(us_client_t *c, const char *method, const char *endpoint,
    const char *type, us_str_t body);

/* none is sent */
#define US_CLIENT_NO_BODY  ((us_str_t) { 0, NULL })


#endif /* _US_CLIENT_H_INCLUDED_ */
