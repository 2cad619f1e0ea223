
/*
 * The cheapest way to cut a text into tokens.
 *
 *     text      y  o  u  t  u  b  e  .  c  o  m  /  ...
 *     steps    [0][1][2][3][4][5][6][7][8][9] ...
 *               |           ^              ^
 *               `-- "yout" -'              |
 *               `------ "youtube.c" -------'
 *
 * Steps are taken from left to right.  A step holds the cheapest way found so
 * far to reach it: its price and its last token, which gives the context.
 * From each step all tokens that match there are tried; they are found by
 * walking a trie.  References enter as further beginnings: a step that a
 * reference's common prefix reaches starts with the price of that header, so
 * one walk decides between all references and none.
 *
 * What a text shares with the one before is not parsed again: see
 * us_parse_again().
 *
 * The trie is a double array (Aoe, 1989): the child of a node by byte c is
 * nodes[base + c], if its key says c.  No two nodes have the same base, so
 * that the key is enough to know the parent.
 *
 *     uint32_t  link       base 23 | key 9: c + 1, or 0: free
 *     uint16_t  token      or US_NO_TOKEN
 *     uint16_t  mask       bit c % 16: there may be a child by c
 *
 * The time goes into cache misses and mispredicted branches.  The mask spares
 * nearly all probes that would fail.  The newest node gets its children first,
 * so that only children, most of the nodes, lie in a row.  A walk has one
 * branch that cannot be predicted, that which ends it: whether a node has a
 * token, and whether a way is cheaper, is decided by arithmetic.
 */


#include "us_parse.h"

#include <stdlib.h>

/*
 * A way is followed if it costs at most so much more than the cheapest one that
 * is known to lead further.  Each byte that is left to the other is taken for a
 * price that nearly no text goes below.  Tuned with bench/codec: see
 * docs/decisions/codec.md.
 */
#define US_PARSE_MARGIN  (2 * US_PRICE_BIT)
#define US_PARSE_BYTE    10

/* nodes that a slice of building makes; about .3 ms */
#define US_PARSER_SLICE  4096

/* free cells that may not fit before those that follow are looked at first */
#define US_PARSER_TRIES  8

#define us_inline        inline __attribute__((always_inline))


typedef struct {
    uint32_t               link;
    int16_t                token;
    uint16_t               mask;
} us_node_t;

#define US_NO_TOKEN      -1

/* a cost that no step reaches, by memset(); and what a byte adds to a step */
#define US_STEP_NONE     0x7f
#define US_STEP_BYTE     ((1 << 8) - ((uint64_t) US_PARSE_BYTE << 32))

/* where us_parse_runs() has the longest run of all; one in each alphabet */
#define US_RUN_LONGEST   (8 * (US_RUN_ALPHABETS - 1))
#define US_RUN_ONES      0x0101010101

/* runs of 4 characters and more */
#define US_RUN_TRIED     0x00fcfcfcfc

/* characters after which the counts are checked: a count fits in a byte */
#define US_RUN_CHECK     128

#define US_KEY_BITS      9
#define US_KEY_MASK      ((1 << US_KEY_BITS) - 1)
#define US_BASE_MAX      (1 << (32 - US_KEY_BITS))


/* tokens sorted[low .. high - 1] share `depth` bytes, which lead to `node` */

typedef struct {
    uint32_t               node;
    uint16_t               low;
    uint16_t               high;
    uint16_t               depth;
} us_range_t;


struct us_parser_s {
    const us_token_def_t  *tokens;
    size_t                 ntokens;

    us_node_t             *nodes;
    uint32_t               nnodes;    /* allocated */
    uint8_t               *bases;     /* bit b: some node has base b */
    uint32_t               hint[2];   /* where to look for a free cell */
    uint32_t               top;       /* no cell from it on is taken */

    uint8_t               *prices;    /* [ncontexts][ntokens + 1]: see rows */
    uint32_t               rows[US_CTX_MAX];    /* where a context's begin */
    uint8_t               *ctx;       /* of tokens */

