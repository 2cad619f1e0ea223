
/*
 * See us_share.h.
 */


#include "us_share.h"
#include "../us_fault.h"

#include <stdio.h>


void
us_share_set_state(us_share_t *sh, us_life_state_t state, const char *reason)
{
    if (us_share_state(sh) == state) {
        return;
    }

    if (reason) {
        snprintf(sh->reason, sizeof(sh->reason), "%s", reason);
    }

    /* release: what the state promises was stored before it */

    us_release(&sh->state, state);
    (void) us_share_change(sh);
}


int
us_share_reason(us_share_t *sh, const char *reason)
{
    if (strncmp(sh->reason, reason, sizeof(sh->reason) - 1) == 0) {
        return 0;
    }

    snprintf(sh->reason, sizeof(sh->reason), "%s", reason);

    return 1;
}


uint64_t
us_share_change(us_share_t *sh)
{
    return __atomic_add_fetch(&sh->version, 1, __ATOMIC_SEQ_CST);
}


void
us_share_row(const us_replog_row_t *from, us_replog_row_t *to)
{
    to->lsn = us_acquire(&from->lsn);
    to->next = us_acquire(&from->next);
    to->term = us_acquire(&from->term);
    to->crc = us_acquire(&from->crc);
}


void
us_share_set_row(us_replog_row_t *to, const us_replog_row_t *from)
{
    us_release(&to->lsn, from->lsn);
    us_release(&to->next, from->next);
    us_release(&to->term, from->term);
    us_release(&to->crc, from->crc);
}


void
us_share_count(uint64_t *counter, uint64_t n)
{
    (void) __atomic_add_fetch(counter, n, __ATOMIC_SEQ_CST);
}


