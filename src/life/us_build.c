
/*
 * See us_build.h.
 */


#include "us_build.h"
#include "us_data.h"
#include "us_load.h"
#include "../us_fault.h"

#include <stdio.h>


int
us_build_apply(us_life_t *l, us_store_t *store, const uint8_t *p, size_t len,
    int bulk, const char **why)
{
    us_release(&l->sh->load_applying, 1);

    us_fault(US_FAULT_LOAD);

    switch (us_data_apply(store, p, len)) {

    case 0:
        return 0;

    case US_RECOVERY_NO_ROOM:

        if (bulk) {
            return 0;
        }

        *why = "the zone has no room for what came: it is loaded anew, which "
               "takes less";
        return -1;

    case US_RECOVERY_NO_MEMORY:
        *why = "no memory for what came";
        return -1;

    default:
        *why = "operations do not fit the store";
        return -1;
    }
}


int
us_build_settle(us_store_t *store, uint64_t lsn, uint64_t ids)
{
    int  rc;

    rc = us_data_apply(store, NULL, 0);

    if (rc == US_RECOVERY_NO_ROOM) {
        return rc;
    }

    return rc != 0 || us_store_next_id(store) != ids
           || us_store_set_lsn(store, lsn) == -1 ? -1 : 0;
}


void
us_build_small(us_job_t *job, us_store_t *store, int journal,
    const char *what)
{
    char        need[32], text[160];
    us_life_t  *l;

    l = job->life;

    us_load_size(l, us_store_size_needed(store, journal), need, sizeof(need));
    (void) snprintf(text, sizeof(text), "SIZE is too small for %s: %s "
                    "suffices", what, need);

    us_share_set_state(l->sh, US_LIFE_TOO_SMALL, text);
    us_job_say(job, US_SAY_EMERG, "%s", text);
}


/*
 * The last line ends what us_build_apply() began: a process that is killed
 * before it leaves a store that is emptied.  So the state is set before: no
 * later process sets it.
 */

void
us_build_publish(us_share_t *sh, us_life_state_t state, uint64_t lsn,
    uint64_t ids)
{
    us_release(&sh->load_lsn, lsn);
    us_release(&sh->load_ids, ids);
    us_release(&sh->written_ids, ids);
    us_release(&sh->durable_ids, ids);
    us_share_set_state(sh, state, NULL);

    us_release(&sh->load_applying, 0);
}
