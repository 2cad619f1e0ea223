
/*
 * The base of a replicated log: the store as of an LSN, from which a node that
 * has nothing begins (replog/us_rebase.h).
 *
 *     a primary: command, erasure   its store -- dump ----> parts
 *     base=DIR, no log yet          a directory -- read --> parts
 *
 * Both are jobs in a thread, with a connection of their own, and hold one part
 * in memory.  The image of the index is left out of a base: it has the key of
 * this node's hash.
 *
 * A primary goes on meanwhile.  Its base is put in force when the log has
 * confirmed all that it may depend on.  If the process is killed, another one
 * begins anew as long as somebody waits for it.
 *
 * When records of erased URLs are gone (us_store_erased_lsn()), the rows below
 * that LSN still have them, and so has the base.  A primary makes another base
 * by itself, at most US_BASE_TIMES within erase_within=, and keeps no row from
 * before.  The log has none of them when all that was replaced is removed.  The
 * rows begin at that LSN then, or later, by which the next primary knows that
 * only the removal may be left to do.
 *
 * A log that is made of a directory has settings with "base NODE" and the term
 * 0 until its base is in force.  Other nodes wait for that, whatever becomes of
 * NODE: without the base they would begin an empty store.
 */


#ifndef _US_REPLICATE_BASE_H_INCLUDED_
#define _US_REPLICATE_BASE_H_INCLUDED_


#include "us_life.h"
#include "../replog/us_replog.h"


#define US_REPLICATE_BASE   "base"    /* a setting of the log: whose work */


/*
 * A caller wants a base, and asks again and again, each time with the same wish
 * that was zeroed at first.  1: one was made since, or one that was being made
 * is ready; 0: not yet; -1: it failed (us_replicate_base_why()), or this node
 * is not the primary.  Nobody makes one any more US_REPLICATE_WISH ms after the
 * last one has asked.
 */
#define US_REPLICATE_WISH  11000

typedef struct {
    int                begun;
    uint64_t           done;
    uint64_t           failed;
} us_replicate_wish_t;

int us_replicate_wants_base(us_life_t *l, us_replicate_wish_t *w);
const char *us_replicate_base_why(const us_life_t *l);

/* of a primary's tick: starts the job, if it is wanted */
void us_replicate_rebase(us_life_t *l);

/*
 * The text of the settings of a log that is to be made of the directory, and
 * the directory's uuid.  0, or -1 with e.
 */
int us_replicate_base_settings(const us_life_t *l, char *text, size_t size,
    uint8_t uuid[16], us_disk_error_t *e);

/*
 * By the loader: whether the directory, if it can be read, has the store of a
 * log: 0; or -1 with e.  Once that is in the log, the directory's manifest says
 * so, and no server begins with it as its path any more.
 */
int us_replicate_base_same(us_job_t *job, const us_replog_head_t *head,
    us_disk_error_t *e);

/* by the loader: makes that base, and puts it in force.  0, or -1 with e */
int us_replicate_import(us_job_t *job, us_replog_t *log, us_disk_error_t *e);


#endif /* _US_REPLICATE_BASE_H_INCLUDED_ */
