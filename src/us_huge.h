
/*
 * Private memory with huge pages.
 *
 * Tables that are read in random order cost a miss of the TLB for each access
 * in pages of 4 KiB.
 */


#ifndef _US_HUGE_H_INCLUDED_
#define _US_HUGE_H_INCLUDED_


#include "us_base.h"


#define US_HUGE_PAGE  ((size_t) 2 << 20)


/*
 * Maps size bytes, whole pages, of zeroed private memory.  The kernel is asked
 * for huge pages for the first `huge` bytes, rounded down to such pages; unless
 * that is none, the memory begins at the address of one.  A page that is never
 * written costs no memory.  NULL: there is no memory.  The caller gives it back
 * by munmap() of size bytes.
 */
void *us_huge_map(size_t size, size_t huge);


#endif /* _US_HUGE_H_INCLUDED_ */
