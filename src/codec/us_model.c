
/*
 * A model: the tokens and codes under which records are written.
 *
 * FORMAT:
 *
 *     us_model_s   magic, version, sizes, checksum
 *     uint16_t     nlen[ncodes][18]    how many symbols of each code length
 *     uint32_t     tokens[ntokens]     text offset 19 | length 6 | context 7
 *     uint16_t     symbols[nsymbols]   by code, then by length
 *     uint8_t      text[text_size]     of bytes and learnt tokens
 *
 * padded to a multiple of 8 bytes.
 *
 * A text is cut into tokens: single bytes, learnt tokens, and runs (3 to 32
 * characters of a small alphabet, which follow packed).  Each token is coded
 * by the canonical Huffman code of its context; a context's code has the
 * tokens that were seen in it, and an escape (symbol `ntokens`) after which
 * the token follows in the code that has them all.  The context after a token
 * is kept with the token.
 *
 * A record has no end symbol: its size is known in units of 4 bits, and up to 3
 * ones pad it.  In each context, ones are the beginning of the longest code,
 * which has at least 4 bits.  So the padding is never a whole token: a code
 * that would end beyond the record marks the end of the tokens.
 *
 * Ones from the first bit on are no record: in the code of headers they are the
 * last symbol of the longest code, which is the greatest one, and no header has
 * that.  So an erased record is ones (us_log.c).
 *
 * Invariants, checked when a model is installed and relied on ever after: every
 * code is complete (the sum of 2^-length is 1) and its longest length is at
 * least 4; symbols of one length ascend, none occurs twice, and none is missing
 * that a writer could need; ones are the greatest symbol of a header; symbols,
 * contexts and text offsets are in range; the checksum is right.  So no bits,
 * however hostile, lead the decoder out of the model, and any text can be
 * written.
 *
 * First in this file what packs runs, and the lengths of codes; then what
 * checks a model and answers what its users ask: texts, contexts, the code of a
 * symbol; last what writes one.
 */


#include "us_model.h"
#include "us_builtin_data.h"

#include <endian.h>
#include <stdlib.h>


#if (__BYTE_ORDER != __LITTLE_ENDIAN)
#error "models are kept in little-endian byte order"
#endif


/*
 * Runs are packed: digits go 3 to 10 bits (2: 7, 1: 4), hexadecimal digits 4
 * bits each, [0-9a-z] 3 to 16 bits (2: 11, 1: 6), [0-9A-Za-z_-] 6 bits each.
 */

static const uint8_t  us_run_group[US_RUN_ALPHABETS][4] = {
    { 0, 4, 7, 10 }, { 0, 4, 8, 12 }, { 0, 6, 11, 16 }, { 0, 6, 12, 18 }
};

static const uint8_t  us_run_radix[US_RUN_ALPHABETS] = { 10, 16, 36, 64 };

