
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
 * far to reach it: its price, its last token and the context after that.
 * From each step all tokens that match there are tried; they are found by
 * walking a trie.  References enter as further beginnings: a step that a
 * reference's common prefix reaches starts with the price of that header, so
 * one walk decides between all references and none.
 *
 * The trie is a double array (Aoe, 1989): the child of a node by byte c is
 * nodes[base + c], if its key says c.  No two nodes have the same base, so
 * that the key is enough to know the parent.
 *
 *     uint32_t  link       base 23 | key 9: c + 1, or 0: free
 *     uint16_t  token      or US_NO_TOKEN
 *     uint16_t  mask       bit us_parse_bit(c): there may be a child by c
 *
 * The time goes into cache misses.  The mask spares nearly all probes that
 * would fail; nodes are made level by level, so that the hot ones, near the
 * root, lie together.
 */


#include "us_parse.h"

#include <stdlib.h>


#define US_NO_TOKEN      0xffff

/* a way is followed if it costs at most that much more; tuned: bench/codec */
#define US_PARSE_MARGIN  (4 * US_PRICE_BIT)

/* nodes that a slice of building makes; about .3 ms */
#define US_PARSER_SLICE  4096

/* a free place is looked for in so many slots, then at the end */
#define US_PARSER_TRIES  256


typedef struct {
    uint32_t               link;
    uint16_t               token;
    uint16_t               mask;
} us_node_t;

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
    size_t                 ncontexts;

    us_node_t             *nodes;
    uint32_t               nnodes;    /* allocated */
    uint8_t               *bases;     /* bit b: some node has base b */
    uint32_t               hint;      /* no slot below it is free */
    uint32_t               top;       /* no slot from it on is taken */

    uint8_t               *prices;    /* [ncontexts][ntokens] */
    uint32_t               rows[US_CTX_MAX];    /* where a context's begin */
    uint8_t               *ctx;       /* of tokens */

    /* one for each byte and one more: price 32 | token 16 | len 8 | ctx 8 */
    uint64_t              *steps;
    uint64_t              *runs;      /* us_parse_runs() */
    us_piece_t            *pieces;

    /* building */
    uint16_t              *sorted;
    unsigned               bucket;
    uint16_t               buckets[257];
    us_range_t            *queue;     /* a ring: each token is in one range */
    size_t                 head;
    size_t                 tail;
    size_t                 nqueue;
};


/* a step from which tokens are tried */

typedef struct {
    size_t                 i;
    uint64_t               cost;      /* to reach it */
    const uint8_t         *row;       /* prices in its context */

    uint64_t               ahead;     /* the cheapest step after it */
    size_t                 at;        /* that one */
} us_walk_t;


static void us_parser_bucket(us_parser_t *p);
static int us_parser_node(us_parser_t *p, us_range_t r);
static int us_parser_place(us_parser_t *p, const uint8_t *c, unsigned n,
    uint32_t *base);
static int us_parser_grow(us_parser_t *p, uint32_t need);
static void us_parse_runs(us_parser_t *p, const uint8_t *text, size_t from,
    size_t len);


static inline unsigned
us_parse_bit(unsigned c)
{
    return 1u << ((c ^ c >> 4) & 15);
}


static inline uint64_t
us_parse_step(uint64_t *step, uint64_t price, unsigned token, unsigned len,
    unsigned ctx)
{
    uint64_t  v;

    v = price << 32 | (uint64_t) token << 16 | len << 8 | ctx;

    if (v < *step) {
        *step = v;
    }

    return v;
}


static inline void
us_parse_run(us_parser_t *p, size_t i, uint64_t cost, const uint8_t *row,
    unsigned alphabet, unsigned len)
{
    unsigned  token;

    token = us_token_run(alphabet, len);
    cost += row[token] + us_run_bits(alphabet, len) * US_PRICE_BIT;

    us_parse_step(&p->steps[i + len], cost, token, len, p->ctx[token]);
}


/* the cheapest way to a step after i, up to `reach` */

static uint64_t
us_parse_ahead(const uint64_t *steps, size_t i, size_t reach, size_t *at)
{
    uint64_t  ahead;

    ahead = (uint64_t) -1;
    *at = reach;

    while (i++ < reach) {
        if (steps[i] < ahead) {
            ahead = steps[i];
            *at = i;
        }
    }

    return ahead;
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
        piece->ctx = (uint8_t) p->steps[i];
    }

    *start = p->steps[i] >> 16 & 0xffff;
    *pieces = piece;

    return (size_t) (p->pieces + US_URL_MAX + 1 - piece);
}


/*
 * The steps of the starts, all others being out of reach.  Returns the first
 * one, and the last one in *reach.
 */

