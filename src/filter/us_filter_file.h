
/*
 * A filter in a file that all processes of one machine share by mapping it:
 * DIR/filter.  It survives the end, also by kill -9, of every process that
 * uses it; a power failure it survives if it was closed before.
 */


#ifndef _US_FILTER_FILE_H_INCLUDED_
#define _US_FILTER_FILE_H_INCLUDED_


#include "us_filter.h"


typedef struct {
    us_filter_t  *filter;
    size_t        size;
    int           dir;                /* holds a shared lock */
    unsigned      created:1;          /* it was not there before */
    unsigned      doubtful:1;         /* bits may be missing: force was used */
} us_filter_file_t;


/*
 * Opens, or makes, the filter of plan in dir, which is made as well if only it
 * itself is missing, for this process and its children, be it alone or beside
 * others that use it; waits for one that writes it at its end.  force: take a
 * filter that a power failure may have hurt, which is US_FILTER_UNCLEAN without
 * it.  Returns 0, or that or -1 and a readable text in err (of size bytes).
 */
#define US_FILTER_UNCLEAN  -2

int us_filter_file_open(us_filter_file_t *file, const char *dir,
    const us_filter_plan_t *plan, us_str_t norm, int force, char *err,
    size_t size);

/*
 * Whether us_filter_file_open() would accept what is there, without a lock and
 * without a change to anything.  A filter that is not there yet is accepted.
 * Returns as that does.
 */
int us_filter_file_check(const char *dir, const us_filter_plan_t *plan,
    us_str_t norm, int force, char *err, size_t size);

/*
 * Gives it back when none of the caller's processes adds any more.  Unless
 * others use it, writes all of it to the disk and marks it clean.  Returns 0,
 * or -1 if the disk refused (it stays marked as it was).
 */
int us_filter_file_close(us_filter_file_t *file);

/* gives the mapping and the lock back without touching the mark */
void us_filter_file_drop(us_filter_file_t *file);


#endif /* _US_FILTER_FILE_H_INCLUDED_ */
