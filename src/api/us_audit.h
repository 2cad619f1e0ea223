
/*
 * The audit of erasures: a file in the directory, "erasures.log", with a line
 * whenever an erasure has changed.  Lines are added, and never changed.
 *
 *     2026-11-28T20:31:00Z <tab> a line of GET /erase in text: its number,
 *     kind, state, how many, when, where bytes may be left, the reason
 *
 * What is in the file is read when it is opened, so nothing is missing after a
 * kill: a line that was not written is written then.  Changes that follow upon
 * each other within a look share a line; the times are in it.
 */


#ifndef _US_AUDIT_H_INCLUDED_
#define _US_AUDIT_H_INCLUDED_


#include "us_list.h"
#include "../life/us_life.h"


typedef struct {
    int         fd;                   /* -1: not open */
    uint64_t    size;                 /* of the file */
    uint8_t    *buf;                  /* NULL: all was read */
    size_t      n;                    /* bytes in it */
    uint64_t   *known;                /* the newest line of each number */
    size_t      room;
    uint64_t    next;                 /* number of the next look */
} us_audit_t;


/*
 * Opens the file of a directory, made if need be.  One process at a time has
 * it, until it is closed or killed.  0, or -1 with errno; EWOULDBLOCK: another
 * one has it.
 */
int us_audit_open(us_audit_t *a, int dirfd);
void us_audit_close(us_audit_t *a);

/*
 * Reads what is there of numbers up to `most`: some of it, as others wait
 * meanwhile.  1: there is more; 0; or -1 with errno.
 */
int us_audit_read(us_audit_t *a, uint64_t most);

/* whether it is what the directory has, and nobody else has changed it */
int us_audit_is(const us_audit_t *a, int dirfd);

/*
 * When all was read: adds a line, unless the last one says the same.  0, or -1
 * with errno.
 */
int us_audit_add(us_audit_t *a, const us_erasure_info_t *e, unsigned left);

/*
 * Reads on; or looks at the newest erasures of l->store, and at a slice of the
 * others, in turn: returns soon.  0; 1: there is more to read; or -1 with
 * errno.
 */
int us_audit_look(us_audit_t *a, const us_life_t *l);


#endif /* _US_AUDIT_H_INCLUDED_ */
