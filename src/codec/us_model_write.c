
/*
 * Writes a model's core.
 *
 *     token      "youtube.com/watch?v="      "tube.com/"       "watch"
 *                 |                              |                |
 *     text     ...youtube.com/watch?v=...  <-----'----------------'
 *
 * Texts are shared: a token whose text lies within that of a longer one is
 * pointed into it.  Those that remain, the hosts, lie in the order of the
 * most used token that they hold: tokens are numbered by use, and the decoder
 * finds the common texts in few cache lines.
 */


#include "us_model_private.h"

#include <stdlib.h>


#define US_TEXT_PAIRS  65536


typedef struct {
    const us_model_def_t  *def;

    uint8_t               *text;      /* all hosts, as they were found */
    size_t                 used;
    uint16_t              *owner;     /* the host of each byte */

    /* positions of each pair of bytes, latest first */
    int32_t               *heads;
    int32_t               *chain;

    uint16_t              *host;      /* of each token */
    uint8_t               *within;    /* where in the host it begins */
    uint32_t              *place;     /* of each host, in the core */

    uint8_t               *out;       /* the hosts as the core has them */
} us_pool_t;


static int us_pool_init(us_pool_t *p, const us_model_def_t *def);
static void us_pool_free(us_pool_t *p);
static int us_pool_find(const us_pool_t *p, const us_token_def_t *t);
static void us_pool_add(us_pool_t *p, unsigned token);
static void us_pool_share(us_pool_t *p);
static size_t us_pool_lay(us_pool_t *p);
static uint32_t us_pool_token(const us_pool_t *p, unsigned i);
static uint8_t *us_model_write_core(us_pool_t *p, size_t text, size_t *len);
static void us_model_write_codes(const us_model_def_t *def, uint16_t *nlen,
    uint16_t *symbols);
static int us_model_cmp_symbol(const void *one, const void *two);


static int
us_pool_init(us_pool_t *p, const us_model_def_t *def)
{
    size_t    room;
    unsigned  i;

    memset(p, 0, sizeof(us_pool_t));

    room = 256;

    for (i = US_TOKEN_TEXT; i < def->ntokens; i++) {
        room += def->tokens[i].len;
    }

    p->def = def;
    p->text = malloc(room);
    p->owner = malloc(room * sizeof(uint16_t));
    p->heads = malloc(US_TEXT_PAIRS * sizeof(int32_t));
    p->chain = malloc(room * sizeof(int32_t));
    p->host = calloc(def->ntokens, sizeof(uint16_t));
    p->within = calloc(def->ntokens, 1);
    p->place = calloc(def->ntokens, sizeof(uint32_t));
    p->out = malloc(room);

    return p->text && p->owner && p->heads && p->chain && p->host
           && p->within && p->place && p->out ? 0 : -1;
}


static void
us_pool_free(us_pool_t *p)
{
    free(p->out);
    free(p->place);
    free(p->within);
    free(p->host);
    free(p->chain);
    free(p->heads);
    free(p->owner);
    free(p->text);
}


/* the position of a text among the hosts, within one of them; or -1 */

static int
us_pool_find(const us_pool_t *p, const us_token_def_t *t)
{
    int32_t  at;

    for (at = p->heads[t->text[0] << 8 | t->text[1]]; at != -1;
         at = p->chain[at])
    {
        if ((size_t) at + t->len <= p->used
            && p->owner[at] == p->owner[at + t->len - 1]
            && memcmp(p->text + at, t->text, t->len) == 0)
        {
            return at;
        }
    }

    return -1;
}


static void
us_pool_add(us_pool_t *p, unsigned token)
{
    unsigned               k, pair;
    const us_token_def_t  *t;

    t = &p->def->tokens[token];

    for (k = 0; k < t->len; k++) {
        p->text[p->used + k] = t->text[k];
        p->owner[p->used + k] = (uint16_t) token;

        if (k + 1u < t->len) {
            pair = (unsigned) t->text[k] << 8 | t->text[k + 1];
            p->chain[p->used + k] = p->heads[pair];
            p->heads[pair] = (int32_t) (p->used + k);
        }
    }

    p->used += t->len;
}


/* finds a host for each token: long ones first, so that they can be hosts */

static void
us_pool_share(us_pool_t *p)
{
    int       at, begin;
    unsigned  i, longest;

    memset(p->heads, 0xff, US_TEXT_PAIRS * sizeof(int32_t));

    for (longest = US_TOKEN_MAX; longest > 1; longest--) {
        for (i = US_TOKEN_TEXT; i < p->def->ntokens; i++) {

            if (p->def->tokens[i].len != longest) {
                continue;
            }

            at = us_pool_find(p, &p->def->tokens[i]);

            if (at == -1) {
                p->host[i] = (uint16_t) i;
                us_pool_add(p, i);
                continue;
            }

            for (begin = at; begin > 0
                             && p->owner[begin - 1] == p->owner[at]; begin--)
            {
                /* void */
            }

            p->host[i] = p->owner[at];
            p->within[i] = (uint8_t) (at - begin);
        }
    }
}


