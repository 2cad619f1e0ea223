
/*
 * A connection to a primary (life/us_peer.h) without sockets: the functions
 * that need none.  Who includes it has us_peer_get(), _read() and _close().
 */


#ifndef _PEER_FAKE_H_INCLUDED_
#define _PEER_FAKE_H_INCLUDED_


#include "life/us_peer.h"

#include <stdlib.h>
#include <string.h>


void
us_peer_init(us_peer_t *p, int (*stopping)(void *data), void *data)
{
    (void) stopping;
    (void) data;

    memset(p, 0, sizeof(us_peer_t));
    p->fd = -1;
}


void
us_peer_wipe(us_peer_t *p)
{
    if (p->buf) {
        memset(p->buf, 0, p->pos);
    }
}


void
us_peer_free(us_peer_t *p)
{
    free(p->buf);
    p->buf = NULL;
}


#endif /* _PEER_FAKE_H_INCLUDED_ */
