
/*
 * What reading (us_record.c) and writing (us_record_write.c) of records share.
 */


#ifndef _US_RECORD_PRIVATE_H_INCLUDED_
#define _US_RECORD_PRIVATE_H_INCLUDED_


#include "us_record.h"
#include "us_guess.h"
#include "us_header.h"
#include "us_prefix.h"


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

    uint8_t           own[US_TEXT_BUFFER];     /* the text being encoded */
    uint8_t           text[US_TEXT_BUFFER + US_DECODE_SLACK];
    uint8_t           bits[US_RECORD_BUFFER + US_HEADER_BYTES];
    uint8_t           buf[US_RECORD_BUFFER];
};


/* reads a record's header; 0, or -1: it is damaged */

static inline int
us_record_open(us_codec_t *c, uint64_t id, us_header_t *h, us_bitin_t *b)
{
    us_bits_t  record;

    us_log_get(c->arena, id, c->buf, &record);
    us_guess_learn(&c->guess, c->arena, id);

    return us_header_read(&c->models, id, &record, h, b);
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


#define US_CANDIDATES     2           /* records that are looked at */

/* these, the seat before, and no reference */
#define US_CHOICES        (US_CANDIDATES + 2)

/* how a text can begin: see us_reference.c */

typedef struct {
    us_header_t       header;
    unsigned          seat;
    unsigned          depth;
    uint32_t          spares;         /* about the price of these bytes */
    us_start_t        start;
} us_choice_t;

/*
 * c->own is a text of len bytes, to be written as record next + seat, if all
 * before it in the group are.  Returns the number of choices.
 */
unsigned us_references(us_codec_t *c, const us_seat_t *s, unsigned seat,
    size_t len, uint64_t next, us_choice_t choices[US_CHOICES]);


#endif /* _US_RECORD_PRIVATE_H_INCLUDED_ */
