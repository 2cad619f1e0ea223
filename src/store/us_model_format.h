
/*
 * What a model's core looks like, for its reader (us_model.c, where it is
 * explained) and its writer (us_model_write.c).
 */


#ifndef _US_MODEL_FORMAT_H_INCLUDED_
#define _US_MODEL_FORMAT_H_INCLUDED_


#include "us_model.h"


#define US_MODEL_MAGIC    0x6c646f6d  /* "modl" */

/* numbers of symbols by code length, 0 .. 16, and one unused */
#define US_NLEN           18

#define US_TEXT_BITS      19
#define US_LEN_BITS       6
#define US_LEN_MASK       ((1 << US_LEN_BITS) - 1)
#define US_CTX_SHIFT      (US_TEXT_BITS + US_LEN_BITS)
#define US_TEXT_MAX       (1 << US_TEXT_BITS)

/* the tables for decoding are aligned to cache lines, if the model is */
#define US_LINE           64u

/* copies of a token's text are made in pieces of 16 bytes */
#define US_TEXT_SLACK     64


struct us_model_s {
    uint32_t      magic;
    uint16_t      version;
    uint8_t       ncontexts;
    uint8_t       pad;
    uint32_t      core_size;
    uint32_t      ntokens;
    uint32_t      nsymbols;
    uint32_t      text_size;
    uint32_t      checksum;

    uint32_t      nlen;               /* offsets from the model's address */
    uint32_t      tokens;
    uint32_t      symbols;
    uint32_t      text;
    uint32_t      pad2[3];
};


#endif /* _US_MODEL_FORMAT_H_INCLUDED_ */