static const char     us_run_chars[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

#define D  US_RUN_DIGIT
#define H  US_RUN_HEX
#define L  US_RUN_LOWER
#define U  US_RUN_UPPER

const uint8_t  us_run_classes[256] = {
    ['0'] = D, D, D, D, D, D, D, D, D, D,
    ['a'] = H, H, H, H, H, H, L, L, L, L, L, L, L,
            L, L, L, L, L, L, L, L, L, L, L, L, L,
    ['A'] = U, U, U, U, U, U, U, U, U, U, U, U, U,
            U, U, U, U, U, U, U, U, U, U, U, U, U,
    ['-'] = US_RUN_OTHER,
    ['_'] = US_RUN_OTHER
};

#undef D
#undef H
#undef L
#undef U


unsigned
us_run_bits(unsigned alphabet, unsigned len)
{
    return len / 3 * us_run_group[alphabet][3]
           + us_run_group[alphabet][len % 3];
}


static unsigned
us_run_value(uint8_t c)
{
    if (c <= '9') {
        return c == '-' ? 62 : (unsigned) c - '0';
    }

    if (c >= 'a') {
        return (unsigned) c - 'a' + 10;
    }

    return c == '_' ? 63 : (unsigned) c - 'A' + 36;
}


void
us_run_put(us_bitout_t *o, unsigned alphabet, const uint8_t *text,
    unsigned len)
{
    unsigned  i, n, v;

    for ( /* void */ ; len; len -= n) {
        n = len < 3 ? len : 3;

        for (i = 0, v = 0; i < n; i++) {
            v = v * us_run_radix[alphabet] + us_run_value(*text++);
        }

        us_bitout_put(o, v, us_run_group[alphabet][n]);
    }
}


/*
 * Values beyond the largest of a group come from damaged bits only: they are
 * made characters of some kind.
 */

void
us_run_get(uint64_t w, unsigned alphabet, unsigned len, uint8_t *out)
{
    unsigned  i, n, v, radix;

    radix = us_run_radix[alphabet];

    for ( /* void */ ; len; len -= n) {
        n = len < 3 ? len : 3;

        v = (unsigned) w & ((1u << us_run_group[alphabet][n]) - 1);
        w >>= us_run_group[alphabet][n];

        for (i = n; i-- > 0; /* void */) {
            out[i] = (uint8_t) us_run_chars[v % radix];
            v /= radix;
        }

        out += n;
    }
}


/*
 * The lengths of a code.  Two queues build the tree over the sorted counts (van
 * Leeuwen, 1976): the leaves, and the inner nodes, which come into being in
 * ascending order by themselves.  Depths are then read off from the root down.
 * Codes longer than the limit are cut to it, which overfills the code; as long
 * as it is overfull, one of the longest codes that can be split below the limit
 * makes room (the heuristic of zlib's trees.c, gen_bitlen).  Since
 * n <= 2^(max-1), it ends.
 */


static int
us_huffman_cmp(const void *one, const void *two)
{
    uint64_t  a = *(const uint64_t *) one, b = *(const uint64_t *) two;

    return (a > b) - (a < b);
}


void
us_huffman_lengths(const uint32_t *counts, uint16_t *sym, size_t n,
    unsigned max, uint16_t nlen[US_HUFFMAN_MAX + 1], uint64_t *work)
{
    size_t     i, j, k, leaf, node;
    uint32_t   l, kraft, full, depths[US_HUFFMAN_MAX + 1];
    uint64_t  *w, *up, sum;

    w = work;
    up = work + n;

    for (i = 0; i < n; i++) {
        w[i] = (uint64_t) counts[sym[i]] << 16 | (uint16_t) ~sym[i];
    }

    qsort(w, n, sizeof(uint64_t), us_huffman_cmp);

    for (i = 0; i < n; i++) {
        sym[n - 1 - i] = (uint16_t) ~w[i];
        w[i] >>= 16;
    }

    /* w[k] becomes the weight of inner node k; leaf >= k always */

    leaf = 0;
    node = 0;

    for (k = 0; k < n - 1; k++) {
        sum = 0;

        for (j = 0; j < 2; j++) {
            if (node < k && (leaf == n || w[node] < w[leaf])) {
                sum += w[node];
                w[node++] = k;

            } else {
                sum += w[leaf++];
            }
        }

        w[k] = sum;
    }

    /* w[k] is now the parent of inner node k, up[k] becomes its depth */

    memset(depths, 0, sizeof(depths));

    up[n - 2] = 0;
    depths[0] = 1;

    for (k = n - 2; k-- > 0; /* void */) {
        l = (uint32_t) up[w[k]] + 1;

        if (l > US_HUFFMAN_MAX) {
            l = US_HUFFMAN_MAX;       /* longer codes are cut in any case */
        }

        up[k] = l;
        depths[l]++;
    }

    /* from inner nodes by depth to leaves by depth, none below max */

    memset(nlen, 0, sizeof(uint16_t) * (US_HUFFMAN_MAX + 1));

    for (l = 1, i = 0; i < n; l++) {
        k = 2 * (size_t) depths[l - 1] - depths[l];

        if (l >= max) {
            nlen[max] += (uint16_t) (n - i);
            break;
        }

        nlen[l] = (uint16_t) k;
        i += k;
    }

    kraft = 0;
    full = (uint32_t) 1 << max;

    for (l = 1; l <= max; l++) {
        kraft += (uint32_t) nlen[l] << (max - l);
    }

    while (kraft > full) {
        for (l = max - 1; nlen[l] == 0; l--) { /* void */ }

        nlen[l]--;
        nlen[l + 1] += 2;
        nlen[max]--;
        kraft--;
    }
}


/* bytes, the lowest bit first */

#define US_R2(n)  n, n + 128, n + 64, n + 192
#define US_R4(n)  US_R2(n), US_R2(n + 32), US_R2(n + 16), US_R2(n + 48)
#define US_R6(n)  US_R4(n), US_R4(n + 8), US_R4(n + 4), US_R4(n + 12)

const uint8_t  us_model_reversed[256] = {
    US_R6(0), US_R6(2), US_R6(1), US_R6(3)
};

#undef US_R2
#undef US_R4
#undef US_R6


/* FNV-1a over words; the fields before the checksum are checked one by one */

static uint32_t
us_model_sum(const us_model_t *m)
{
    size_t    i;
    uint64_t  sum, w;

    sum = 0xcbf29ce484222325;

    for (i = sizeof(us_model_t); i < m->core_size; i += 8) {
        memcpy(&w, (const uint8_t *) m + i, sizeof(uint64_t));
        sum = (sum ^ w) * 0x100000001b3;
        sum ^= sum >> 29;
    }

    return (uint32_t) (sum ^ sum >> 32);
}


/*
 * All codes are complete and long enough.  The symbols of a code are in range,
 * those of one length ascend, none is there twice; and none is missing that a
 * writer could need: a context has its escape, all other codes have all their
 * symbols.  0 or -1.
 */

static int
us_model_codes_check(const us_model_t *m)
{
    unsigned         code, l, i, n, limit, longest;
    uint32_t         kraft;
    uint64_t         seen[(US_TOKENS_MAX + 1 + 63) / 64], bit;
    const uint16_t  *nlen, *list, *end;

    list = us_model_at(m, m->symbols);
    end = list + m->nsymbols;

    for (code = 0; code < us_model_ncodes(m); code++) {
        nlen = us_model_nlen(m, code);
        limit = code < m->ncontexts ? m->ntokens + 1
                : code - m->ncontexts == US_CODE_ESCAPE ? m->ntokens
                : code - m->ncontexts == US_CODE_HEAD ? US_HEAD_SYMBOLS
                : US_PREFIX_SYMBOLS;
        kraft = 0;
        longest = 0;
        n = 0;

        memset(seen, 0, sizeof(seen));

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            kraft += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);
            longest = nlen[l] ? l : longest;

            for (i = 0; i < nlen[l]; i++, n++, list++) {

                if (list == end || *list >= limit
                    || (i && *list <= list[-1]))
                {
                    return -1;
                }

                bit = (uint64_t) 1 << *list % 64;

                if (seen[*list / 64] & bit) {
                    return -1;
                }

                seen[*list / 64] |= bit;
            }
        }

        if (kraft != 1 << US_HUFFMAN_MAX || longest < 4) {
            return -1;
        }

        if (code < m->ncontexts
            ? !(seen[m->ntokens / 64] >> m->ntokens % 64 & 1)
            : n != limit || (code - m->ncontexts == US_CODE_HEAD
                             && list[-1] != limit - 1))
        {
            return -1;
        }
    }

    return list == end ? 0 : -1;
}


