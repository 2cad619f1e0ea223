
/*
 * An external sort of strings, by bytes.
 *
 *     add, add, add ... --full--> sorted run in a temporary file
 *     add, add, add ... --full--> sorted run
 *     end: runs and what is in memory are merged through a heap
 *
 * When US_SORT_RUNS have come together they are merged into one.  Temporary
 * files lie in $TMPDIR or /tmp and have no name.
 */


#ifndef _US_CLI_SORT_H_INCLUDED_
#define _US_CLI_SORT_H_INCLUDED_


#include "../us_base.h"


#define US_SORT_RUNS  64


typedef struct us_sort_s  us_sort_t;

/* 0, or -1 to stop */
typedef int (*us_sort_out_pt)(void *data, us_str_t s);


/* memory: bytes to be used for strings */
us_sort_t *us_sort_create(size_t memory);
void us_sort_destroy(us_sort_t *s);

/* -1 with errno: no memory or no disk */
int us_sort_add(us_sort_t *s, us_str_t text);

/* returns all in order; afterwards only us_sort_destroy() is allowed */
int us_sort_end(us_sort_t *s, us_sort_out_pt out, void *data);


#endif /* _US_CLI_SORT_H_INCLUDED_ */
