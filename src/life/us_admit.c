
/*
 * Which requests the state of a store on disk lets pass, and whether their
 * replies are still true when they are sent.  See us_life.h.
 *
 *     READY                all; changes while the disk takes them
 *     REPLICA              reads
 *     FOLLOWING, STANDBY, STALLED, DAMAGED
 *                          reads that find something: no lists, no counts
 *     LOOKUP               reads by id
 *     others               none
 */


#include "us_life.h"


int
us_life_admits(const us_life_t *l, unsigned wants)
{
    int  change;

    change = (wants & US_WANTS_CHANGE) != 0;

    switch (us_life_state(l)) {

    case US_LIFE_READY:
        return !change || us_life_writable(l, NULL);

    case US_LIFE_REPLICA:
        return !change;

    case US_LIFE_FOLLOWING:
    case US_LIFE_STANDBY:
    case US_LIFE_STALLED:
    case US_LIFE_DAMAGED:
        return !change && !(wants & US_WANTS_ALL) && us_life_current(l);

    case US_LIFE_LOOKUP:
        return !change && (wants & US_WANTS_BY_ID);

    default:
        return 0;
    }
}


int
us_life_answers(const us_life_t *l, int found)
{
    switch (us_life_state(l)) {

    case US_LIFE_READY:
        return 1;

    case US_LIFE_FOLLOWING:
    case US_LIFE_REPLICA:
    case US_LIFE_STANDBY:
    case US_LIFE_STALLED:
    case US_LIFE_DAMAGED:
        return found && us_life_current(l);

    default:
        return 0;
    }
}


void
us_life_view(const us_life_t *l, us_life_view_t *view)
{
    view->partial = !us_life_whole(l);
    view->generation = l->generation;
}


/*
 * A URL that was not found before the store owned its directory may be there
 * now.  If the store has begun anew since, those that were found do not count
 * either.
 */

int
us_life_overtaken(const us_life_t *l, const us_life_view_t *view, int denies)
{
    return view->generation != us_share_generation(l->sh)
           || us_life_state(l) <= US_LIFE_LOADING
           || (denies && (view->partial || !us_life_whole(l)));
}


/*
 * An add under way causes no absence, as its URL is found; a delete under way
 * does.  So does a map: under it, a URL is denied that another shard may add.
 */

int
us_life_promised(const us_life_t *l, uint64_t lsn, uint64_t top, int absent)
{
    return us_life_lsn(l) >= lsn
           || (top != US_STORE_NO_ID && top <= us_life_ids(l)
               && (!absent || (us_life_deletes_promised(l)
                               && us_life_map_durable(l))));
}
