
/*
 * Tokens of models of which no remaining URL has the text.
 *
 *   model    "example.com/"  "people/"  "ada-lovelace"  "/photos"
 *   urls     example.com/people/bob/photos
 *   then     "example.com/"  "people/"  "............"  "/photos"
 *
 * A learnt token has bytes of the URLs of its sample.  When these were erased,
 * it still has them.  It is blanked: its number, its codes, its length and the
 * context after it stay, but its text becomes bytes that are in no URL
 * (US_TOKEN_BLANK), and the texts of the model are laid anew
 * (us_model_without()).
 *
 * Why no record changes.  The texts of all records that are not erased are
 * looked at, of deleted ones, too: all that the tail of a record says are
 * tokens, so the text of each lies within the record's text.  A token whose
 * text lies in none is in no record.  Erased records are ones, and their stubs
 * are bytes.  Records that are added after the last look are not encoded under
 * the old texts: the look and the commit are in one hold of the lock, and a
 * record that was encoded before is encoded again (us_record_emit_locked()).
 * An encoder never finds a blank token in a text.
 *
 * It is not asked which tokens records use: those of a model that was just
 * learnt are in no record yet, and are worth keeping if URLs have their texts.
 *
 * A text counts as one that an erased URL has if no other has it, from
 * US_BLANK_MIN bytes on.  Several short ones that happen to lie side by side in
 * a model may spell what was in an erased URL; they are words that remaining
 * URLs have.
 *
 * A model that is being learnt meanwhile has a sample from before: it is not
 * installed (us_learn_install_locked()).  One that was installed before is in
 * the copy.
 *
 * The built-in model comes with the program, and keeps all.
 */


#include "us_tokens.h"
#include "us_record_private.h"

#include <stdlib.h>


#define US_TOKENS_HASH   16           /* bits */
#define US_TOKENS_NONE   UINT32_MAX


/* a token whose text was not met so far */

typedef struct {
    const uint8_t      *text;
    uint32_t            next;         /* of those that begin alike */
    uint16_t            token;
    uint8_t             len;
    uint8_t             model;
} us_tokens_one_t;


struct us_tokens_s {
    us_codec_t         *codec;
    uint64_t            retexts;      /* of the models of the copy */

    unsigned            nmodels;
    us_model_t         *models[US_MODELS_MAX];
    size_t              met;          /* texts so far */
    size_t              n;
    us_tokens_one_t    *all;
    uint32_t            heads[1 << US_TOKENS_HASH];
    uint8_t             drop[US_MODELS_MAX][US_DROP_BYTES(US_TOKENS_MAX)];

    /* of us_tokens_next() */
    unsigned            number;
    us_model_t         *next;
    size_t              next_met;
};


static inline uint32_t *
us_tokens_head(us_tokens_t *t, const uint8_t *text)
{
    uint32_t  w;

    memcpy(&w, text, sizeof(uint32_t));

    return &t->heads[w * 0x9e3779b1u >> (32 - US_TOKENS_HASH)];
}


us_tokens_t *
us_tokens_create_locked(us_codec_t *c)
{
    size_t            n;
    unsigned          i, k;
    uint32_t         *head;
    us_str_t          text;
    us_head_t        *h;
    us_tokens_t      *t;
    us_tokens_one_t  *one;

    h = c->arena->head;

    /* release: what is learnt from here on knows what is deleted now */

    us_release(&h->vetted, h->vetted + 1);

    t = calloc(1, sizeof(us_tokens_t));

    if (t == NULL) {
        return NULL;
    }

    t->codec = c;
    t->retexts = h->retexts;
    memset(t->heads, 0xff, sizeof(t->heads));

    for (i = 0, n = 0; i < h->models && i < US_MODELS_MAX; i++) {
        text = us_model_bytes(us_models_shared(c->arena, i));
        t->models[i] = malloc(text.len);

        if (t->models[i] == NULL) {
            goto failed;
        }

        memcpy(t->models[i], text.data, text.len);
        t->nmodels++;
        n += us_model_ntokens(t->models[i]);
    }

    t->all = malloc(n * sizeof(us_tokens_one_t) + 1);

    if (t->all == NULL) {
        goto failed;
    }

    /* the candidates of each model */

    for (i = 0; i < t->nmodels; i++) {
        for (k = US_TOKEN_TEXT; k < us_model_ntokens(t->models[i]); k++) {
            text = us_model_token_text(t->models[i], k);

            if (text.len < US_BLANK_MIN || text.data[0] == US_TOKEN_BLANK) {
                continue;
            }

            one = &t->all[t->n];
            head = us_tokens_head(t, text.data);

            one->text = text.data;
            one->len = (uint8_t) text.len;
            one->token = (uint16_t) k;
            one->model = (uint8_t) i;
            one->next = *head;
            *head = (uint32_t) t->n++;

            t->drop[i][k / 8] |= (uint8_t) (1 << k % 8);
        }
    }

    return t;

failed:

    us_tokens_free(t);

    return NULL;
}


static void
us_tokens_forget(us_model_t *m)
{
    if (m) {
        explicit_bzero(m, us_model_bytes(m).len);
        free(m);
    }
}


void
us_tokens_free(us_tokens_t *t)
{
    unsigned  i;

    if (t == NULL) {
        return;
    }

    for (i = 0; i < t->nmodels; i++) {
        us_tokens_forget(t->models[i]);
    }

    us_tokens_forget(t->next);
    free(t->all);
    free(t);
}


size_t
us_tokens_left(const us_tokens_t *t)
{
    return t->n - t->met;
}


void
us_tokens_text(us_tokens_t *t, const uint8_t *text, size_t len)
{
    uint32_t         *link;
    const uint8_t    *p, *end;
    us_tokens_one_t  *one;

    end = text + len;

    for (p = text; end - p >= US_BLANK_MIN; p++) {

        for (link = us_tokens_head(t, p); *link != US_TOKENS_NONE; ) {
            one = &t->all[*link];

            if (one->len > end - p || memcmp(one->text, p, one->len) != 0) {
                link = &one->next;
                continue;
            }

            t->drop[one->model][one->token / 8]
                &= (uint8_t) ~(1 << one->token % 8);
            t->met++;
            *link = one->next;
        }
    }
}


int
us_tokens_next(us_tokens_t *t, uint64_t *number, us_str_t *drop)
{
    size_t  i, len;

    us_tokens_forget(t->next);
    t->next = NULL;

    for ( /* void */ ; t->number < t->nmodels; t->number++) {
        drop->data = t->drop[t->number];
        drop->len = US_DROP_BYTES(us_model_ntokens(t->models[t->number]));

        for (i = 0; i < drop->len && drop->data[i] == 0; i++) { /* void */ }

        if (i == drop->len) {
            continue;
        }

        *number = t->number;
        t->next = (us_model_t *) us_model_without(t->models[t->number],
                                                  drop->data, &len);
        t->next_met = t->met;

        return t->next ? 1 : -1;
    }

    return 0;
}


int
us_tokens_replace_locked(us_tokens_t *t)
{
    int  rc;

    if (t->met != t->next_met) {
        return 1;
    }

    rc = us_models_replace_locked(&t->codec->models, t->number, t->next);

    if (rc == 0) {
        t->retexts++;
        t->number++;
    }

    return rc;
}


int
us_tokens_lost_locked(const us_tokens_t *t)
{
    return t->codec->arena->head->retexts != t->retexts;
}


void
us_tokens_clear_locked(us_tokens_t *t)
{
    us_models_clear_locked(&t->codec->models);
}