const us_model_t *
us_model_check(const uint8_t *p, size_t len)
{
    uint32_t           t;
    unsigned           i, ncodes;
    const uint32_t    *tokens;
    const us_model_t  *m;

    m = (const us_model_t *) p;

    /* the fields before the checksum, one by one, and the checksum */

    if (len < sizeof(us_model_t)
        || m->magic != US_MODEL_MAGIC || m->version != US_MODEL_VERSION
        || m->pad || m->pad2[0] || m->pad2[1] || m->pad2[2]
        || m->core_size > len
        || m->ncontexts <= US_CTX_GROUP || m->ncontexts > US_CTX_MAX
        || m->ntokens < US_TOKEN_TEXT || m->ntokens > US_TOKENS_MAX
        || m->nsymbols > (US_CTX_MAX + US_CODES) * (US_TOKENS_MAX + 1)
        || m->text_size > US_TEXT_MAX || m->text_size < US_TEXT_SLACK)
    {
        return NULL;
    }

    ncodes = us_model_ncodes(m);

    if (m->nlen != sizeof(us_model_t)
        || m->tokens != m->nlen + ncodes * sizeof(uint16_t) * US_NLEN
        || m->symbols != m->tokens + m->ntokens * sizeof(uint32_t)
        || m->text != m->symbols + m->nsymbols * sizeof(uint16_t)
        || m->core_size != ((m->text + m->text_size + 7) & ~7u)
        || m->checksum != us_model_sum(m))
    {
        return NULL;
    }

    /* texts are within the pool, contexts are in range */

    tokens = us_model_at(m, m->tokens);

    for (i = 0; i < m->ntokens; i++) {
        t = tokens[i];

        if (t >> US_CTX_SHIFT >= m->ncontexts
            || (t >> US_TEXT_BITS & US_LEN_MASK) == 0
            || (t >> US_TEXT_BITS & US_LEN_MASK) > US_TOKEN_MAX
            || (t & (US_TEXT_MAX - 1)) + US_TEXT_SLACK > m->text_size)
        {
            return NULL;
        }
    }

    return us_model_codes_check(m) == 0 ? m : NULL;
}