    /*
     * One for each byte and one more: cost 32 | token 16 | len 8 | 0; or of a
     * start: cost 32 | number 16 | 0 | ctx 8.  The cost is the price, and
     * US_PARSE_BYTE for each byte that is left of the longest text.
     */
    uint64_t               steps[US_URL_MAX + 2];
    uint64_t               runs[US_URL_MAX + 2];    /* us_parse_runs() */
    uint16_t               packed[US_RUN_ALPHABETS][US_RUN_MAX + 1];
    us_piece_t             pieces[US_URL_MAX + 2];

    /* the text before: see us_parse_again() */
    uint8_t                text[US_URL_MAX + 2];
    size_t                 clean;     /* its first bytes with known steps */
    uint32_t               price;     /* of its start at byte 0 */

    /* what a step's tokens depend on */
    uint16_t               far[US_URL_MAX + 2];

    /* building */
    uint16_t              *sorted;
    unsigned               bucket;
    uint16_t               buckets[257];
    us_range_t            *stack;     /* each token is in one range */
    size_t                 depth;
};


/* the alphabets of a class, a byte each; then: is it a letter or a digit? */

static const uint64_t  us_parse_masks[32] = {
    [US_RUN_DIGIT] = 0xffffffffff,
    [US_RUN_HEX] = 0xffffffff00,
    [US_RUN_LOWER] = 0xffffff0000,
    [US_RUN_UPPER] = 0xffff000000,
    [US_RUN_OTHER] = 0x00ff000000
};

/* the alphabets of which a run can begin after a character of a class */

static const uint64_t  us_parse_begins[32] = {
    [0] = 0xffffffffff,
    [US_RUN_DIGIT] = 0,
    [US_RUN_HEX] = 0x00000000ff,
    [US_RUN_LOWER] = 0x000000ffff,
    [US_RUN_UPPER] = 0x0000ffffff,
    [US_RUN_OTHER] = 0xffffffffff
};


/* a step from which tokens are tried */

typedef struct {
    size_t                 i;
    uint64_t               cost;      /* to reach it */
    const uint8_t         *row;       /* prices in its context */
    uint64_t               low;       /* the cheapest way from it on */
} us_parsed_t;


/*
 * without a token the price is greater than any other: US_NO_TOKEN is negative
 */

static inline uint64_t
us_parse_step(uint64_t price, int token, size_t len)
{
    return price << 32 | (uint64_t) (int64_t) token << 16 | len << 8;
}


/* the context at a step: a start has its own */

static inline unsigned
us_parse_ctx(const us_parser_t *p, uint64_t step)
{
    return step >> 8 & 0xff ? p->ctx[step >> 16 & 0xffff]
                            : (unsigned) step & 0xff;
}


/* the way back, from the last piece to the first; returns their number */

static size_t
us_parse_back(us_parser_t *p, size_t len, const us_piece_t **pieces,
    unsigned *start)
{
    size_t       i;
    uint64_t     step;
    unsigned     n;
    us_piece_t  *piece;

    piece = p->pieces + US_URL_MAX + 1;

    for (i = len; (n = p->steps[i] >> 8 & 0xff) != 0; /* void */) {
        step = p->steps[i];
        i -= n;

        piece--;
        piece->token = (uint16_t) (step >> 16);
        piece->len = (uint8_t) n;
        piece->ctx = (uint8_t) us_parse_ctx(p, p->steps[i]);
    }

    *start = p->steps[i] >> 16 & 0xffff;
    *pieces = piece;

    return (size_t) (p->pieces + US_URL_MAX + 1 - piece);
}


/*
 * How many steps of the text before are this one's, too: those of its common
 * prefix before any reference's.  The steps from *from on must be tried again:
 * that one's tokens, or why it was given up, depend on a byte or a step beyond
 * the prefix.  The ways found from there up to the end of the prefix are kept
 * all the same; they are possible here, too.  0: none, *from is not changed.
 */

static size_t
us_parse_again(const us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *start, size_t *from)
{
    size_t  n, same;

    if (start->at || start->price != p->price) {
        return 0;
    }

    n = len < p->clean ? len : p->clean;

    for (same = 0; same < n && text[same] == p->text[same]; same++) {
        /* void */
    }

    for (n = 0; n < same && p->far[n] < same; n++) { /* void */ }

    *from = n;

    return same;
}