static int
us_share_swap(uint64_t *word, uint64_t old, uint64_t new)
{
    return __atomic_compare_exchange_n(word, &old, new, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}


/* roles */

static void
us_role_free(us_share_t *sh, us_role_t role)
{
    uint64_t  holder;

    holder = us_acquire(&sh->roles[role].holder);

    if (holder && !us_process_alive(holder)
        && us_share_swap(&sh->roles[role].holder, holder, 0))
    {
        us_share_count(&sh->takeovers, 1);
    }
}


void
us_role_sweep(us_share_t *sh)
{
    unsigned  i;

    for (i = 0; i < US_ROLES; i++) {
        us_role_free(sh, i);
    }
}


int
us_role_take(us_share_t *sh, us_role_t role, us_process_t self, uint64_t now)
{
    us_role_free(sh, role);

    if (us_acquire(&sh->roles[role].holder) != self
        && !us_share_swap(&sh->roles[role].holder, 0, self))
    {
        return -1;
    }

    us_release(&sh->roles[role].since, now ? now : 1);

    us_fault(US_FAULT_ROLE);

    return 0;
}


void
us_role_rest(us_share_t *sh, us_role_t role, us_process_t self)
{
    if (us_acquire(&sh->roles[role].holder) == self) {
        us_release(&sh->roles[role].since, 0);
    }
}


void
us_role_release(us_share_t *sh, us_role_t role, us_process_t self)
{
    us_role_rest(sh, role, self);
    (void) us_share_swap(&sh->roles[role].holder, self, 0);
}


/* members */

us_member_t *
us_member_join(us_share_t *sh, us_process_t self)
{
    unsigned      i;
    us_member_t  *m;

    for (i = 0; i < US_SHARE_MEMBERS; i++) {
        m = &sh->members[i];

        if (us_acquire(&m->process) == 0
            && us_share_swap(&m->process, 0, self))
        {
            us_raise(&sh->members_top, i + 1);
            return m;
        }
    }

    return NULL;
}


void
us_member_leave(us_member_t *m)
{
    us_release(&m->version, 0);
    us_release(&m->deleting, 0);
    us_release(&m->wiped, 0);
    us_release(&m->process, 0);
}


us_member_t *
us_member_inherit(us_share_t *sh, us_process_t self)
{
    unsigned      i;
    uint64_t      process;
    us_member_t  *m;

    for (i = 0; i < us_acquire(&sh->members_top); i++) {
        m = &sh->members[i];
        process = us_acquire(&m->process);

        if (process && !us_process_alive(process)
            && us_share_swap(&m->process, process, self))
        {
            return m;
        }
    }

    return NULL;
}


int
us_members_know(const us_share_t *sh, uint64_t version)
{
    unsigned            i;
    const us_member_t  *m;

    for (i = 0; i < us_acquire(&sh->members_top); i++) {
        m = &sh->members[i];

        /*
         * Acquire: the member's last read of the store came before it stored
         * the version.
         */

        if (us_acquire(&m->process) && us_acquire(&m->version) < version
            && us_process_alive(m->process))
        {
            return 0;
        }
    }

    return 1;
}


uint64_t
us_members_wiped(const us_share_t *sh)
{
    unsigned            i;
    uint64_t            wiped, least;
    const us_member_t  *m;

    least = UINT64_MAX;

    for (i = 0; i < us_acquire(&sh->members_top); i++) {
        m = &sh->members[i];
        wiped = us_acquire(&m->wiped);

        if (wiped < least && us_acquire(&m->process)
            && us_process_alive(m->process))
        {
            least = wiped;
        }
    }

    return least;
}


int
us_members_deleting(const us_share_t *sh)
{
    unsigned  i;

    for (i = 0; i < us_acquire(&sh->members_top); i++) {
        if (us_acquire(&sh->members[i].deleting)) {
            return 1;
        }
    }

    return 0;
}


/* the journal's end */

void
us_share_tail(const us_share_t *sh, us_tail_t *tail)
{
    uint64_t  at;

    do {
        /* acquire: the tail was stored before its number */

        at = us_acquire(&sh->tail_at);
        *tail = sh->tail[at & 1];

        /*
         * Acquire: the copy is made before the number is read again.  It is
         * whole if that is the same: the writer is at most in the other one.
         */

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (us_relaxed(&sh->tail_at) != at);
}


void
us_share_set_tail(us_share_t *sh, const us_tail_t *tail)
{
    uint64_t  next;

    next = us_relaxed(&sh->tail_at) + 1;

    /*
     * Release: the last number is stored before this copy is written over.
     * Without it a weak machine may show a reader of the last copy but one a
     * mixture, under a number that is still its own.
     */

    __atomic_thread_fence(__ATOMIC_RELEASE);

    sh->tail[next & 1] = *tail;

    us_fault(US_FAULT_TAIL);

    /* release: a process that reads the number finds the whole tail */

    us_release(&sh->tail_at, next);
}


/* the disk */

int
us_share_stall(us_share_t *sh, us_role_t role, uint64_t now, const char *why)
{
    us_share_count(&sh->errors, 1);
    us_release(&sh->stalled_at[role], now);

    if (us_share_stalled(sh, role) || us_acquire(&sh->lost)) {
        return 0;
    }

    snprintf(sh->why[role], US_SHARE_REASON, "%s", why);

    (void) __atomic_or_fetch(&sh->stalled, (uint64_t) 1 << role,
                             __ATOMIC_SEQ_CST);
    (void) us_share_change(sh);

    return 1;
}


int
us_share_resume(us_share_t *sh, us_role_t role)
{
    if (!us_share_stalled(sh, role)) {
        return 0;
    }

    (void) __atomic_and_fetch(&sh->stalled, ~((uint64_t) 1 << role),
                              __ATOMIC_SEQ_CST);
    (void) us_share_change(sh);

    return 1;
}


int
us_share_lose(us_share_t *sh, const char *reason)
{
    us_share_count(&sh->errors, 1);

    if (us_acquire(&sh->lost)) {
        return 0;
    }

    snprintf(sh->reason, sizeof(sh->reason), "%s", reason);

    us_release(&sh->lost, 1);
    (void) us_share_change(sh);

    return 1;
}
