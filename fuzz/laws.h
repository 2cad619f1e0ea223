
/*
 * What holds for every input, whatever it is: the laws of the normalizer,
 * checked by the fuzzers and, line by line, on the corpora.
 */


#ifndef _US_LAWS_H_INCLUDED_
#define _US_LAWS_H_INCLUDED_


#include "url/us_normalize.h"


/* opens all profiles; aborts if it cannot */
void us_laws_open(void);

/*
 * Checks all laws for a link in a page; base may be NULL.  Prints the law that
 * is broken and aborts.
 */
void us_laws_check(us_str_t in, const us_str_t *base);

/* the profile's answer, for the caller's own laws; out lives until the next */
us_verdict_t us_laws_normalize(us_profile_t profile, us_str_t in,
    const us_str_t *base, us_canon_t *out);

/* prints what went wrong with which input, and aborts */
void us_laws_broken(const char *law, us_str_t in, const us_str_t *base,
    us_str_t a, us_str_t b) __attribute__((noreturn));


#endif /* _US_LAWS_H_INCLUDED_ */