/*
 * The steps of the starts, and of what is known already, all others being out
 * of reach.  Returns the first one from which tokens are to be tried.
 */

static size_t
us_parse_starts(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts)
{
    size_t    i, at, from, known;
    uint64_t  step;

    from = len;

    for (i = 0; i < nstarts; i++) {
        if (starts[i].at < from) {
            from = starts[i].at;
        }
    }

    known = us_parse_again(p, text, len, &starts[0], &from);
    at = known ? known + 1 : from;

    memset(p->steps + at, US_STEP_NONE,
           (len + 1 - at) * sizeof(uint64_t));

    for (i = 0; i < nstarts; i++) {
        at = starts[i].at;
        step = us_parse_step(starts[i].price
                             + (US_URL_MAX + 1 - at) * US_PARSE_BYTE,
                             (int) i, 0)
               | (at ? us_model_tail_ctx(text[at - 1]) : US_CTX_START);

        if (step < p->steps[at]) {
            p->steps[at] = step;
            from = at < from ? at : from;
        }
    }

    return from;
}


/*
 * Keeps what the next text may have in common with this one; or with the one
 * before, if all starts of this one are further on.
 */

static void
us_parse_keep(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts)
{
    size_t  i, limit;

    if (starts[0].at == 0) {
        p->clean = len;
        p->price = starts[0].price;
    }

    for (i = starts[0].at == 0; i < nstarts; i++) {
        limit = starts[i].at ? starts[i].at - 1 : 0;
        p->clean = limit < p->clean ? limit : p->clean;
    }

    if (starts[0].at == 0) {
        memcpy(p->text, text, p->clean);
    }
}


static us_inline void
us_parse_push(uint64_t *step, uint64_t v, uint64_t *low)
{
    *step = v < *step ? v : *step;
    *low = v < *low ? v : *low;
}


/*
 * Tries the tokens with a text.  The first byte is one: its node follows the
 * root.  Returns how many bytes it looked at before the one that ended it.
 */

static us_inline size_t
us_parse_texts(us_parser_t *p, us_parsed_t *w, const uint8_t *text,
    size_t max)
{
    uint32_t          child;
    uint64_t          base, low, *step;
    unsigned          c;
    const uint8_t    *stop, *first;
    const us_node_t  *nodes, *node;

    step = p->steps + w->i + 1;
    nodes = p->nodes;
    stop = text + max;
    first = text;
    c = *text++;
    node = &nodes[1 + c];
    base = us_parse_step(w->cost, 0, 0) + US_STEP_BYTE;

    low = UINT64_MAX;

    us_parse_push(step, base + ((uint64_t) w->row[c] << 32 | c << 16), &low);

    for ( /* void */ ; text < stop; text++) {
        c = *text;

        /* no bit in the mask: the root, which is no node's child */

        child = (node->link >> US_KEY_BITS) + c;
        child = node->mask >> c % 16 & 1 ? child : 0;
        node = &nodes[child];

        if ((node->link & US_KEY_MASK) != c + 1) {
            break;
        }

        base += US_STEP_BYTE;
        step++;

        us_parse_push(step, (base + ((uint64_t) w->row[node->token] << 32))
                            | (uint64_t) (int64_t) node->token << 16, &low);
    }

    w->low = low;

    return (size_t) (text - first);
}


static inline void
us_parse_run(us_parser_t *p, us_parsed_t *w, unsigned alphabet,
    unsigned len)
{
    unsigned  token;

    token = us_token_run(alphabet, len);

    us_parse_push(&p->steps[w->i + len],
                  us_parse_step(w->cost + w->row[token]
                                + p->packed[alphabet][len]
                                - len * US_PARSE_BYTE,
                                (int) token, len), &w->low);
}


/* no run begins within a word, but at a start, or after a run */

static inline uint64_t
us_parse_runs_at(const us_parser_t *p, const uint8_t *text, size_t i)
{
    uint64_t  step;

    step = p->steps[i];

    if ((step >> 8 & 0xff) == 0 || us_token_is_run(step >> 16 & 0xffff)) {
        return p->runs[i];
    }

    return p->runs[i] & us_parse_begins[us_run_classes[text[i - 1]]];
}


