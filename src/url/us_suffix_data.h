
/*
 * The public suffix list of one day, as tools/suffixes.pl writes it: the names
 * of all rules, without anything between them.  Those of one kind and length
 * stand together, sorted.
 */


#ifndef _US_SUFFIX_DATA_H_INCLUDED_
#define _US_SUFFIX_DATA_H_INCLUDED_


#include "../us_base.h"


#define US_SUFFIX_MAX  58             /* bytes of the longest */

typedef struct {
    uint32_t  at;                     /* the first one's place in the names */
    uint32_t  n;
} us_suffixes_t;

extern const uint8_t        us_suffix_names[];

/* by length: names that are suffixes, X of "*.X", and X of "!X" */

extern const us_suffixes_t  us_suffix_rule[US_SUFFIX_MAX + 1];
extern const us_suffixes_t  us_suffix_wild[US_SUFFIX_MAX + 1];
extern const us_suffixes_t  us_suffix_except[US_SUFFIX_MAX + 1];


#endif /* _US_SUFFIX_DATA_H_INCLUDED_ */