void
us_model_seal(uint8_t *core, size_t len)
{
    us_model_t  *m;

    m = (us_model_t *) core;

    if (m->core_size <= len && m->core_size % 8 == 0) {
        m->checksum = us_model_sum(m);
    }
}


us_str_t
us_model_bytes(const us_model_t *m)
{
    us_str_t  bytes;

    bytes.data = (const uint8_t *) m;
    bytes.len = m->core_size;

    return bytes;
}


unsigned
us_model_ntokens(const us_model_t *m)
{
    return m->ntokens;
}


unsigned
us_model_token_ctx(const us_model_t *m, unsigned token)
{
    return ((const uint32_t *) us_model_at(m, m->tokens))[token]
           >> US_CTX_SHIFT;
}


us_str_t
us_model_token_text(const us_model_t *m, unsigned token)
{
    uint32_t  t;
    us_str_t  text;

    t = ((const uint32_t *) us_model_at(m, m->tokens))[token];

    text.len = t >> US_TEXT_BITS & US_LEN_MASK;
    text.data = (const uint8_t *) us_model_at(m, m->text)
                + (t & (US_TEXT_MAX - 1));

    return text;
}


const uint16_t *
us_model_symbols(const us_model_t *m, unsigned code)
{
    unsigned         i, l;
    const uint16_t  *list, *nlen;

    list = us_model_at(m, m->symbols);

    for (i = 0; i < code; i++) {
        nlen = us_model_nlen(m, i);

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            list += nlen[l];
        }
    }

    return list;
}


void
us_model_ranks(const us_model_t *m, unsigned code,
    us_rank_t ranks[US_HUFFMAN_MAX + 1])
{
    unsigned         l, at;
    uint32_t         v;
    const uint16_t  *nlen;

    nlen = us_model_nlen(m, code);
    memset(ranks, 0, sizeof(us_rank_t));

    for (l = 1, v = 0, at = 0; l <= US_HUFFMAN_MAX; l++) {
        ranks[l].first = (uint16_t) v;
        ranks[l].at = (uint16_t) at;
        ranks[l].n = nlen[l];

        v += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);
        at += nlen[l];
    }
}


void
us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n)
{
    unsigned          l, i;
    const uint16_t   *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_symbols(m, code);

    memset(lens, 0, n);

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, list++) {
            if (*list < n) {
                lens[*list] = (uint8_t) l;
            }
        }
    }
}


void
us_model_codes(const us_model_t *m, unsigned code, uint32_t *codes, size_t n)
{
    unsigned         l, i;
    uint32_t         v;
    const uint16_t  *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_symbols(m, code);
    v = 0;

    memset(codes, 0, n * sizeof(uint32_t));

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, list++) {
            if (*list < n) {
                codes[*list] = us_code_make(us_model_reverse(v), l);
            }

            v += 1u << (US_HUFFMAN_MAX - l);
        }
    }
}


/* 7 less the class of the byte before a tail: 0 is the class of the rest */

const uint8_t  us_model_before[256] = {
    ['/'] = 7,
    ['='] = 6, ['&'] = 6, ['?'] = 6,
    ['-'] = 5, ['_'] = 5, ['+'] = 5, ['%'] = 5,
    ['.'] = 4,
    ['0' ... '9'] = 3,
    ['a' ... 'z'] = 2,
    ['A' ... 'Z'] = 1
};


#define US_TEXT_PAIRS  65536


/*
 * The texts of a model that is being written.
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

typedef struct {
    uint32_t               at;        /* of a host, in the core; or 0 */
    uint16_t               host;
    uint8_t                within;    /* where in the host it begins */
} us_pool_place_t;


