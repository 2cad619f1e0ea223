
/*
 * Records: the text of a URL to bits and back.
 *
 *   text of record 93   \3 example.com/news/2013/05/    a.html
 *                       \____________ cut ________/\____ tail ____/
 *                          supplied by record 71
 *
 *   record 93           | header: TAIL, 22 back, cut | tokens of the tail |
 *   record 71           | header: WHOLE              | tokens of the text |
 *
 * The text is a class byte and the rest.  A record has the whole of it, or
 * what follows the first `cut` bytes of an earlier record's text.  The
 * reference is the record that really supplies the last of these bytes, so
 * each hop of a chain contributes; chains have at most US_HOPS records.
 *
 * FORMAT of the header, lowest bit first; symbols are those of US_CODE_HEAD,
 * _NEAR, _FAR:
 *
 *   | WHOLE |                                tokens ...
 *   | RAW   |                                8 bits for each byte ...
 *   | TAIL + n | n - 1 bits | prefix symbol |   tokens ...
 *   | OTHER | number: 3 |                    a header again, see below
 *
 * TAIL + n: the reference is `distance` records back, a number of n bits, of
 * which the highest is 1 and not written.  The prefix symbol is the common
 * prefix less US_CUT_MIN; near references (distance below US_NEAR) have a code
 * of their own, because neighbours share more.
 *
 * A header is written under the newest model at the record's id.  OTHER: model
 * `number` (US_MODEL_BUILTIN: the built-in one) has coded the rest of the
 * record, a header of its own included.
 *
 * A record that was erased is ones, which are no header.  If others refer to
 * it, a stub has what they need of its text (us_log.c), and is read in its
 * place.  Nothing refers to the id of a deleted URL that did not before.
 *
 * See us_record_write.c for how a reference is chosen.
 */


#include "us_record_private.h"
#include "../us_huge.h"

#include <stdlib.h>
#include <sys/mman.h>


#define US_DISTANCE_BITS 40
#define US_NEAR          16


static inline unsigned
us_header_width(uint64_t distance)
{
    return 64 - (unsigned) __builtin_clzll(distance);
}


int
us_header_read(us_models_t *ms, uint64_t id, const us_bits_t *record,
    us_header_t *h, us_bitin_t *b)
{
    int                  symbol, prefix;
    unsigned             width;
    uint64_t             distance;
    const us_decoder_t  *d;

    b->base = record->data;
    b->pos = record->bit;
    b->end = record->bit + (uint64_t) record->units * 4;

    h->number = us_models_number(ms, id);
    d = ms->tables[h->number].decoder;

    symbol = us_decoder_symbol(d, US_CODE_HEAD, b);

    if (symbol == US_OTHER) {
        if (b->end - b->pos < 3) {
            return -1;
        }

        h->number = us_bitin_peek(b) & 7;
        b->pos += 3;

        if (ms->tables[h->number].model == NULL) {
            return -1;
        }

        d = ms->tables[h->number].decoder;
        symbol = us_decoder_symbol(d, US_CODE_HEAD, b);
    }

    if (symbol == US_WHOLE || symbol == US_RAW) {
        h->kind = (us_header_kind_t) symbol;
        h->cut = 0;
        return 0;
    }

    if (symbol <= US_TAIL || symbol > US_TAIL + US_DISTANCE_BITS) {
        return -1;
    }

    width = (unsigned) symbol - US_TAIL - 1;

    if (b->end - b->pos < width) {
        return -1;
    }

    distance = (us_bitin_peek(b) & (((uint64_t) 1 << width) - 1))
               | (uint64_t) 1 << width;
    b->pos += width;

    prefix = us_decoder_symbol(d, distance < US_NEAR ? US_CODE_NEAR
                                                     : US_CODE_FAR, b);

    if (prefix < 0 || distance > id) {
        return -1;
    }

    h->kind = US_TAIL;
    h->reference = id - distance;
    h->cut = (unsigned) prefix + US_CUT_MIN;

    return 0;
}


