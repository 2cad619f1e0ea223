
/*
 * The weights of slots, from a sample of URLs.
 */


#ifndef _US_SAMPLE_H_INCLUDED_
#define _US_SAMPLE_H_INCLUDED_


#include "../cluster/us_map.h"


/*
 * Counts the URLs of a file, or of standard input for "-", by slot, after
 * normalization by `norm`; refused URLs are left out, and each slot has one
 * more.  0, or US_CLI_USAGE after a message.
 */
int us_sample(const char *path, us_str_t norm, us_key_t key,
    uint32_t weight[US_SLOTS]);


#endif /* _US_SAMPLE_H_INCLUDED_ */