typedef struct {
    const us_model_def_t  *def;

    uint8_t               *text;      /* all hosts, as they were found */
    size_t                 used;
    uint16_t              *owner;     /* the host of each byte */

    /* positions of each pair of bytes, latest first */
    int32_t               *heads;
    int32_t               *chain;

    us_pool_place_t       *places;    /* of each token */

    uint8_t               *out;       /* the hosts as the core has them */
} us_pool_t;


/* finds a host for each token: long ones first, so that they can be hosts */

static void
us_pool_share(us_pool_t *p)
{
    int                    at, begin;
    unsigned               i, k, longest, pair;
    us_pool_place_t       *place;
    const us_token_def_t  *t;

    memset(p->heads, 0xff, US_TEXT_PAIRS * sizeof(int32_t));

    for (longest = US_TOKEN_MAX; longest > 1; longest--) {
        for (i = US_TOKEN_TEXT; i < p->def->ntokens; i++) {
            t = &p->def->tokens[i];
            place = &p->places[i];

            if (t->len != longest) {
                continue;
            }

            /* among the hosts, within one of them */

            for (at = p->heads[t->text[0] << 8 | t->text[1]]; at != -1;
                 at = p->chain[at])
            {
                if ((size_t) at + t->len <= p->used
                    && p->owner[at] == p->owner[at + t->len - 1]
                    && memcmp(p->text + at, t->text, t->len) == 0)
                {
                    break;
                }
            }

            if (at != -1) {
                for (begin = at; begin > 0
                                 && p->owner[begin - 1] == p->owner[at];
                     begin--)
                {
                    /* void */
                }

                place->host = p->owner[at];
                place->within = (uint8_t) (at - begin);
                continue;
            }

            place->host = (uint16_t) i;

            for (k = 0; k < t->len; k++) {
                p->text[p->used + k] = t->text[k];
                p->owner[p->used + k] = (uint16_t) i;

                if (k + 1u < t->len) {
                    pair = (unsigned) t->text[k] << 8 | t->text[k + 1];
                    p->chain[p->used + k] = p->heads[pair];
                    p->heads[pair] = (int32_t) (p->used + k);
                }
            }

            p->used += t->len;
        }
    }
}


/*
 * Writes the hosts, after the single bytes; returns what they take.  Between
 * them is a byte that no URL has: two words side by side must not spell what
 * was erased.
 */

static size_t
us_pool_lay(us_pool_t *p)
{
    size_t    used;
    unsigned  i, host;

    for (used = 0; used < 256; used++) {
        p->out[used] = (uint8_t) used;
    }

    p->out[used++] = US_TOKEN_BLANK;

    for (i = US_TOKEN_TEXT; i < p->def->ntokens; i++) {
        host = p->places[i].host;

        if (p->places[host].at == 0) {
            p->places[host].at = (uint32_t) used;
            memcpy(p->out + used, p->def->tokens[host].text,
                   p->def->tokens[host].len);
            used += p->def->tokens[host].len;
            p->out[used++] = US_TOKEN_BLANK;
        }
    }

    return used;
}


static int
us_model_cmp_symbol(const void *one, const void *two)
{
    return *(const uint16_t *) one - *(const uint16_t *) two;
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


/* text: the bytes of the hosts */

static uint8_t *
us_model_write_core(us_pool_t *p, size_t text, size_t *len)
{
    size_t                 i, ncodes, nsymbols;
    uint8_t               *core;
    unsigned               l;
    uint32_t               at, n;
    us_model_t            *m;
    const us_token_def_t  *t;
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
        t = &def->tokens[i];
        at = 0;
        n = t->len;

        if (i < US_TOKEN_RUN) {
            at = (uint32_t) i;
            n = 1;

        } else if (i < US_TOKEN_TEXT) {
            n = us_token_run_len((unsigned) i);

        } else {
            at = p->places[p->places[i].host].at + p->places[i].within;
        }

        ((uint32_t *) (core + m->tokens))[i]
            = at | n << US_TEXT_BITS | (uint32_t) t->ctx << US_CTX_SHIFT;
    }

    us_model_write_codes(def, (uint16_t *) (core + m->nlen),
                         (uint16_t *) (core + m->symbols));

    memcpy(core + m->text, p->out, text);

    us_model_seal(core, *len);

    return core;
}


