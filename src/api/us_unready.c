
/*
 * See us_unready.h.
 */


#include "us_unready.h"

#include <stdio.h>


static void
us_unready_say(us_unready_t *u, const char *text, const char *reason)
{
    snprintf(u->detail, sizeof(u->detail), "%s%s", text, reason);
}


void
us_unready(us_unready_t *u, const us_life_t *l, int overtaken)
{
    us_life_info_t   info;
    us_life_state_t  state;

    memset(u, 0, sizeof(us_unready_t));

    us_life_info(l, &info);
    state = us_life_state(l);

    /* until an operator does something */

    switch (state) {

    case US_LIFE_DAMAGED:
        us_unready_say(u, "the directory is damaged; the zone is read-only "
                       "and has what was stored before the damage: ",
                       info.reason);
        return;

    case US_LIFE_TOO_SMALL:
        us_unready_say(u, "", info.reason);
        return;

    case US_LIFE_FAILED:
        us_unready_say(u, l->conf.replicate ? ""
                          : "the directory cannot be read: ", info.reason);
        return;

    case US_LIFE_LOOKUP:
        us_unready_say(u, "this zone answers /url and /urls only "
                       "(mode=lookup)", "");
        return;

    default:
        break;
    }

    if (info.sync_failed) {
        us_unready_say(u, "read-only until a restart: ", info.reason);
        return;
    }

    u->passes = 1;

    if (state <= US_LIFE_LOADING) {
        u->loading = 1;
        u->progress = info.progress;

        snprintf(u->detail, sizeof(u->detail), "loading: %u%%%s%s",
                 u->progress, info.reason[0] ? ", " : "", info.reason);

    } else if (state == US_LIFE_FOLLOWING) {
        us_unready_say(u, "another server owns the directory", "");

    } else if (!us_life_current(l)) {
        us_unready_say(u, "this node has heard nothing of its log for longer "
                       "than stale=", "");

    } else if (state == US_LIFE_STANDBY) {
        us_unready_say(u, "this node is a standby: another one is the "
                       "primary, or this one is about to be", "");

    } else if (state == US_LIFE_STALLED) {
        us_unready_say(u, "the log does not confirm: ",
                       info.stalled ? info.reason
                                    : "another node may be the primary");

    } else if (state == US_LIFE_REPLICA) {
        u->primary = 1;
        us_unready_say(u, "this replica does not have it, or not yet", "");

    } else if (l->ending) {
        us_unready_say(u, "this process is ending", "");

    } else if (overtaken) {
        us_unready_say(u, "the directory was loaded meanwhile", "");

    } else {
        us_unready_say(u, "the disk is late: ",
                       info.stalled ? info.reason
                                    : "no write or sync has returned in time");
    }
}
