
/*
 * One GET to another server, whose reply is a stream that may not end: for a
 * thread that may wait, and that stops soon when it is to.
 *
 * Plain sockets, with the kernel's timeouts: each call returns within
 * US_PEER_STEP, and no step takes longer than its time below.  Addresses are
 * resolved by the caller, before.  The request is HTTP/1.0, so that the body is
 * not in chunks and ends with the connection.
 */


#ifndef _US_PEER_H_INCLUDED_
#define _US_PEER_H_INCLUDED_


#include "../us_base.h"

#include <sys/socket.h>


#define US_PEER_STEP     50           /* ms between two looks at stopping() */
#define US_PEER_CONNECT  3000         /* ms for a connection */
#define US_PEER_ANSWER   10000        /* ms for the head of the reply */
#define US_PEER_SILENT   10000        /* ms between two pieces of its body */


/* whom to ask; all of it is the caller's */

typedef struct {
    const char             *name;     /* the address as it was given */
    const char             *host;     /* of the header "Host" */
    const char             *path;     /* before "/log", or "" */
    const struct sockaddr  *const *addrs;
    const socklen_t        *lens;
    unsigned                naddrs;
} us_primary_t;


typedef struct {
    int          (*stopping)(void *data);
    void          *data;
    int            fd;                /* or -1 */
    unsigned       status;            /* of the reply */
    unsigned       detail:1;          /* its refusal is a problem document */
    uint64_t       heard;             /* ms: when the last byte came */

    uint8_t       *buf;               /* of the body, not taken yet */
    size_t         size;
    size_t         pos;
    size_t         len;

    char           error[320];
} us_peer_t;


void us_peer_init(us_peer_t *p, int (*stopping)(void *data), void *data);

/*
 * Asks address number n (modulo their number) for path/target.  0: the reply
 * has p->status; if that is not 200, p->error has the beginning of its body.
 * -1 with p->error.
 */
int us_peer_get(us_peer_t *p, const us_primary_t *primary, unsigned n,
    const char *target);

/*
 * Waits up to US_PEER_STEP for bytes of the body, and appends them to those at
 * buf + pos, of which there is room for `need`.  1: some came; 0: none did; -1
 * with p->error: the connection has ended, or is silent.
 */
int us_peer_read(us_peer_t *p, size_t need);

/* overwrites what was taken from the buffer */
void us_peer_wipe(us_peer_t *p);

void us_peer_close(us_peer_t *p);
void us_peer_free(us_peer_t *p);


#endif /* _US_PEER_H_INCLUDED_ */