static size_t
us_parse_starts(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, size_t *reach)
{
    size_t  i, at, from;

    from = len;
    *reach = 0;

    for (i = 0; i < nstarts; i++) {
        if (starts[i].at < from) {
            from = starts[i].at;
        }
    }

    memset(p->steps + from, 0xff, (len + 1 - from) * sizeof(uint64_t));

    for (i = 0; i < nstarts; i++) {
        at = starts[i].at;
        *reach = at > *reach ? at : *reach;
        us_parse_step(&p->steps[at], starts[i].price, (unsigned) i, 0,
                      at ? us_model_tail_ctx(text[at - 1]) : US_CTX_START);
    }

    return from;
}


/* tries the tokens with a text; returns the length of the longest */

static inline size_t
us_parse_texts(us_parser_t *p, us_walk_t *w, const uint8_t *text, size_t max)
{
    size_t            k, last;
    uint64_t          v, *steps;
    unsigned          c;
    const us_node_t  *nodes, *node;

    steps = p->steps + w->i;
    nodes = p->nodes;
    node = nodes;
    last = 0;

    for (k = 0; k < max; /* void */) {
        c = text[k];

        if ((node->mask & us_parse_bit(c)) == 0) {
            break;
        }

        node = &nodes[(node->link >> US_KEY_BITS) + c];

        if ((node->link & US_KEY_MASK) != c + 1) {
            break;
        }

        k++;

        if (node->token != US_NO_TOKEN) {
            v = us_parse_step(&steps[k], w->cost + w->row[node->token],
                              node->token, (unsigned) k,
                              p->ctx[node->token]);
            last = k;

            if (v < w->ahead) {
                w->ahead = v;
                w->at = w->i + k;
            }
        }
    }

    return last;
}


/*
 * Tries runs: as long as they go, which is where ids end; those that may hold
 * '-' and '_' also up to there.  Returns the length of the longest, or what is
 * too short for any.
 */

static inline size_t
us_parse_packed(us_parser_t *p, const us_walk_t *w)
{
    uint64_t  runs;
    unsigned  a, n, alnum, longest;

    runs = p->runs[w->i];
    alnum = (unsigned) (runs >> 32);
    longest = US_RUN_MIN - 1;

    for (a = 0; a < US_RUN_ALPHABETS; a++) {
        n = runs >> 8 * a & 0xff;

        if (a == US_RUN_ALPHABETS - 1 && alnum > longest && alnum < n) {
            us_parse_run(p, w->i, w->cost, w->row, a, alnum);
        }

        if (n > longest) {
            us_parse_run(p, w->i, w->cost, w->row, a, n);
            longest = n;
        }
    }

    return longest;
}


size_t
us_parse(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, const us_piece_t **pieces,
    unsigned *start, uint32_t *price)
{
    size_t      n, max, reach;
    uint64_t   *steps;
    us_walk_t   w;

    steps = p->steps;

    w.i = us_parse_starts(p, text, len, starts, nstarts, &reach);
    w.at = 0;
    w.ahead = 0;

    us_parse_runs(p, text, w.i, len);

    for ( /* void */ ; w.i < len; w.i++) {

        if (steps[w.i] == (uint64_t) -1) {
            continue;
        }

        w.cost = steps[w.i] >> 32;

        /* where a much cheaper way leads further, this one is not followed */

        if (w.i >= w.at) {
            w.ahead = us_parse_ahead(steps, w.i, reach, &w.at);
        }

        if (w.cost > (w.ahead >> 32) + US_PARSE_MARGIN) {
            continue;
        }

        w.row = p->prices + p->rows[steps[w.i] & 0xff];
        max = len - w.i < US_TOKEN_MAX ? len - w.i : US_TOKEN_MAX;

        n = w.i + us_parse_texts(p, &w, text + w.i, max);
        reach = n > reach ? n : reach;

        n = w.i + us_parse_packed(p, &w);
        reach = n > reach ? n : reach;
    }

    *price = (uint32_t) (steps[len] >> 32);

    return us_parse_back(p, len, pieces, start);
}


/*
 * From right to left: how many characters from here on are of each alphabet,
 * at most US_RUN_MAX (32), in a byte each; in the fifth byte: letters and
 * digits.
 */

static void
us_parse_runs(us_parser_t *p, const uint8_t *text, size_t from, size_t len)
{
    size_t    i;
    uint64_t  run, mask;

    static const uint64_t  masks[16] = {
        [US_RUN_DIGIT] = 0xffffffffff,
        [US_RUN_HEX] = 0xffffffff00,
        [US_RUN_LOWER] = 0xffffff0000,
        [US_RUN_UPPER] = 0xffff000000
    };

    run = 0;

    for (i = len; i-- > from; /* void */) {
        mask = masks[us_run_classes[text[i]]];

        if (text[i] == '-' || text[i] == '_') {
            mask = 0xff000000;
        }

        run += 0x0101010101 - (run >> 5 & 0x0101010101);
        run &= mask;
        p->runs[i] = run;
    }
}


