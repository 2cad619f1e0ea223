
/*
 * Runs: stretches of a few characters without meaning (numbers, hashes, video
 * ids), packed.
 */


#ifndef _US_RUN_H_INCLUDED_
#define _US_RUN_H_INCLUDED_


#include "../us_bit.h"


#define US_RUN_MIN         3
#define US_RUN_MAX         32
#define US_RUN_LENGTHS     (US_RUN_MAX - US_RUN_MIN + 1)

/* alphabets: [0-9], [0-9a-f], [0-9a-z], [0-9A-Za-z_-] */

#define US_RUN_ALPHABETS   4

/* us_run_classes[c] has bit a set if c is in alphabet a; bit 4: '-' and '_' */

#define US_RUN_DIGIT       15
#define US_RUN_HEX         14
#define US_RUN_LOWER       12
#define US_RUN_UPPER       8
#define US_RUN_OTHER       24

extern const uint8_t  us_run_classes[256];


/* runs are numbered by alphabet, then length; and the bits that one takes */
unsigned us_run_bits(unsigned alphabet, unsigned len);

void us_run_put(us_bitout_t *o, unsigned alphabet, const uint8_t *text,
    unsigned len);

/* unpacks up to 6 characters from the low end of w */
void us_run_get(uint64_t w, unsigned alphabet, unsigned len, uint8_t *out);


#endif /* _US_RUN_H_INCLUDED_ */
