
/*
 * The array of claims: the rule, the sweep, the scan.  See us_claims.h.
 */


#include "us_claims.h"


/* claims that a scan looks at together: two cache lines of them */
#define US_CLAIMS_BLOCK  64


void
us_claims_rule(us_claims_rule_t *rule, uint64_t clock, uint64_t unit,
    uint64_t older)
{
    uint64_t  stood, least;

    /* the least age, by the clock, of a claim that is due at `unit` */

    stood = unit > clock ? unit - clock : 0;
    least = older >= stood ? older - stood + 1 : 0;

    rule->first = (uint16_t) (1 + (clock + US_CLAIMS_TURN - US_CLAIMS_OLDEST)
                                  % US_CLAIMS_TURN);
    rule->n = 0;

    if (least <= US_CLAIMS_OLDEST) {
        rule->n = US_CLAIMS_OLDEST + 1 - (uint32_t) least;
    }

    /* where values turn over, from 65535 to 1, 0 lies between them */

    if (rule->first + rule->n > US_CLAIMS_TURN + 1) {
        rule->n++;
    }
}


/* the age by the clock; 0 if the claim is newer than the clock */

static uint64_t
us_claims_age(uint64_t clock, uint16_t value)
{
    uint64_t  age;

    age = (clock % US_CLAIMS_TURN + US_CLAIMS_TURN - (value - 1))
          % US_CLAIMS_TURN;

    return age > US_CLAIMS_OLDEST ? 0 : age;
}


uint16_t
us_claims_value(uint64_t clock, uint64_t unit)
{
    if (unit == 0 || (clock > unit && clock - unit > US_CLAIMS_WINDOW)) {
        return 0;
    }

    return (uint16_t) (1 + unit % US_CLAIMS_TURN);
}


uint64_t
us_claims_unit(uint64_t clock, uint16_t value)
{
    uint64_t  age;

    if (value == 0) {
        return 0;
    }

    age = us_claims_age(clock, value);

    return age <= US_CLAIMS_WINDOW && age < clock ? clock - age : 0;
}


/*
 * 1: one of the block's claims is due.  The claims are copied by whole words,
 * which lets the compiler compare many of them at once.
 */

static int
us_claims_block(const uint64_t *words, const us_claims_rule_t *rule)
{
    unsigned  i;
    uint64_t  copy[US_CLAIMS_BLOCK / 4];
    uint16_t  v[US_CLAIMS_BLOCK], due, last;

    for (i = 0; i < US_CLAIMS_BLOCK / 4; i++) {
        copy[i] = us_acquire(&words[i]);
    }

    memcpy(v, copy, sizeof(v));

    due = 0;
    last = (uint16_t) (rule->n - 1);

    for (i = 0; i < US_CLAIMS_BLOCK; i++) {
        due |= (uint16_t) ((v[i] == 0)
                           | ((uint16_t) (v[i] - rule->first) <= last));
    }

    return due;
}


uint64_t
us_claims_scan(const us_arena_t *a, const us_claims_rule_t *rule,
    uint64_t from, uint64_t to)
{
    uint16_t          *p;
    us_claims_rule_t   none;

    /*
     * no claim is old enough.  URLs that were never claimed are due all the
     * same, and the test of a block needs one value at least
     */

    if (rule->n == 0) {
        none = (us_claims_rule_t) { 0, 1 };
        rule = &none;
    }

    while (from < to) {
        p = us_claims_at(a, from);

        if (p == NULL) {
            return from;
        }

        if (from % US_CLAIMS_BLOCK == 0 && to - from >= US_CLAIMS_BLOCK
            && !us_claims_block((const uint64_t *) p, rule))
        {
            from += US_CLAIMS_BLOCK;
            continue;
        }

        if (us_claims_due(rule, us_claims_read(a, from))) {
            return from;
        }

        from++;
    }

    return to;
}


/* claims of ids in [from, to) that the rule finds become 0 */

static void
us_claims_sweep(us_arena_t *a, const us_claims_rule_t *rule, uint64_t from,
    uint64_t to)
{
    uint16_t  *p;
    uint64_t   ids;

    ids = (uint64_t) 1 << (a->chunk_shift - 1);

    while (from < to) {
        p = us_claims_at(a, from);

        if (p == NULL) {
            from = (from / ids + 1) * ids;
            continue;
        }

        /*
         * No intent: each is a change of its own, which the next writer makes
         * if this one is killed.  To a reader both values mean "long ago".
         */

        if (*p && us_claims_due(rule, *p)) {
            __atomic_store_n(p, 0, __ATOMIC_RELAXED);
        }

        from++;
    }
}


void
us_claims_tick_locked(us_arena_t *a, uint64_t unit)
{
    uint64_t           d, n, end, to;
    us_head_t         *h;
    us_claims_rule_t   rule;

    h = a->head;
    d = h->clock ? unit - h->clock : 0;
    us_claims_rule(&rule, h->clock, unit, US_CLAIMS_WINDOW);

    if (d > US_CLAIMS_WINDOW) {
        rule = (us_claims_rule_t) { 1, US_CLAIMS_TURN };
    }

    if (d >= US_CLAIMS_PASS) {
        us_claims_sweep(a, &rule, 0, h->next_id);
        us_intend_locked(a, &h->sweep, 0);
        us_intend_locked(a, &h->sweep_end, 0);

    } else if (d) {

        /* a pass ends with the ids that there were when it began */

        end = h->sweep_end;
        n = (end + US_CLAIMS_PASS - 1) / US_CLAIMS_PASS * d;
        to = h->sweep + n < end ? h->sweep + n : end;

        us_claims_sweep(a, &rule, h->sweep, to);

        if (to < end) {
            us_intend_locked(a, &h->sweep, to);

        } else {
            us_intend_locked(a, &h->sweep, 0);
            us_intend_locked(a, &h->sweep_end, h->next_id);
        }
    }

    us_intend_locked(a, &h->clock, unit);
}


int
us_claims_reserve_locked(us_arena_t *a, uint64_t id)
{
    return us_arena_allot_locked(a, US_AREA_CLAIMS,
                                 id >> (a->chunk_shift - 1));
}


void
us_claims_write_locked(us_arena_t *a, uint64_t id, uint16_t value)
{
    /* relaxed: next_id is released after it */

    __atomic_store_n(us_claims_at(a, id), value, __ATOMIC_RELAXED);
}


static uint64_t *
us_claims_word(const us_arena_t *a, uint64_t id)
{
    return (uint64_t *) ((uintptr_t) us_claims_at(a, id) & ~(uintptr_t) 7);
}


void
us_claims_set_locked(us_arena_t *a, uint64_t id, uint16_t value)
{
    uint64_t  *word, v;

    word = us_claims_word(a, id);

    if (word) {
        v = us_intended(a, word);
        memcpy((uint8_t *) &v + id % 4 * 2, &value, 2);
        us_intend_locked(a, word, v);
    }
}


void
us_claims_word_locked(us_arena_t *a, uint64_t number, uint64_t word)
{
    us_intend_locked(a, us_claims_word(a, number * 4), word);
}
