
/*
 * Tokens of models of which no remaining URL has the text.  See us_tokens.c.
 */


#ifndef _US_TOKENS_H_INCLUDED_
#define _US_TOKENS_H_INCLUDED_


#include "us_record.h"


typedef struct us_tokens_s  us_tokens_t;


/*
 * Under the lock: takes a copy of the models, and a note that a model which is
 * being learnt must not be installed any more.  It takes about twice the memory
 * of the models.  NULL: no memory.
 */
us_tokens_t *us_tokens_create_locked(us_codec_t *c);
void us_tokens_free(us_tokens_t *t);

/* tokens that may be dropped, still */
size_t us_tokens_left(const us_tokens_t *t);

/* a text, class and rest, as a record has it */
void us_tokens_text(us_tokens_t *t, const uint8_t *text, size_t len);

/*
 * When the texts of all records have been looked at: the next model that has
 * such tokens is made without them, which takes some ms.  1: *number and
 * *drop, their bits, are of an operation; 0: there is none; -1: no memory.
 */
int us_tokens_next(us_tokens_t *t, uint64_t *number, us_str_t *drop);

/*
 * Under the lock, nothing intended, all texts that were added since looked at,
 * too: intends that the model of us_tokens_next() takes the place of the old
 * one.  1: a text has one of its tokens: ask us_tokens_next() again;
 * US_REPLAY_NO_ROOM, US_REPLAY_DAMAGED: there is no room.
 */
int us_tokens_replace_locked(us_tokens_t *t);

/* under the lock: somebody else has replaced a model, all begins again */
int us_tokens_lost_locked(const us_tokens_t *t);

/* under the lock, at the end: overwrites what models have left */
void us_tokens_clear_locked(us_tokens_t *t);


#endif /* _US_TOKENS_H_INCLUDED_ */