int
us_stub_read(us_codec_t *c, uint64_t id, us_header_t *h, us_bitin_t *b)
{
    us_str_t  text;

    if (!us_log_stub(c->arena, id, &text)) {
        return -1;
    }

    h->kind = US_RAW;
    h->number = US_MODEL_BUILTIN;
    h->cut = 0;

    b->base = text.data;
    b->pos = 0;
    b->end = (uint64_t) text.len * 8;

    return 0;
}


static inline void
us_header_put(us_bitout_t *o, uint32_t code)
{
    us_bitout_put(o, us_code_bits(code), us_code_len(code));
}


/* the code of a common prefix with a record at this distance */

static inline uint32_t
us_header_prefix(const us_header_codes_t *codes, uint64_t distance,
    unsigned cut)
{
    return distance < US_NEAR ? codes->near[cut - US_CUT_MIN]
                              : codes->far[cut - US_CUT_MIN];
}


void
us_header_write(us_models_t *ms, uint64_t id, const us_header_t *h,
    us_bitout_t *o)
{
    unsigned                  newest, width;
    uint64_t                  distance, low;
    const us_header_codes_t  *codes;

    newest = us_models_number(ms, id);

    if (h->number != newest) {
        us_header_put(o, ms->tables[newest].codes.head[US_OTHER]);
        us_bitout_put(o, h->number, 3);
    }

    codes = &ms->tables[h->number].codes;

    if (h->kind != US_TAIL) {
        us_header_put(o, codes->head[h->kind]);
        return;
    }

    distance = id - h->reference;
    width = us_header_width(distance) - 1;

    us_header_put(o, codes->head[US_TAIL + width + 1]);

    low = distance & (((uint64_t) 1 << width) - 1);
    us_bitout_put(o, (uint32_t) low & 0xfffff, width < 20 ? width : 20);

    if (width > 20) {
        us_bitout_put(o, (uint32_t) (low >> 20), width - 20);
    }

    us_header_put(o, us_header_prefix(codes, distance, h->cut));
}


unsigned
us_header_bits(const us_models_t *ms, uint64_t id, const us_header_t *h)
{
    unsigned                  width;
    uint64_t                  distance;
    const us_header_codes_t  *codes;

    if (ms->encoder == NULL) {
        return 0;
    }

    codes = &ms->tables[ms->number].codes;

    if (h->kind != US_TAIL) {
        return us_code_len(codes->head[h->kind]);
    }

    distance = id - h->reference;
    width = us_header_width(distance) - 1;

    return us_code_len(codes->head[US_TAIL + width + 1]) + width
           + us_code_len(us_header_prefix(codes, distance, h->cut));
}


void
us_header_count(uint64_t id, const us_header_t *h, uint32_t *head,
    uint32_t *near, uint32_t *far)
{
    uint64_t  distance;

    if (h->kind != US_TAIL) {
        head[h->kind]++;
        return;
    }

    distance = id - h->reference;

    head[US_TAIL + us_header_width(distance)]++;

    if (distance < US_NEAR) {
        near[h->cut - US_CUT_MIN]++;

    } else {
        far[h->cut - US_CUT_MIN]++;
    }
}


/*
 * Where records probably lie.
 *
 * The place of a record is the base of its line in the log plus the lengths of
 * the records before it (us_log.c).  So the line must arrive before the record
 * can be asked for: two cache misses, one after the other, and two misses of
 * the TLB.
 *
 * A handle remembers the bases of the lines that it has read, 4 bytes for 56
 * records, in private memory.  Between the bases of two lines, the place of a
 * record is in proportion to its number.  So the line and the record can be
 * asked for at once.  Of 2.19 million records of reddit_submissions 92 % begin
 * in the two cache lines that are asked for.
 *
 * From 15 million records on the bases are in huge pages: else each guess would
 * miss the TLB.
 *
 * All this is a hint: a wrong base, after a zone was formatted anew, costs time
 * only, and is put right when the line is read.
 */

#define US_GUESS_MIN     4096         /* lines at first */
#define US_GUESS_LINES   ((uint64_t) 1 << 34)

/* of 56 records, if the base of the next line is not known, in 8 bytes */
#define US_GUESS_SPAN    104

/* cache lines that are asked for: that many bytes before, and after */
#define US_GUESS_MARGIN  32


