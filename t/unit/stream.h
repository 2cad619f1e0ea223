
/*
 * A stream of operations, as a journal or a dump has it, in memory.  For tests
 * of the store and for bench/replay.c.
 */


#ifndef _STREAM_H_INCLUDED_
#define _STREAM_H_INCLUDED_


#include "us_base.h"
#include "store/us_store.h"
#include "store/us_ring.h"

#include <stdio.h>
#include <stdlib.h>


typedef struct {
    uint8_t      *data;
    size_t        len;
    size_t        size;
} stream_t;


/* appends; as us_store_dump() calls it */

static inline int
stream_put(void *data, const uint8_t *p, size_t len)
{
    stream_t  *st = data;

    if (st->len + len > st->size) {
        st->size = (st->len + len) * 2;
        st->data = realloc(st->data, st->size);

        if (st->data == NULL) {
            perror("stream");
            exit(2);
        }
    }

    if (len) {
        memcpy(st->data + st->len, p, len);
        st->len += len;
    }

    return 0;
}


/* appends what the ring has, which is written then, as the journal does */

static inline void
stream_drain(stream_t *st, us_store_t *s)
{
    us_str_t  pieces[2];

    us_store_ops(s, us_store_written(s), pieces);
    stream_put(st, pieces[0].data, pieces[0].len);
    stream_put(st, pieces[1].data, pieces[1].len);
    us_store_set_written(s, us_store_written(s) + pieces[0].len
                            + pieces[1].len);
}


/* one operation, such as no journal of a sound store has */

static inline int
apply_op(us_store_t *s, us_op_type_t type, uint64_t id, const void *p,
    size_t len)
{
    us_op_t   op;
    size_t    n;
    ssize_t   rc;
    uint8_t   buf[512];

    memset(&op, 0, sizeof(op));
    op.type = type;
    op.id = id;
    op.bytes.data = p;
    op.bytes.len = len;
    n = us_op_head(&op, buf);
    memcpy(buf + n, p, len);
    rc = us_store_apply(s, buf, n + len);

    return rc == (ssize_t) (n + len) ? 0 : (int) rc;
}


#endif /* _STREAM_H_INCLUDED_ */
