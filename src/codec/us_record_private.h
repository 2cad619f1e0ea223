
/*
 * What reading (us_record.c) and writing (us_record_write.c) of records share.
 */


#ifndef _US_RECORD_PRIVATE_H_INCLUDED_
#define _US_RECORD_PRIVATE_H_INCLUDED_


#include "us_record.h"
#include "us_models.h"
#include "us_prefix.h"


/* common prefixes that a header can express */

#define US_CUT_MIN      4
#define US_CUT_MAX      (US_CUT_MIN + US_PREFIX_SYMBOLS - 1)


/* the symbols of US_CODE_HEAD, up to US_TAIL + US_DISTANCE_BITS */
typedef enum {
    US_WHOLE = 0,                     /* the whole text, in tokens */
    US_RAW,                           /* the whole text, as it is */
    US_OTHER,                         /* no kind: a header again follows */
    US_TAIL                           /* what follows a reference's prefix */
} us_header_kind_t;


typedef struct {
    us_header_kind_t   kind;
    unsigned           number;        /* of the model */
    uint64_t           reference;     /* US_TAIL: an earlier record */
    unsigned           cut;           /* US_TAIL: the prefix, with the class */
} us_header_t;


/*
 * Reads the header of record id: 0, and *b is where the tail begins, or -1:
 * these bits are no record.
 */
int us_header_read(us_models_t *ms, uint64_t id, const us_bits_t *record,
    us_header_t *h, us_bitin_t *b);

/* writes it for record id; at most US_HEADER_BYTES */
#define US_HEADER_BYTES  24

void us_header_write(us_models_t *ms, uint64_t id, const us_header_t *h,
    us_bitout_t *o);

/* bits that the header of a record around id would take */
unsigned us_header_bits(const us_models_t *ms, uint64_t id,
    const us_header_t *h);

/* counts its symbols, for a model to be learnt */
void us_header_count(uint64_t id, const us_header_t *h, uint32_t *head,
    uint32_t *near, uint32_t *far);


/* where records probably lie: see us_record.c */

#define US_GUESS_UNIT    16           /* of the log's units: 8 bytes */


/* zero at first */

typedef struct {
    uint32_t      *bases;             /* of lines, in US_GUESS_UNIT; 0: none */
    uint64_t       n;
    unsigned       failed:1;          /* there was no memory */
} us_guess_t;


void us_guess_free(us_guess_t *g);

/* room for a line; -1: there is none */
int us_guess_grow(us_guess_t *g, uint64_t line);

/* a position in units from the start of the zone; 0: not known */
uint64_t us_guess_place(const us_guess_t *g, uint64_t id);

/* asks for the line of id, and for the record */
void us_guess_prefetch(const us_guess_t *g, const us_arena_t *a, uint64_t id);


/* remembers the line of id, which the caller has just read */

static inline void
us_guess_learn(us_guess_t *g, const us_arena_t *a, uint64_t id)
{
    uint32_t  base;
    uint64_t  line;

    line = id / US_LOG_GROUP;
    base = (uint32_t) (us_log_base(a, id) / US_GUESS_UNIT);

    if (line >= g->n && us_guess_grow(g, line) == -1) {
        return;
    }

    if (g->bases[line] != base) {
        g->bases[line] = base;
    }
}


/* a damaged store could have longer chains: they are not followed */
#define US_HOPS_READ      16

/* records of a chain that a group of comparisons follows */
#define US_HOPS_TOGETHER  4

/* the class of a record that is to be compared by itself */
#define US_CLASS_ALONE    256

/*
 * Tails of a group: none is longer than its text, and two more bytes; each may
 * be encoded twice.  Only what is used costs memory.
 */
#define US_TAILS_SIZE     (2 * US_STORE_GROUP * US_TEXT_BUFFER)

#define US_SEAT_NONE      ((unsigned) -1)

/* records in a chain; tuned with make bench-engine */
#define US_HOPS           4


/* a new URL of the group; the order of calls: us_record.h */

typedef struct {
    us_header_t       header;
    unsigned          seat;           /* the reference is that seat */
    unsigned          depth;          /* references to follow */
    unsigned          klass;
    us_str_t          rest;
    size_t            at;             /* of the tail in c->tails */
    size_t            nbits;
    uint32_t          spares;         /* of the reference, see us_choice_t */

    unsigned          emitted:1;      /* as id */
    unsigned          added:1;
    uint64_t          id;

    unsigned          nprefixes;
    us_prefix_t       prefixes[US_PREFIXES];
} us_seat_t;


/* a record of a chain */

typedef struct {
    uint64_t          id;
    us_header_t       header;
    us_bitin_t        bits;           /* after the header */
} us_link_t;


/* from the record itself inwards; link k has the text from its cut on */

typedef struct {
    unsigned          n;
    us_link_t         links[US_HOPS_READ];
} us_chain_t;


struct us_codec_s {
    us_arena_t       *arena;
    us_models_t       models;
    us_guess_t        guess;

    us_seat_t         seats[US_STORE_GROUP];
    unsigned          last;           /* seat encoded last, or none */

    uint8_t          *tails;
    size_t            tails_used;
    size_t            tails_most;     /* that were used so far */

    uint8_t           own[US_TEXT_BUFFER];     /* the text being encoded */
    uint8_t           text[US_TEXT_BUFFER + US_DECODE_SLACK];
    uint8_t           bits[US_RECORD_BUFFER + US_HEADER_BYTES];
    uint8_t           buf[US_RECORD_BUFFER];
};


/* of an erased record: its stub, as a raw text; 0, or -1: it has none */
int us_stub_read(us_codec_t *c, uint64_t id, us_header_t *h, us_bitin_t *b);


/* reads a record's header; 0, or -1: it is damaged */

static inline int
us_record_open(us_codec_t *c, uint64_t id, us_header_t *h, us_bitin_t *b)
{
    us_bits_t  record;

    us_log_get(c->arena, id, c->buf, &record);
    us_guess_learn(&c->guess, c->arena, id);

    return us_header_read(&c->models, id, &record, h, b) == 0
           ? 0 : us_stub_read(c, id, h, b);
}


/* adds a record and those that it refers to; -1: one of them is damaged */
int us_chain_records(us_codec_t *c, us_chain_t *chain, uint64_t id);

/* bits of a very long record are gone when those of another have been read */

static inline int
us_chain_again(us_codec_t *c, const us_chain_t *chain, us_link_t *l)
{
    if (l->bits.base != c->buf || chain->n == 1) {
        return 0;
    }

    return us_record_open(c, l->id, &l->header, &l->bits);
}


#endif /* _US_RECORD_PRIVATE_H_INCLUDED_ */