void
us_guess_free(us_guess_t *g)
{
    if (g->bases) {
        munmap(g->bases, g->n * sizeof(uint32_t));
    }
}


int
us_guess_grow(us_guess_t *g, uint64_t line)
{
    void      *p;
    uint64_t   n;

    if (line < g->n) {
        return 0;
    }

    if (g->failed || line >= US_GUESS_LINES) {
        return -1;
    }

    for (n = US_GUESS_MIN; n <= line; n *= 2) { /* void */ }

    p = us_huge_map(n * sizeof(uint32_t), n * sizeof(uint32_t));

    if (p == NULL) {
        g->failed = 1;
        return -1;
    }

    if (g->bases) {
        memcpy(p, g->bases, g->n * sizeof(uint32_t));
        us_guess_free(g);
    }

    g->bases = p;
    g->n = n;

    return 0;
}


uint64_t
us_guess_place(const us_guess_t *g, uint64_t id)
{
    uint64_t  line, base, span;

    line = id / US_LOG_GROUP;

    if (line >= g->n || g->bases[line] == 0) {
        return 0;
    }

    base = g->bases[line];
    span = US_GUESS_SPAN;

    if (line + 1 < g->n && g->bases[line + 1] > base) {
        span = g->bases[line + 1] - base;
    }

    return (base + span * (id % US_LOG_GROUP) / US_LOG_GROUP) * US_GUESS_UNIT;
}


void
us_guess_prefetch(const us_guess_t *g, const us_arena_t *a, uint64_t id)
{
    uint64_t        place;
    const uint8_t  *p;

    us_log_prefetch(a, id);

    place = us_guess_place(g, id);

    if (place) {
        p = a->base + place / 2;

        __builtin_prefetch(p - US_GUESS_MARGIN);
        __builtin_prefetch(p + US_GUESS_MARGIN);
    }
}


us_codec_t *
us_codec_create(us_arena_t *a)
{
    us_codec_t  *c;

    c = calloc(1, sizeof(us_codec_t));
    if (c == NULL) {
        return NULL;
    }

    c->arena = a;
    c->last = US_SEAT_NONE;

    c->tails = calloc(1, US_TAILS_SIZE);

    if (c->tails == NULL || us_models_open(&c->models, a) == -1) {
        free(c->tails);
        free(c);
        return NULL;
    }

    return c;
}


void
us_codec_destroy(us_codec_t *c)
{
    us_models_close(&c->models);
    us_guess_free(&c->guess);
    free(c->tails);
    free(c);
}


/*
 * Fewer comparisons than these are done one by one: the text of a record is
 * compared while its reference is fetched.
 */
#define US_TOGETHER_MIN    2


/* writes what the rest of a record says; its length, or -1 */

static ssize_t
us_record_put(us_codec_t *c, const us_header_t *h, us_bitin_t *b,
    uint8_t *text, size_t need)
{
    size_t  i, n;

    if (h->kind == US_RAW) {
        n = (b->end - b->pos) / 8;

        if (n > US_URL_MAX + 1) {
            return -1;
        }

        for (i = 0; i < n; i++, b->pos += 8) {
            text[i] = (uint8_t) us_bitin_peek(b);
        }

        return (ssize_t) n;
    }

    return us_decode(c->models.tables[h->number].decoder,
                     h->cut ? us_model_tail_ctx(text[h->cut - 1])
                            : US_CTX_START,
                     b, text + h->cut, need - h->cut,
                     US_URL_MAX + 1 - h->cut);
}


int
us_chain_records(us_codec_t *c, us_chain_t *chain, uint64_t id)
{
    us_link_t  *l;

    for ( ;; ) {
        if (chain->n == US_HOPS_READ) {
            return -1;
        }

        l = &chain->links[chain->n];
        l->id = id;

        if (us_record_open(c, id, &l->header, &l->bits) == -1) {
            return -1;
        }

        chain->n++;

        if (l->header.kind != US_TAIL) {
            return 0;
        }

        id = l->header.reference;
        us_guess_prefetch(&c->guess, c->arena, id);
    }
}


/*
 * Decodes the first `most` bytes of a record, or all that it has; some more may
 * come.  Returns their number, 0: it is damaged.
 */