/*
 * Tries runs, where they begin and as long as they go, which is where ids begin
 * and end; those that may hold '-' and '_' also up to the first of these.
 * Returns how many bytes it looked at before the one that ended them.
 */

static us_inline size_t
us_parse_packed(us_parser_t *p, us_parsed_t *w, const uint8_t *text)
{
    uint64_t  runs;
    unsigned  a, n, alnum, longest;

    runs = us_parse_runs_at(p, text, w->i);

    if ((runs & US_RUN_TRIED) == 0) {
        return runs >> US_RUN_LONGEST & 0xff;
    }

    alnum = (unsigned) (runs >> 32);
    longest = US_RUN_MIN - 1;

    for (a = 0; a < US_RUN_ALPHABETS; a++) {
        n = runs >> 8 * a & 0xff;
        n = n < US_RUN_MAX ? n : US_RUN_MAX;

        if (a == US_RUN_ALPHABETS - 1 && alnum > longest && alnum < n) {
            us_parse_run(p, w, a, alnum);
        }

        if (n > longest) {
            us_parse_run(p, w, a, n);
            longest = n;
        }
    }

    return runs >> US_RUN_LONGEST & 0xff;
}


/*
 * From right to left: how many characters from here on are of each alphabet, in
 * a byte each; in the fifth byte: letters and digits.  Counts beyond US_RUN_MAX
 * (32) are not exact.
 */

static void
us_parse_runs(us_parser_t *p, const uint8_t *text, size_t from, size_t len)
{
    size_t    i, check;
    uint64_t  run, many;

    run = 0;

    for (i = len; i > from; /* void */) {
        check = (i - 1) / US_RUN_CHECK * US_RUN_CHECK;
        check = check > from ? check : from;

        do {
            i--;
            run += US_RUN_ONES;
            run &= us_parse_masks[us_run_classes[text[i]]];
            p->runs[i] = run;
        } while (i > check);

        many = (run >> 5 | run >> 6 | run >> 7) & US_RUN_ONES;
        run = (run & ~(many * 0xff)) | many << 5;
    }
}


size_t
us_parse(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, const us_piece_t **pieces,
    unsigned *start, uint32_t *price)
{
    size_t       i, ahead, end, run;
    uint16_t    *far;
    uint64_t     limit, low, *steps;
    us_parsed_t  w;

    i = us_parse_starts(p, text, len, starts, nstarts);

    us_parse_runs(p, text, i, len);

    /*
     * The cheapest way ahead ends at that step; others are followed up to the
     * limit.  When it is reached, the next one is looked for among its own.
     */

    steps = p->steps;
    far = p->far;
    ahead = i;
    limit = 0;

    for ( /* void */ ; i < len; i++) {

        /* a step that no way reaches has the greatest cost */

        while (i < ahead && steps[i] > limit) {
            far[i++] = (uint16_t) ahead;
        }

        if (i == len) {
            break;
        }

        w.i = i;
        w.cost = steps[i] >> 32;
        w.row = p->prices + p->rows[us_parse_ctx(p, steps[i])];

        end = us_parse_texts(p, &w, text + i,
                             len - i < US_TOKEN_MAX ? len - i : US_TOKEN_MAX);
        run = us_parse_packed(p, &w, text);

        far[i] = (uint16_t) (i + (end > run ? end : run));

        /* as steps are: the cost is the high half */

        low = (w.low | UINT32_MAX) + ((uint64_t) US_PARSE_MARGIN << 32);

        if (low < limit || i == ahead) {
            limit = low;
            ahead = i + (w.low >> 8 & 0xff);
        }
    }

    us_parse_keep(p, text, len, starts, nstarts);

    *price = (uint32_t) (steps[len] >> 32)
             - (uint32_t) (US_URL_MAX + 1 - len) * US_PARSE_BYTE;

    return us_parse_back(p, len, pieces, start);
}


