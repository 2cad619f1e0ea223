
/*
 * See us_known.h.
 *
 * Rows change under the store's lock, but for `seen`.  A new one is published
 * by its id, after what else it has; readers that meet a row while it becomes
 * another one's take it for either.
 */


#include "us_known.h"
#include "../store/us_erasures.h"


typedef enum {
    US_KNOWN_NONE = 0,
    US_KNOWN_THERE,
    US_KNOWN_GONE
} us_known_state_t;


static us_known_state_t
us_known_state(const us_known_t *k, uint64_t now)
{
    uint64_t  seen, away;

    if (us_acquire(&k->id) == 0) {
        return US_KNOWN_NONE;
    }

    seen = us_acquire(&k->seen);
    away = now > seen ? now - seen : 0;

    return away < US_KNOWN_AWAY ? US_KNOWN_THERE
           : away < (us_acquire(&k->keeps) ? US_KNOWN_KEEPS : US_KNOWN_MEMORY)
             ? US_KNOWN_GONE : US_KNOWN_NONE;
}


unsigned
us_known_enter_locked(us_share_t *sh, const us_known_t *said, int *news)
{
    unsigned           i, row;
    us_known_t        *k;
    us_known_state_t   state, best;

    row = US_KNOWN;
    best = US_KNOWN_THERE;
    *news = 1;

    for (i = 0; i < US_KNOWN; i++) {
        k = &sh->known[i];
        state = us_known_state(k, said->seen);

        if (k->id == said->id) {
            *news = (state == US_KNOWN_NONE);
            row = i;
            break;
        }

        /* a free one; or the one that was seen least lately */

        if (state == US_KNOWN_NONE
            ? best != US_KNOWN_NONE
            : state == US_KNOWN_GONE && best != US_KNOWN_NONE
              && (row == US_KNOWN || k->seen < sh->known[row].seen))
        {
            best = state;
            row = i;
        }
    }

    if (row == US_KNOWN) {
        us_release(&sh->stranger, said->seen);
        return row;
    }

    k = &sh->known[row];

    if (k->id != said->id) {
        us_release(&k->id, 0);
    }

    us_release(&k->seen, said->seen);
    us_release(&k->keeps, said->keeps);
    us_release(&k->erased, said->erased);
    us_release(&k->id, said->id);

    return row;
}


void
us_known_beat(us_share_t *sh, unsigned row, uint64_t id, uint64_t now)
{
    if (row == US_KNOWN) {
        us_release(&sh->stranger, now);

    } else if (us_acquire(&sh->known[row].id) == id) {
        us_release(&sh->known[row].seen, now);
    }
}


unsigned
us_known_left(const us_share_t *sh, uint64_t gone, uint64_t now)
{
    unsigned           i, left;
    uint64_t           stranger;
    const us_known_t  *k;
    us_known_state_t   state;

    left = 0;

    for (i = 0; i < US_KNOWN; i++) {
        k = &sh->known[i];
        state = us_known_state(k, now);

        if (state != US_KNOWN_NONE
            && (gone == 0 || us_acquire(&k->erased) < gone))
        {
            left |= state == US_KNOWN_THERE ? US_LEFT_REPLICAS
                                            : US_LEFT_AWAY;
        }
    }

    stranger = us_acquire(&sh->stranger);

    if (stranger && now < stranger + US_KNOWN_AWAY) {
        left |= US_LEFT_REPLICAS;
    }

    return left;
}


uint64_t
us_known_count(const us_share_t *sh, uint64_t now, uint64_t *away)
{
    uint64_t          n;
    unsigned          i;
    us_known_state_t  state;

    *away = 0;

    for (i = 0, n = 0; i < US_KNOWN; i++) {
        state = us_known_state(&sh->known[i], now);
        n += (state != US_KNOWN_NONE);
        *away += (state == US_KNOWN_GONE);
    }

    return n;
}