static size_t
us_record_text(us_codec_t *c, uint64_t id, uint8_t *text, size_t most)
{
    size_t       cut, need;
    ssize_t      n;
    unsigned     k;
    us_link_t   *l;
    us_chain_t   chain;

    chain.n = 0;

    if (us_chain_records(c, &chain, id) == -1) {
        return 0;
    }

    for (k = chain.n; k-- > 0; /* void */) {
        l = &chain.links[k];
        need = k ? chain.links[k - 1].header.cut : most;
        cut = l->header.cut;

        if (us_chain_again(c, &chain, l) == -1) {
            return 0;
        }

        if (cut >= most) {
            return cut;
        }

        /* a reference that supplies no byte here */

        if (need <= cut) {
            continue;
        }

        n = us_record_put(c, &l->header, &l->bits, text, need);

        if (n < 0 || (k && cut + (size_t) n < need)) {
            return 0;
        }

        if (k == 0) {
            return cut + (size_t) n;
        }
    }

    return 0;
}


unsigned
us_record_reference(us_codec_t *c, uint64_t id, uint64_t *reference)
{
    us_bitin_t   b;
    us_header_t  h;

    if (us_record_open(c, id, &h, &b) == -1 || h.kind != US_TAIL) {
        return 0;
    }

    *reference = h.reference;

    return h.cut;
}


size_t
us_record_decode(us_codec_t *c, uint64_t id, uint8_t *text)
{
    return us_record_decode_head(c, id, text, US_URL_MAX + 1);
}


size_t
us_record_decode_head(us_codec_t *c, uint64_t id, uint8_t *text, size_t most)
{
    size_t  len;

    len = us_record_text(c, id, c->text, most);

    if (len == 0) {
        text[0] = 0;
        return 1;
    }

    len = len < most ? len : most;
    memcpy(text, c->text, len);

    return len;
}


/* whether raw bytes equal a text, or begin with it */

static int
us_record_is_raw(us_bitin_t *b, us_str_t rest, size_t limit, int whole,
    uint8_t *klass)
{
    size_t   i, n;
    uint8_t  byte;

    n = (b->end - b->pos) / 8;

    if (whole ? n != limit : n < limit) {
        return 0;
    }

    for (i = 0; i < limit; i++, b->pos += 8) {
        byte = (uint8_t) us_bitin_peek(b);

        if (i == 0) {
            *klass = byte;

        } else if (byte != rest.data[i - 1]) {
            return 0;
        }
    }

    return 1;
}


/*
 * A text is compared with a record from the record itself inwards: the bytes
 * after its common prefix with the reference, then the end of that prefix by
 * the reference, and so on.
 */

typedef struct {
    uint64_t     id;                  /* the next record of the chain */
    us_bits_t    bits;                /* where it lies */
    us_str_t     rest;
    size_t       limit;               /* bytes left to be compared */
    int          whole;               /* it has no more bytes than these */
    uint8_t      klass;               /* the first byte: not in rest */
} us_walk_t;


static inline void
us_walk(us_walk_t *w, uint64_t id, us_str_t rest)
{
    w->id = id;
    w->rest = rest;
    w->limit = rest.len + 1;
    w->whole = 1;
    w->klass = 0;
}


/*
 * Reads the header of the record that was found.  What is to be compared goes
 * to *next; its len is 0 and its decoder NULL if that is nothing.  1: the
 * chain goes on, 0: it ends here, -1: it is another text.
 */