static int
us_parser_grow(us_parser_t *p, uint32_t need)
{
    uint32_t    n;
    uint8_t    *bases;
    us_node_t  *nodes;

    if (need <= p->nnodes) {
        return 0;
    }

    if (need >= US_BASE_MAX) {
        return -1;
    }

    n = need + need / 4;
    n = (n + 7) & ~7u;

    nodes = realloc(p->nodes, n * sizeof(us_node_t));
    if (nodes == NULL) {
        return -1;
    }

    p->nodes = nodes;

    bases = realloc(p->bases, n / 8);
    if (bases == NULL) {
        return -1;
    }

    p->bases = bases;

    memset(bases + p->nnodes / 8, 0, (n - p->nnodes) / 8);

    for ( /* void */ ; p->nnodes < n; p->nnodes++) {
        nodes[p->nnodes].link = 0;
        nodes[p->nnodes].token = US_NO_TOKEN;
        nodes[p->nnodes].mask = 0;
    }

    return 0;
}


us_parser_t *
us_parser_create(const us_token_def_t *tokens, size_t ntokens,
    size_t ncontexts)
{
    size_t        i;
    uint16_t      at[256];
    us_parser_t  *p;

    p = calloc(1, sizeof(us_parser_t));
    if (p == NULL) {
        return NULL;
    }

    p->tokens = tokens;
    p->ntokens = ntokens;

    /* cleared: a handle has it for long, and malloc() gives what others left */

    p->prices = calloc(ncontexts, ntokens + 1);
    p->ctx = calloc(ntokens, 1);
    p->sorted = calloc(ntokens, sizeof(uint16_t));
    p->stack = calloc(ntokens, sizeof(us_range_t));

    if (p->prices == NULL || p->ctx == NULL || p->sorted == NULL
        || p->stack == NULL || us_parser_grow(p, 16384) == -1)
    {
        us_parser_destroy(p);
        return NULL;
    }

    for (i = 0; i < ntokens; i++) {
        p->ctx[i] = tokens[i].ctx;

        if (i >= US_TOKEN_TEXT) {
            p->buckets[tokens[i].text[0] + 1]++;
        }
    }

    for (i = 0; i < 256; i++) {
        p->buckets[i + 1] += p->buckets[i] + 1;     /* and the byte itself */
    }

    /* without contexts, all texts begin in the only one */

    for (i = 0; i < US_CTX_MAX; i++) {
        p->rows[i] = 1 + (i < ncontexts ? (uint32_t) (i * (ntokens + 1)) : 0);
    }

    for (i = 0; i < US_RUN_ALPHABETS * (US_RUN_MAX + 1); i++) {
        p->packed[i / (US_RUN_MAX + 1)][i % (US_RUN_MAX + 1)] = (uint16_t)
            (us_run_bits((unsigned) (i / (US_RUN_MAX + 1)),
                         i % (US_RUN_MAX + 1)) * US_PRICE_BIT);
    }

    /* tokens sorted by their first byte, and the children of the root */

    for (i = 0; i < 256; i++) {
        at[i] = p->buckets[i];
        p->sorted[at[i]++] = (uint16_t) i;

        p->nodes[1 + i].link = (uint32_t) i + 1;
        p->nodes[1 + i].token = (int16_t) i;
    }

    for (i = US_TOKEN_TEXT; i < ntokens; i++) {
        p->sorted[at[tokens[i].text[0]]++] = (uint16_t) i;
    }

    p->nodes[0].link = 1 << US_KEY_BITS | US_KEY_MASK;
    p->nodes[0].mask = 0xffff;
    p->bases[0] = 2;
    p->hint[0] = 257;
    p->hint[1] = 257;
    p->top = 257;

    return p;
}


void
us_parser_destroy(us_parser_t *p)
{
    free(p->nodes);
    free(p->bases);
    free(p->prices);
    free(p->ctx);
    free(p->sorted);
    free(p->stack);
    free(p);
}


uint8_t *
us_parser_row(us_parser_t *p, unsigned ctx)
{
    /* steps under other prices are no longer known */

    p->clean = 0;

    return p->prices + p->rows[ctx];
}