/* writes the hosts, after the single bytes; returns what they take */

static size_t
us_pool_lay(us_pool_t *p)
{
    size_t    used;
    unsigned  i, host;

    for (used = 0; used < 256; used++) {
        p->out[used] = (uint8_t) used;
    }

    for (i = US_TOKEN_TEXT; i < p->def->ntokens; i++) {
        host = p->host[i];

        if (p->place[host] == 0) {
            p->place[host] = (uint32_t) used;
            memcpy(p->out + used, p->def->tokens[host].text,
                   p->def->tokens[host].len);
            used += p->def->tokens[host].len;
        }
    }

    return used;
}


/* a token: where its text is, its length, the context after it */

static uint32_t
us_pool_token(const us_pool_t *p, unsigned i)
{
    uint32_t               at, len;
    const us_token_def_t  *t;

    t = &p->def->tokens[i];

    if (i < US_TOKEN_RUN) {
        at = i;
        len = 1;

    } else if (i < US_TOKEN_TEXT) {
        at = 0;
        len = us_token_run_len(i);

    } else {
        at = p->place[p->host[i]] + p->within[i];
        len = t->len;
    }

    return at | len << US_TEXT_BITS | (uint32_t) t->ctx << US_CTX_SHIFT;
}


/* the codes: how many symbols of each length, and which */

static void
us_model_write_codes(const us_model_def_t *def, uint16_t *nlen,
    uint16_t *symbols)
{
    size_t    n;
    unsigned  i, l;

    for (i = 0; i < def->ncontexts + US_CODES; i++, nlen += US_NLEN) {
        memcpy(nlen, def->codes[i].nlen, sizeof(def->codes[i].nlen));

        for (l = 1, n = 0; l <= US_HUFFMAN_MAX; l++) {
            memcpy(symbols, def->codes[i].symbols + n,
                   nlen[l] * sizeof(uint16_t));
            qsort(symbols, nlen[l], sizeof(uint16_t), us_model_cmp_symbol);

            symbols += nlen[l];
            n += nlen[l];
        }
    }
}


uint8_t *
us_model_write(const us_model_def_t *def, size_t *len)
{
    uint8_t    *core;
    us_pool_t   p;

    core = NULL;

    if (us_pool_init(&p, def) == 0) {
        us_pool_share(&p);
        core = us_model_write_core(&p, us_pool_lay(&p), len);
    }

    us_pool_free(&p);

    return core;
}


/* text: the bytes of the hosts */

static uint8_t *
us_model_write_core(us_pool_t *p, size_t text, size_t *len)
{
    size_t                 i, ncodes, nsymbols;
    uint8_t               *core;
    unsigned               l;
    us_model_t            *m;
    const us_model_def_t  *def;

    def = p->def;

    if (text + US_TEXT_SLACK > US_TEXT_MAX) {
        return NULL;
    }

    ncodes = def->ncontexts + US_CODES;
    nsymbols = 0;

    for (i = 0; i < ncodes; i++) {
        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            nsymbols += def->codes[i].nlen[l];
        }
    }

    *len = sizeof(us_model_t) + ncodes * sizeof(uint16_t) * US_NLEN
           + def->ntokens * sizeof(uint32_t) + nsymbols * sizeof(uint16_t)
           + text + US_TEXT_SLACK;
    *len = (*len + 7) & ~(size_t) 7;

    core = calloc(1, *len);
    if (core == NULL) {
        return NULL;
    }

    m = (us_model_t *) core;

    m->magic = US_MODEL_MAGIC;
    m->version = US_MODEL_VERSION;
    m->ncontexts = (uint8_t) def->ncontexts;
    m->core_size = (uint32_t) *len;
    m->ntokens = def->ntokens;
    m->nsymbols = (uint32_t) nsymbols;
    m->text_size = (uint32_t) (text + US_TEXT_SLACK);
    m->nlen = sizeof(us_model_t);
    m->tokens = m->nlen + (uint32_t) (ncodes * sizeof(uint16_t) * US_NLEN);
    m->symbols = m->tokens + m->ntokens * (uint32_t) sizeof(uint32_t);
    m->text = m->symbols + m->nsymbols * (uint32_t) sizeof(uint16_t);

    for (i = 0; i < def->ntokens; i++) {
        ((uint32_t *) (core + m->tokens))[i] = us_pool_token(p, (unsigned) i);
    }

    us_model_write_codes(def, (uint16_t *) (core + m->nlen),
                         (uint16_t *) (core + m->symbols));

    memcpy(core + m->text, p->out, text);

    us_model_seal(core, *len);

    return core;
}


static int
us_model_cmp_symbol(const void *one, const void *two)
{
    return *(const uint16_t *) one - *(const uint16_t *) two;
}
