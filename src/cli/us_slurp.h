
/*
 * A whole file in memory.
 */


#ifndef _US_SLURP_H_INCLUDED_
#define _US_SLURP_H_INCLUDED_


#include "../us_base.h"


/*
 * Reads a file, or standard input for "-", of at most max bytes.  *text is
 * freed by the caller; a zero follows it.  0, or US_CLI_USAGE after a message.
 */
int us_slurp(const char *path, size_t max, us_str_t *text);


#endif /* _US_SLURP_H_INCLUDED_ */