uint8_t *
us_model_write(const us_model_def_t *def, size_t *len)
{
    size_t      room;
    uint8_t    *core;
    unsigned    i;
    us_pool_t   p;

    room = 257;

    for (i = US_TOKEN_TEXT; i < def->ntokens; i++) {
        room += def->tokens[i].len + 1u;
    }

    p.def = def;
    p.used = 0;
    p.text = malloc(room);
    p.owner = malloc(room * sizeof(uint16_t));
    p.heads = malloc(US_TEXT_PAIRS * sizeof(int32_t));
    p.chain = malloc(room * sizeof(int32_t));
    p.places = calloc(def->ntokens, sizeof(us_pool_place_t));
    p.out = malloc(room);

    core = NULL;

    if (p.text && p.owner && p.heads && p.chain && p.places && p.out) {
        us_pool_share(&p);
        core = us_model_write_core(&p, us_pool_lay(&p), len);
    }

    free(p.out);
    free(p.places);
    free(p.chain);
    free(p.heads);
    free(p.owner);
    free(p.text);

    return core;
}


/*
 * The texts are laid anew: a text that goes may be the host of texts that stay,
 * and these, left where they were, would spell it.
 */

uint8_t *
us_model_without(const us_model_t *m, const uint8_t *drop, size_t *len)
{
    size_t            n;
    uint8_t          *core, blank[US_TOKEN_MAX];
    unsigned          i, l, ncodes;
    uint16_t         *symbols;
    us_str_t          text;
    us_code_def_t    *codes;
    us_token_def_t   *tokens;
    us_model_def_t    def;

    core = NULL;
    ncodes = us_model_ncodes(m);
    memset(blank, US_TOKEN_BLANK, sizeof(blank));

    codes = calloc(ncodes, sizeof(us_code_def_t));
    tokens = calloc(m->ntokens, sizeof(us_token_def_t));
    symbols = malloc(m->nsymbols * sizeof(uint16_t));

    if (codes == NULL || tokens == NULL || symbols == NULL) {
        goto done;
    }

    memcpy(symbols, us_model_at(m, m->symbols),
           m->nsymbols * sizeof(uint16_t));

    for (i = 0, n = 0; i < ncodes; i++) {
        codes[i].symbols = symbols + n;

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            codes[i].nlen[l] = us_model_nlen(m, i)[l];
            n += codes[i].nlen[l];
        }
    }

    for (i = 0; i < m->ntokens; i++) {
        text = us_model_token_text(m, i);

        tokens[i].text = us_model_dropped(drop, i) ? blank : text.data;
        tokens[i].len = (uint8_t) text.len;
        tokens[i].ctx = (uint8_t) us_model_token_ctx(m, i);
    }

    def.ncontexts = m->ncontexts;
    def.ntokens = m->ntokens;
    def.tokens = tokens;
    def.codes = codes;

    core = us_model_write(&def, len);

done:

    free(symbols);
    free(tokens);
    free(codes);

    return core;
}


/* --- the built-in model --------------------------------------------------- */

/*
 * It comes with the program.  Records refer to it for ever: a change of the
 * data makes another store format (US_LAYOUT).
 */

/* base 64 as in RFC 4648 */

static const uint8_t  us_builtin_digits[128] = {
    ['A'] = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
            13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    ['a'] = 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
            39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
    ['0'] = 52, 53, 54, 55, 56, 57, 58, 59, 60, 61,
    ['+'] = 62,
    ['/'] = 63
};


us_model_t *
us_builtin_create(void)
{
    size_t    i, k, n;
    uint8_t  *p;
    uint32_t  bits;

    n = (us_builtin_size + 2) / 3;

    p = malloc(n * 3);
    if (p == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        for (bits = 0, k = 4 * i; k < 4 * i + 4; k++) {
            bits = bits << 6
                   | us_builtin_digits[(uint8_t) us_builtin_data[k] & 127];
        }

        p[3 * i] = (uint8_t) (bits >> 16);
        p[3 * i + 1] = (uint8_t) (bits >> 8);
        p[3 * i + 2] = (uint8_t) bits;
    }

    if (us_model_check(p, us_builtin_size) == NULL) {
        free(p);
        return NULL;
    }

    return (us_model_t *) p;
}