static inline int
us_walk_step(us_codec_t *c, us_walk_t *w, us_comparison_t *next)
{
    us_header_t  h;

    next->decoder = NULL;
    next->len = 0;

    if (us_header_read(&c->models, w->id, &w->bits, &h, &next->bits) == -1
        && us_stub_read(c, w->id, &h, &next->bits) == -1)
    {
        return -1;
    }

    if (h.kind == US_RAW) {
        return us_record_is_raw(&next->bits, w->rest, w->limit, w->whole,
                                &w->klass) ? 0 : -1;
    }

    next->begins = !w->whole;

    if (h.kind == US_WHOLE) {
        next->decoder = c->models.tables[h.number].decoder;
        next->ctx = US_CTX_START;
        next->text = w->rest.data - 1;
        next->len = w->limit;
        next->first = &w->klass;
        return 0;
    }

    w->id = h.reference;

    if (h.cut > w->limit) {
        next->len = h.cut;
        return w->whole ? -1 : 1;
    }

    /* the tail of the record itself can be empty, and must be if it is here */

    if (h.cut < w->limit || w->whole) {
        next->decoder = c->models.tables[h.number].decoder;
        next->ctx = us_model_tail_ctx(w->rest.data[h.cut - 2]);
        next->text = w->rest.data + h.cut - 1;
        next->len = w->limit - h.cut;
        next->first = NULL;
    }

    w->limit = h.cut;
    w->whole = 0;

    return 1;
}


int
us_record_equal(us_codec_t *c, uint64_t id, us_str_t rest)
{
    int              rc;
    unsigned         hops;
    us_walk_t        w;
    us_comparison_t  next;

    us_walk(&w, id, rest);

    for (hops = 0; hops < US_HOPS_READ; hops++) {
        us_log_get(c->arena, w.id, c->buf, &w.bits);
        us_guess_learn(&c->guess, c->arena, w.id);
        rc = us_walk_step(c, &w, &next);

        if (rc == 1) {
            us_guess_prefetch(&c->guess, c->arena, w.id);
        }

        if (rc == -1 || (next.decoder && !us_decode_equal(&next))) {
            return -1;
        }

        if (rc == 0) {
            return w.klass;
        }
    }

    return -1;
}


/*
 * Makes a comparison of the last part of a record with a rest one with what it
 * may have else.  0: that takes more than this part, or begins before the rest.
 */

static int
us_comparison_other(us_comparison_t *c, us_str_t rest, unsigned other)
{
    static const uint8_t  begin[] = "?www.";

    if (other == US_OTHER_WITHOUT) {
        if (c->len < 4) {
            return 0;
        }

        c->text += 4;
        c->len -= 4;

    } else if (c->first) {
        c->text = begin;
        c->len = sizeof(begin) - 1;
        c->begins = 1;
        return 1;

    } else if (c->text - rest.data > 4) {
        c->text -= 4;
        c->len += 4;

    } else {
        return 0;
    }

    if (c->first == NULL) {
        c->ctx = us_model_tail_ctx(c->text[-1]);
    }

    return 1;
}


/*
 * All chains are followed at once, a record at a time.  Then the texts are
 * compared.  Records that are very long, or at the end of a very long chain,
 * are compared one by one.
 */