void
us_parser_price(us_parser_t *p, unsigned ctx, const uint8_t *lens,
    const uint8_t *escape)
{
    size_t     i;
    uint8_t   *row;
    unsigned   price;

    row = us_parser_row(p, ctx);

    for (i = 0; i < p->ntokens; i++) {
        price = lens[i] ? lens[i] * US_PRICE_BIT
                        : (lens[p->ntokens] + escape[i]) * US_PRICE_BIT + 1;

        row[i] = (uint8_t) (price < US_PRICE_MAX ? price : US_PRICE_MAX);
    }
}


static int
us_parser_cmp(const void *one, const void *two, void *data)
{
    int                    rc;
    const us_token_def_t  *a, *b;

    a = (const us_token_def_t *) data + *(const uint16_t *) one;
    b = (const us_token_def_t *) data + *(const uint16_t *) two;

    rc = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);

    return rc ? rc : a->len - b->len;
}


/*
 * Those that end here come first.  One of them is the node's token; a model of
 * strange origin may have more with the same text, which are never found.
 */

static void
us_parser_push(us_parser_t *p, us_range_t r)
{
    while (r.low < r.high && p->tokens[p->sorted[r.low]].len == r.depth) {
        r.low++;
    }

    if (r.low == r.high) {
        return;
    }

    p->stack[p->depth++] = r;
}


/* gives back what only the building needed */

static void
us_parser_trim(us_parser_t *p)
{
    uint32_t    n;
    us_node_t  *nodes;

    free(p->sorted);
    free(p->stack);
    free(p->bases);

    p->sorted = NULL;
    p->stack = NULL;
    p->bases = NULL;
    p->tokens = NULL;

    /* any byte may be looked for past the last base */

    n = p->top + 256;

    nodes = n < p->nnodes ? realloc(p->nodes, n * sizeof(us_node_t)) : NULL;

    if (nodes) {
        p->nodes = nodes;
        p->nnodes = n;
    }
}


/*
 * Finds a base for n children by the bytes c: that of the first free cells that
 * fit.  An only child fits nearly anywhere, and fills the gaps that families
 * have left; these begin to look where there were some lately.
 */

static int
us_parser_place(us_parser_t *p, const uint8_t *c, unsigned n, uint32_t *base)
{
    unsigned   k, tries;
    uint32_t   b, s, *hint;

    hint = &p->hint[n > 1];
    tries = 0;

    while (*hint < p->top && p->nodes[*hint].link) {
        (*hint)++;
    }

    for (s = *hint; /* void */; s++) {

        if (us_parser_grow(p, s + 512) == -1) {
            return -1;
        }

        if (p->nodes[s].link || s <= c[0]) {
            continue;
        }

        b = s - c[0];

        if ((p->bases[b >> 3] & 1 << (b & 7)) == 0) {

            for (k = 1; k < n && p->nodes[b + c[k]].link == 0; k++) {
                /* void */
            }

            if (k == n) {
                break;
            }
        }

        if (++tries == US_PARSER_TRIES && s < p->top) {
            *hint = s;
        }
    }

    p->bases[b >> 3] |= (uint8_t) (1 << (b & 7));

    if (p->top < b + c[n - 1] + 1) {
        p->top = b + c[n - 1] + 1;
    }

    *base = b;

    return 0;
}


/* makes the children of a node */

static int
us_parser_node(us_parser_t *p, us_range_t r)
{
    uint8_t                c[256];
    uint16_t               lows[257];
    uint32_t               base;
    unsigned               i, k, n;
    us_range_t             child;
    const us_token_def_t  *t;

    n = 0;

    for (i = r.low; i < r.high; i++) {
        t = &p->tokens[p->sorted[i]];

        if (n == 0 || t->text[r.depth] != c[n - 1]) {
            c[n] = t->text[r.depth];
            lows[n++] = (uint16_t) i;
        }
    }

    lows[n] = r.high;

    if (us_parser_place(p, c, n, &base) == -1) {
        return -1;
    }

    p->nodes[r.node].link |= base << US_KEY_BITS;

    for (k = 0; k < n; k++) {
        child.node = base + c[k];
        child.low = lows[k];
        child.high = lows[k + 1];
        child.depth = (uint16_t) (r.depth + 1);

        p->nodes[r.node].mask |= (uint16_t) (1u << c[k] % 16);
        p->nodes[child.node].link = c[k] + 1u;

        if (p->tokens[p->sorted[child.low]].len == child.depth) {
            p->nodes[child.node].token = (int16_t) p->sorted[child.low];
        }

        us_parser_push(p, child);
    }

    return 0;
}