us_parser_t *
us_parser_create(const us_token_def_t *tokens, size_t ntokens,
    size_t ncontexts)
{
    size_t        i;
    us_parser_t  *p;

    p = calloc(1, sizeof(us_parser_t));
    if (p == NULL) {
        return NULL;
    }

    p->tokens = tokens;
    p->ntokens = ntokens;
    p->ncontexts = ncontexts;

    p->prices = calloc(ncontexts, ntokens);
    p->ctx = malloc(ntokens);
    p->steps = malloc((US_URL_MAX + 2) * sizeof(uint64_t));
    p->runs = malloc((US_URL_MAX + 2) * sizeof(uint64_t));
    p->pieces = malloc((US_URL_MAX + 2) * sizeof(us_piece_t));
    p->sorted = malloc(ntokens * sizeof(uint16_t));
    p->nqueue = ntokens + 256;
    p->queue = malloc(p->nqueue * sizeof(us_range_t));

    if (p->prices == NULL || p->ctx == NULL || p->steps == NULL
        || p->runs == NULL || p->pieces == NULL || p->sorted == NULL
        || p->queue == NULL || us_parser_grow(p, 16384) == -1)
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
        p->rows[i] = i < ncontexts ? (uint32_t) (i * ntokens) : 0;
    }

    us_parser_bucket(p);

    return p;
}


void
us_parser_destroy(us_parser_t *p)
{
    free(p->nodes);
    free(p->bases);
    free(p->prices);
    free(p->ctx);
    free(p->steps);
    free(p->runs);
    free(p->pieces);
    free(p->sorted);
    free(p->queue);
    free(p);
}


uint8_t *
us_parser_row(us_parser_t *p, unsigned ctx)
{
    return p->prices + ctx * p->ntokens;
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


size_t
us_parser_size(const us_parser_t *p)
{
    return p->nnodes * sizeof(us_node_t) + p->ncontexts * p->ntokens
           + p->ntokens
           + (US_URL_MAX + 2) * (sizeof(uint64_t) * 2 + sizeof(us_piece_t));
}


/* sorts tokens by their first byte, and places the children of the root */

static void
us_parser_bucket(us_parser_t *p)
{
    size_t     i;
    unsigned   c;
    uint16_t   at[256];

    for (c = 0; c < 256; c++) {
        at[c] = p->buckets[c];
        p->sorted[at[c]++] = (uint16_t) c;

        p->nodes[1 + c].link = c + 1;
        p->nodes[1 + c].token = (uint16_t) c;
    }

    for (i = US_TOKEN_TEXT; i < p->ntokens; i++) {
        p->sorted[at[p->tokens[i].text[0]]++] = (uint16_t) i;
    }

    p->nodes[0].link = 1 << US_KEY_BITS | 1;
    p->nodes[0].mask = 0xffff;
    p->bases[0] = 2;
    p->hint = 257;
    p->top = 257;
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

    p->queue[p->tail] = r;
    p->tail = p->tail + 1 < p->nqueue ? p->tail + 1 : 0;
}


/* gives back what only the building needed */

static void
us_parser_trim(us_parser_t *p)
{
    uint32_t    n;
    us_node_t  *nodes;

    free(p->sorted);
    free(p->queue);
    free(p->bases);

    p->sorted = NULL;
    p->queue = NULL;
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

        if (p->head == p->tail) {
            us_parser_trim(p);
            return 1;
        }

        r = p->queue[p->head];
        p->head = p->head + 1 < p->nqueue ? p->head + 1 : 0;

        if (us_parser_node(p, r) == -1) {
            return -1;
        }
    }

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

        p->nodes[r.node].mask |= (uint16_t) us_parse_bit(c[k]);
        p->nodes[child.node].link = c[k] + 1u;

        if (p->tokens[p->sorted[child.low]].len == child.depth) {
            p->nodes[child.node].token = p->sorted[child.low];
        }

        us_parser_push(p, child);
    }

    return 0;
}


static int
us_parser_place(us_parser_t *p, const uint8_t *c, unsigned n, uint32_t *base)
{
    unsigned  k, tries;
    uint32_t  b, s;

    while (p->hint < p->top && p->nodes[p->hint].link) {
        p->hint++;
    }

    for (s = p->hint, tries = 0; /* void */; s++, tries++) {

        if (tries == US_PARSER_TRIES && s < p->top) {
            s = p->top;
        }

        if (us_parser_grow(p, s + 512) == -1) {
            return -1;
        }

        if (p->nodes[s].link || s <= c[0]) {
            continue;
        }

        b = s - c[0];

        if (p->bases[b >> 3] & 1 << (b & 7)) {
            continue;
        }

        for (k = 1; k < n && p->nodes[b + c[k]].link == 0; k++) { /* void */ }

        if (k == n) {
            break;
        }
    }

    p->bases[b >> 3] |= (uint8_t) (1 << (b & 7));

    if (p->top < b + c[n - 1] + 1) {
        p->top = b + c[n - 1] + 1;
    }

    *base = b;

    return 0;
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