void
us_record_compare(us_codec_t *c, us_candidate_t *all, unsigned n)
{
    int              rc;
    unsigned         i, k, hops, live, ncomp, nlast;
    unsigned         of[US_CANDIDATE_GROUP];
    unsigned         owner[US_CANDIDATE_GROUP * US_HOPS_TOGETHER];
    us_walk_t       *w, walks[US_CANDIDATE_GROUP];
    us_candidate_t  *one;
    us_comparison_t  comp[US_CANDIDATE_GROUP * US_HOPS_TOGETHER];

    if (n < US_TOGETHER_MIN) {
        for (i = 0; i < n; i++) {
            all[i].klass = us_record_equal(c, all[i].id, all[i].rest);
        }

        return;
    }

    ncomp = 0;
    nlast = 0;
    live = n;

    for (i = 0; i < n; i++) {
        us_walk(&walks[i], all[i].id, all[i].rest);
        all[i].klass = 0;
        of[i] = i;
    }

    for (hops = 0; hops < US_HOPS_TOGETHER && live; hops++) {

        for (i = 0, k = 0; i < live; i++) {
            w = &walks[of[i]];

            /* a very long one is compared by itself */

            if (!us_log_find(c->arena, w->id, &w->bits)) {
                all[of[i]].klass = US_CLASS_ALONE;
                continue;
            }

            __builtin_prefetch(w->bits.data);
            __builtin_prefetch(w->bits.data + w->bits.units / 2);
            of[k++] = of[i];
        }

        for (i = 0, live = 0; i < k; i++) {
            rc = us_walk_step(c, &walks[of[i]], &comp[ncomp]);

            if (rc == -1) {
                one = &all[of[i]];
                one->klass = -1;

                /* it begins with more bytes than it may have */

                if (comp[ncomp].len > one->rest.len + 1 + 4) {
                    one->other = US_OTHER_NONE;
                }

                continue;
            }

            if (comp[ncomp].decoder) {
                owner[ncomp++] = of[i];
            }

            if (rc == 1) {
                us_log_prefetch(c->arena, walks[of[i]].id);
                of[live++] = of[i];
            }
        }

        nlast = hops ? nlast : ncomp;
    }

    us_decode_compare(comp, ncomp);

    for (i = 0; i < ncomp; i++) {
        if (!comp[i].answer) {
            all[owner[i]].klass = -1;
        }
    }

    for (i = 0; i < live; i++) {
        all[of[i]].klass = US_CLASS_ALONE;
    }

    for (i = 0; i < n; i++) {
        if (all[i].klass == 0) {
            all[i].klass = walks[i].klass;

        } else if (all[i].klass == US_CLASS_ALONE) {
            all[i].klass = us_record_equal(c, all[i].id, all[i].rest);
        }
    }

    for (i = 0; i < nlast; i++) {
        one = &all[owner[i]];

        /* of those that have not the rest */

        if (one->klass == -1 && one->other != US_OTHER_NONE
            && us_comparison_other(&comp[i], one->rest, one->other)
            && !us_decode_equal(&comp[i]))
        {
            one->other = US_OTHER_NONE;
        }
    }
}


void
us_record_prefetch(us_codec_t *c, uint64_t id)
{
    us_bits_t  b;

    if (us_log_find(c->arena, id, &b)) {
        __builtin_prefetch(b.data);
    }
}


void
us_record_expect(us_codec_t *c, uint64_t id)
{
    us_guess_prefetch(&c->guess, c->arena, id);
}


int
us_record_install_locked(us_codec_t *c, us_str_t model)
{
    int                rc;
    uint8_t           *copy;
    const us_model_t  *m;

    /* the bytes of an operation are not aligned, and must be checked */

    copy = malloc(model.len + 1);

    if (copy == NULL) {
        return US_REPLAY_FAILED;
    }

    memcpy(copy, model.data, model.len);

    m = us_model_check(copy, model.len);
    rc = m ? us_models_install_locked(&c->models, m) : US_REPLAY_DAMAGED;

    free(copy);

    return rc;
}


int
us_record_model(us_codec_t *c, unsigned n, uint64_t *first, us_str_t *model)
{
    us_models_update(&c->models);

    if (n >= c->models.n) {
        return -1;
    }

    *first = c->models.first[n];
    *model = us_model_bytes(c->models.tables[n].model);

    return 0;
}


int
us_record_drop_locked(us_codec_t *c, uint64_t number, us_str_t drop)
{
    int                rc;
    size_t             len;
    uint8_t           *core;
    unsigned           i;
    us_arena_t        *a;
    const us_model_t  *m;

    a = c->arena;

    if (number >= a->head->models || number >= US_MODELS_MAX) {
        return US_REPLAY_DAMAGED;
    }

    m = us_models_shared(a, number);

    if (drop.len != US_DROP_BYTES(us_model_ntokens(m))) {
        return US_REPLAY_DAMAGED;
    }

    for (i = 0; i < drop.len * 8; i++) {
        if (us_model_dropped(drop.data, i)
            && (i < US_TOKEN_TEXT || i >= us_model_ntokens(m)))
        {
            return US_REPLAY_DAMAGED;
        }
    }

    core = us_model_without(m, drop.data, &len);

    if (core == NULL) {
        return US_REPLAY_FAILED;
    }

    rc = us_models_replace_locked(&c->models, (unsigned) number,
                                  (const us_model_t *) core);

    if (rc == 0) {
        us_commit_locked(a);
        us_models_clear_locked(&c->models);
    }

    free(core);

    return rc;
}


void
us_record_refresh(us_codec_t *c)
{
    us_models_update(&c->models);
    us_models_refresh(&c->models);
}