int
us_parser_build(us_parser_t *p)
{
    unsigned    c, n;
    us_range_t  r;

    for (n = 0; p->bucket < 256; n += (unsigned) (r.high - r.low)) {

        if (n > US_PARSER_SLICE / 2) {
            return 0;
        }

        c = p->bucket++;

        r.low = (uint16_t) (p->buckets[c] + 1);
        r.high = p->buckets[c + 1];
        r.node = 1 + c;
        r.depth = 1;

        qsort_r(p->sorted + r.low, r.high - r.low, sizeof(uint16_t),
                us_parser_cmp, (void *) p->tokens);
        us_parser_push(p, r);
    }

    for (n = 0; n < US_PARSER_SLICE; n++) {

        if (p->depth == 0) {
            us_parser_trim(p);
            return 1;
        }

        r = p->stack[--p->depth];

        if (us_parser_node(p, r) == -1) {
            return -1;
        }
    }

    return 0;
}


/*
 * The writing side of a model.
 *
 * An encoder is private to a process: a parser with the prices of all tokens in
 * all contexts (a byte each), and the codes of headers.  The code of a token is
 * looked up in the model's lists when the token is written.
 */


#define US_ENCODER_ROWS  16           /* priced in a step */

/*
 * Codes that were written last: for most of those to be written, the search for
 * their rank in the model's list is spared.
 *
 *     entry    | 1 | token's high bits | context: 7 | bits of the code: 16 |
 *     number   low bits of the token, and US_CODES_FIRST for each context
 */
#define US_CODES_BITS    14
#define US_CODES         (1u << US_CODES_BITS)
#define US_CODES_KNOWN   (1u << 12)

/* places from one context's first token, the most used, to the next one's */
#define US_CODES_FIRST   (US_CODES / US_CTX_MAX)


struct us_encoder_s {
    const us_model_t   *model;
    us_parser_t        *parser;
    us_token_def_t     *tokens;

    unsigned            row;          /* the next row to be priced */
    uint8_t            *lens;         /* work: code lengths of all tokens */
    uint8_t            *escape;       /* lengths of the escape code */

    /* of each context, and of the escape code */
    const uint16_t     *symbols[US_CTX_MAX + 1];
    us_rank_t           ranks[US_CTX_MAX + 1][US_HUFFMAN_MAX + 1];
    uint32_t            escapes[US_CTX_MAX];    /* us_code_make() */
    uint32_t            codes[US_CODES];

    /* of the last us_encoder_choose() */
    const uint8_t      *text;
    const us_piece_t   *pieces;
    size_t              npieces;
};


us_encoder_t *
us_encoder_create(const us_model_t *model)
{
    unsigned       i, n, ncontexts;
    us_str_t       text;
    us_encoder_t  *e;

    e = calloc(1, sizeof(us_encoder_t));
    if (e == NULL) {
        return NULL;
    }

    n = us_model_ntokens(model);
    ncontexts = us_model_ncontexts(model);

    e->model = model;
    e->tokens = malloc(n * sizeof(us_token_def_t));
    e->lens = malloc(n + 1);
    e->escape = malloc(n);

    if (e->tokens == NULL || e->lens == NULL || e->escape == NULL) {
        us_encoder_destroy(e);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        text = us_model_token_text(model, i);

        e->tokens[i].text = text.data;
        e->tokens[i].len = (uint8_t) text.len;
        e->tokens[i].ctx = (uint8_t) us_model_token_ctx(model, i);
    }

    e->parser = us_parser_create(e->tokens, n, ncontexts);
    if (e->parser == NULL) {
        us_encoder_destroy(e);
        return NULL;
    }

    us_model_code_lengths(model, ncontexts + US_CODE_ESCAPE, e->escape, n);
    for (i = 0; i <= ncontexts + US_CODE_ESCAPE; i++) {
        e->symbols[i] = us_model_symbols(model, i);
        us_model_ranks(model, i, e->ranks[i]);
    }

    return e;
}


