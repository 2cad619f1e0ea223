
/*
 * An approximate set of URLs in one to two bytes each.  It has no ids and
 * returns no URL.  A stated share of new URLs is reported as seen; a seen URL
 * is never reported as new.
 *
 * The filter lies in one piece of memory that any number of processes share,
 * at any address.  Every call may be made by all of them at once, without a
 * lock.  A caller that is killed may leave bits of a URL that it never reported
 * as new.
 */


#ifndef _US_FILTER_H_INCLUDED_
#define _US_FILTER_H_INCLUDED_


#include "../journal/us_disk.h"


#define US_FILTER_VERSION    1           /* of a file */
#define US_FILTER_ERROR_MIN  1e-6
#define US_FILTER_ERROR_MAX  0.5
#define US_FILTER_NORM_LEN   128

/* bytes: the header, one page; each block after it */
#define US_FILTER_HEADER     4096
#define US_FILTER_BLOCK      64


typedef struct us_filter_s  us_filter_t;


/* what a filter is made with: us_filter_plan() fills all of it */

typedef struct {
    uint64_t      capacity;           /* URLs */
    double        error;              /* at capacity, as asked for */
    double        expected;           /* at capacity, as these sizes give */
    uint64_t      blocks;
    unsigned      hashes;             /* bits for each URL */
    size_t        size;               /* bytes in all */
} us_filter_plan_t;


typedef struct {
    uint64_t      capacity;
    double        error;
    uint64_t      urls;               /* that were new */
    uint64_t      size;
    uint64_t      hashes;
    double        filling;            /* share of bits that are set, sampled */
    double        expected;           /* error now, by the same sample */
} us_filter_info_t;


/*
 * size: bytes to use, or 0 for the fewest that do.  Returns 0, or -1 with the
 * bytes that are needed in plan->size if size is too small or if capacity or
 * error are out of range (plan->size is 0 then).
 */
int us_filter_plan(uint64_t capacity, double error, size_t size,
    us_filter_plan_t *plan);

/*
 * Lays an empty filter out in plan->size bytes, zero filled and 64 byte
 * aligned.  norm: us_norm_signature() of the URLs it will see, or empty.
 */
us_filter_t *us_filter_format(void *mem, const us_filter_plan_t *plan,
    const uint8_t key[16], us_str_t norm);

/*
 * What stands for a URL: its hash under the filter's key.  The same text under
 * another domain (below 256) is another URL.
 */
uint64_t us_filter_hash(const us_filter_t *f, unsigned domain, us_str_t url);

/*
 * Adds n URLs, overlapping their cache misses; answers[i] is 1 if it was new,
 * 0 if it was seen or is taken for it.  If two callers add the same new URL at
 * the same moment, both may get 1.
 */
void us_filter_add_many(us_filter_t *f, const uint64_t *hashes, size_t n,
    uint8_t *answers);

/* without adding: 1 if it has been seen or is taken for it */
void us_filter_seen_many(const us_filter_t *f, const uint64_t *hashes,
    size_t n, uint8_t *answers);

/* 1 when the capacity has been reached: the error grows from here on */
int us_filter_full(const us_filter_t *f);

/* 1 from nine tenths of the capacity on */
int us_filter_nearly_full(const us_filter_t *f);

void us_filter_info(const us_filter_t *f, us_filter_info_t *info);


/*
 * Says whether a mapped file may lack bits; see us_filter.c.
 */

typedef struct {
    uint64_t      clean;              /* 1: closed, all of it on the disk */
    uint8_t       boot[16];           /* the boot in which it was opened */
} us_filter_mark_t;

us_filter_mark_t *us_filter_mark(us_filter_t *f);


/*
 * A filter in a file that all processes of one machine share by mapping it:
 * DIR/filter.  It survives the end, also by kill -9, of every process that
 * uses it; a power failure it survives if it was closed before.
 */

typedef struct {
    us_filter_t  *filter;
    size_t        size;
    int           dir;                /* holds a shared lock */
    unsigned      created:1;          /* it was not there before */
    unsigned      shared:1;           /* others used it when it was opened */
    unsigned      doubtful:1;         /* bits may be missing: force was used */
} us_filter_file_t;


/*
 * Opens, or makes, the filter of plan in dir, which is made as well if only it
 * itself is missing, for this process and its children, be it alone or beside
 * others that use it; waits for one that writes it at its end.  force: take a
 * filter that a power failure may have hurt, which is US_FILTER_UNCLEAN without
 * it.  Returns 0, or that or -1 with e.
 */
#define US_FILTER_UNCLEAN  -2

int us_filter_file_open(us_filter_file_t *file, const char *dir,
    const us_filter_plan_t *plan, us_str_t norm, int force,
    us_disk_error_t *e);

/*
 * Whether a file that is open has this plan and normalization: 0, or -1 with e.
 */
int us_filter_file_match(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, us_disk_error_t *e);

/*
 * Whether us_filter_file_open() would accept what is there, without a lock and
 * without a change to anything.  A filter that is not there yet is accepted.
 * Returns as that does.
 */
int us_filter_file_check(const char *dir, const us_filter_plan_t *plan,
    us_str_t norm, int force, us_disk_error_t *e);

/*
 * Gives it back when none of the caller's processes adds any more.  Unless
 * others use it, writes all of it to the disk and marks it clean.  Returns 0,
 * or -1 if the disk refused (it stays marked as it was).
 */
int us_filter_file_close(us_filter_file_t *file);

/* gives the mapping and the lock back without touching the mark */
void us_filter_file_drop(us_filter_file_t *file);


#endif /* _US_FILTER_H_INCLUDED_ */
