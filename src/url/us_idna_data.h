
/*
 * The tables of us_idna.c, as tools/unicode.pl writes them.
 *
 *     code point   |  top: 14 bits  |  inner: 4 bits  |  leaf: 3 bits  |
 *                          |                |                |
 *     us_idna_top[] --> us_idna_inner[] --> us_idna_leaf[] --> us_idna_class[]
 *
 * Blocks that are equal are stored once.  A class is all that the algorithm
 * asks of a code point; a code point at or above US_IDNA_END has one of the
 * first two.
 */


#ifndef _US_IDNA_DATA_H_INCLUDED_
#define _US_IDNA_DATA_H_INCLUDED_


#include "../us_base.h"


#define US_IDNA_LEAF   3
#define US_IDNA_INNER  4
#define US_IDNA_END    0x33480
#define US_IDNA_RUNS   2757
#define US_IDNA_PAIRS  543

/* most code points that a byte of UTF-8 is mapped to, when decomposed */
#define US_IDNA_EXPANSION  6


typedef enum {
    US_IDNA_DISALLOWED,
    US_IDNA_IGNORED,
    US_IDNA_MAPPED,
    US_IDNA_VALID
} us_idna_kind_t;

/* Bidi_Class, of those that a valid code point has */
typedef enum {
    US_BIDI_L,
    US_BIDI_R,
    US_BIDI_AL,
    US_BIDI_AN,
    US_BIDI_EN,
    US_BIDI_ES,
    US_BIDI_CS,
    US_BIDI_ET,
    US_BIDI_ON,
    US_BIDI_BN,
    US_BIDI_NSM,
    US_BIDI_B,
    US_BIDI_S,
    US_BIDI_WS
} us_bidi_t;

/* Joining_Type */
typedef enum {
    US_JOIN_U,
    US_JOIN_L,
    US_JOIN_R,
    US_JOIN_D,
    US_JOIN_T,
    US_JOIN_C
} us_join_t;

#define US_IDNA_MARK      0x01        /* General_Category M: begins no label */
#define US_IDNA_COMBINES  0x02        /* the second of a pair */
#define US_IDNA_PAIR      0x04        /* is composed of a pair */

typedef struct {
    uint8_t  kind;                    /* us_idna_kind_t, */
    uint8_t  ccc;                     /* Canonical_Combining_Class, */
    uint8_t  bidi;                    /* us_bidi_t, */
    uint8_t  joining;                 /* us_join_t, */
    uint8_t  flags;                   /* US_IDNA_MARK ... */
} us_idna_class_t;

extern const us_idna_class_t  us_idna_class[];
extern const uint8_t          us_idna_top[];
extern const uint16_t         us_idna_inner[];
extern const uint8_t          us_idna_leaf[];

/*
 * Mappings, in order: the first code point (24 bits), how many more the run
 * has (7 bits), and 1 if they are every other one; then the code point that
 * the first is mapped to, the next to the next, or, with bit 31, the number of
 * units (15 bits) and the place (16 bits) in the pool, which is UTF-16.
 */

typedef struct {
    uint32_t  from;
    uint32_t  to;
} us_idna_run_t;

extern const us_idna_run_t  us_idna_run[US_IDNA_RUNS];
extern const uint16_t       us_idna_pool[];

/* canonical compositions, by code point; and their numbers, by pair */

typedef struct {
    uint32_t  composed;
    uint32_t  first;
    uint32_t  second;
} us_idna_pair_t;

extern const us_idna_pair_t  us_idna_pair[US_IDNA_PAIRS];
extern const uint16_t        us_idna_pair_order[US_IDNA_PAIRS];


#endif /* _US_IDNA_DATA_H_INCLUDED_ */