void
us_encoder_wipe(us_encoder_t *e)
{
    if (e) {
        explicit_bzero(e->parser->text, sizeof(e->parser->text));
        e->parser->clean = 0;
    }
}


void
us_encoder_destroy(us_encoder_t *e)
{
    if (e == NULL) {
        return;
    }

    if (e->parser) {
        us_parser_destroy(e->parser);
    }

    free(e->tokens);
    free(e->lens);
    free(e->escape);
    free(e);
}


int
us_encoder_build(us_encoder_t *e)
{
    int       rc;
    unsigned  k, n;
    uint32_t  bits;

    n = us_model_ntokens(e->model);

    for (k = 0; k < US_ENCODER_ROWS; k++) {

        if (e->row == us_model_ncontexts(e->model)) {
            rc = us_parser_build(e->parser);

            if (rc == 1) {
                free(e->tokens);
                free(e->lens);

                e->tokens = NULL;
                e->lens = NULL;
            }

            return rc;
        }

        us_model_code_lengths(e->model, e->row, e->lens, n + 1);
        us_parser_price(e->parser, e->row, e->lens, e->escape);

        bits = us_model_code(&e->ranks[e->row][e->lens[n]],
                             e->symbols[e->row], n, e->lens[n]);
        e->escapes[e->row] = us_code_make(bits, e->lens[n]);
        e->row++;
    }

    return 0;
}


unsigned
us_encoder_choose(us_encoder_t *e, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, uint32_t *price)
{
    unsigned  start;

    e->npieces = us_parse(e->parser, text, len, starts, nstarts, &e->pieces,
                          &start, price);
    e->text = text + starts[start].at;

    return start;
}


static inline unsigned
us_encoder_price(const us_encoder_t *e, const us_piece_t *p)
{
    return e->parser->prices[e->parser->rows[p->ctx] + p->token];
}


uint32_t
us_encoder_spent(const us_encoder_t *e, size_t n)
{
    size_t             i;
    uint32_t           price;
    const us_piece_t  *p;

    price = 0;

    for (i = 0; i < e->npieces; i++) {
        p = &e->pieces[i];

        if (p->len > n) {
            break;
        }

        n -= p->len;
        price += us_encoder_price(e, p);

        if (us_token_is_run(p->token)) {
            price += us_run_bits(us_token_run_alphabet(p->token), p->len)
                     * US_PRICE_BIT;
        }
    }

    return price;
}


static inline void
us_encoder_put(us_encoder_t *e, us_bitout_t *o, unsigned code,
    unsigned symbol, unsigned len)
{
    uint32_t   tag;
    uint32_t  *known;

    known = &e->codes[(symbol + code * US_CODES_FIRST) % US_CODES];
    tag = US_CODES_KNOWN | symbol >> US_CODES_BITS << 7 | code;

    if (*known >> 16 != tag) {
        *known = us_model_code(&e->ranks[code][len], e->symbols[code],
                               symbol, len) | tag << 16;
    }

    us_bitout_put(o, *known & 0xffff, len);
}


void
us_encoder_tail(us_encoder_t *e, us_bitout_t *o)
{
    size_t          i;
    unsigned        price, ctx, token, escape;
    const uint8_t  *p;

    p = e->text;
    escape = us_model_ncontexts(e->model) + US_CODE_ESCAPE;

    for (i = 0; i < e->npieces; i++) {
        ctx = e->pieces[i].ctx;
        token = e->pieces[i].token;
        price = us_encoder_price(e, &e->pieces[i]);

        if (price % US_PRICE_BIT == 0) {
            us_encoder_put(e, o, ctx, token, price / US_PRICE_BIT);

        } else {
            us_bitout_put(o, us_code_bits(e->escapes[ctx]),
                        us_code_len(e->escapes[ctx]));
            us_encoder_put(e, o, escape, token, e->escape[token]);
        }

        if (us_token_is_run(token)) {
            us_run_put(o, us_token_run_alphabet(token), p, e->pieces[i].len);
        }

        p += e->pieces[i].len;
    }
}
