/*
 * The replicated log of a shard, for spin: two servers of which one is in
 * charge, nodes that append to the log, follow it and become its primary.  One
 * row holds one operation, so an LSN is the number of a row.  See
 * src/replog/us_appender.h and us_standby.h.
 *
 *     servers   a commit is confirmed if the server in charge has a synchronous
 *               standby: the other server, or a third one.  Else it hangs: its
 *               row or beat is there, seen by nobody, until the standby is back
 *               or the server is restarted at once; it is on that server alone
 *               then.  A server that was replaced goes on until it is made a
 *               copy of the new one
 *     calls     each goes to any server that takes writes; it is executed, or
 *               late, or not sent; its answer comes later, or not at all
 *     nodes     a worker is killed (a process of the same node goes on, with
 *               what is shared), or the node restarted (it has nothing)
 *     time      a lease is one tick: it is over, and was waited for, when the
 *               clock has moved.  A commit gives a lease in the tick in which
 *               it was sent
 *
 * Clients add one URL (row kind U) and others (kind X), are answered as soon
 * as the row is confirmed or applied, and are denied under the lease.  A
 * request may be admitted by a primary, and add the URL at any time after that.
 *
 * Promises: what was answered is on the server in charge, always the same row;
 * nobody denies it; a row of a primary's own term is its own.
 *
 * -DMUTANT=n breaks one rule; check-model demands that spin notices:
 *
 *      1   the lease is waited for before the TERM row instead of after it
 *      2   a row that was read back counts as confirmed
 *      3   an append does not check the row before
 *      4   a beat only reads
 *      5   a beat does not check that the last row is there
 *      6   rows are applied beyond acked
 *      7   the lease counts from the answer
 *      8   after UNKNOWN a claim that is there is taken as confirmed
 *      9   after UNKNOWN a claim is taken as confirmed
 *     10   a look does not ask whether it is another session
 *     11   a node that waits reads from a server without its TERM row
 *     12   a beat that came between the look and the claim is ignored
 *     13   a beat of an old term is not refused
 *     14   `seen` does not move with a beat
 *     15   two claims of a node for one term are the same bytes
 *     16   a request goes on by its node's role when it was admitted
 *
 * -DREACH=n: one of these never happens, which is false: 1 a third term begins
 * to deny; 2 a primary is deposed; 3 a primary finds the log shorter, which is
 * a server that was replaced; 4 a claim is confirmed by a beat.
 */

#ifndef MUTANT
#define MUTANT  0
#endif

#ifndef REACH
#define REACH   0
#endif

#define NODES    2

#ifndef FAILS                         /* failovers */
#define FAILS   1
#endif

#ifndef RESTARTS                      /* of a server, at once */
#define RESTARTS  0
#endif

#ifndef KILLS                         /* of a worker, or of a whole node */
#define KILLS   0
#endif

#ifndef BEATS
#define BEATS   1
#endif

#ifndef TERMS
#define TERMS   2
#endif

#ifndef ROWS
#define ROWS    4
#endif

#ifndef XS                            /* rows of other URLs */
#define XS      0
#endif

#ifndef REQUESTS                      /* whose bodies come slowly */
#define REQUESTS  0
#endif

#ifndef LATES                         /* statements that are executed late */
#define LATES   0
#endif

#define NOWHERE  2                    /* no session */

#define READING  0
#define CLAIMED  1
#define WAITING  2
#define PRIMARY  3

#define X        6                    /* kinds of rows; 0 .. 5: TERM rows */
#define U        7

/* a chain: 5 bits a row: 2 of the term, 3 of the kind.  Its crc is all of it */

#define ROW(t, k)      (((t) << 3) | (k))
#define CUT(c, n)      ((c) & ((1 << (5 * (n))) - 1))
#define AT(c, i)       (((c) >> (5 * (i))) & 31)
#define PUT(c, i, r)   ((c) | ((r) << (5 * (i))))
#define TERM(c, n)     (AT(c, (n) - 1) >> 3)
#define IS_U(c, i)     ((AT(c, i) & 7) == U)

/* place of the URL, from 1; 0: it is not there */

#define FIND(c)                                                               \
    (IS_U(c, 1) -> 2 : (IS_U(c, 2) -> 3 : (IS_U(c, 3) -> 4                    \
     : (IS_U(c, 4) -> 5 : (IS_U(c, 5) -> 6 : 0)))))

#define OK       1                    /* outcomes */
#define UNKNOWN  2
#define REFUSED  3

#define APPEND   1                    /* calls under way */
#define BEAT     2
#define CLAIM    3
#define CONFIRM  4


/* servers */

int   chain[2];
byte  size[2];                         /* rows that are seen */
bit   hung[2];                        /* one more row is there */
byte  beat[2];
bit   hung_beat[2];
byte  acked[2];
byte  hung_acked[2];
bit   writes[2];
bit   cur;                            /* in charge */
byte  sync = 1;                       /* 0: hangs; 1: the other; 2: a third */

/* a statement that is executed late */

byte  late;
bit   late_at;
int   late_chain;
byte  late_len;
byte  late_acked;

byte  fails, restarts, kills, beats, extras, lates, requests;

/* nodes */

byte  role[NODES];
int   log[NODES];                     /* rows that its store has */
byte  pub[NODES];                     /* how many */
byte  last[NODES], sure[NODES];       /* of a primary */
bit   known[NODES];
byte  call[NODES], outcome[NODES];
bit   sent[NODES];                    /* in this tick: the call */
bit   begun[NODES];                   /* in this tick: the term's */
bit   lease[NODES];
bit   admitted[NODES];                /* a request, by what was a primary */
bit   waited[NODES];                  /* a tick since `seen` */
bit   news[NODES];                    /* the claim found a beat, or a server */
byte  session[NODES];
byte  head[NODES], head_beat[NODES];
int   claim[NODES];
byte  claim_len[NODES];
#if MUTANT == 10
int   head_chain[NODES];
#endif

/* what a client was answered */

byte  answered;                       /* place of the row, 0: nothing */
byte  answer;                         /* the row */


#define has(s, c, n)  (size[s] >= (n) && CUT(chain[s], n) == CUT(c, n))
#define confirms(s)   (sync && s == cur)
#define taken(rc)     (rc == OK || (MUTANT == 9 && rc == UNKNOWN))


inline server(s)
{
    if
    :: writes[0] -> s = 0
    :: writes[1] -> s = 1
    fi
}


inline more_acked(s, a)
{
    if
    :: a > acked[s] -> acked[s] = a
    :: else
    fi
}


/* the other server is a copy of the one in charge */

inline copy()
{
    chain[1 - cur] = chain[cur];
    size[1 - cur] = size[cur];
    beat[1 - cur] = beat[cur];
    acked[1 - cur] = acked[cur];
}


/* what hung is seen */

inline appear(s)
{
    size[s] = size[s] + hung[s];
    hung[s] = 0;
    beat[s] = beat[s] + hung_beat[s];
    hung_beat[s] = 0;
    more_acked(s, hung_acked[s]);
    hung_acked[s] = 0
}


/* sessions with a server, and its late statement, end */

inline leave(s)
{
    session[0] = (session[0] == s -> NOWHERE : session[0]);
    session[1] = (session[1] == s -> NOWHERE : session[1]);

    if
    :: late && late_at == s -> late = 0; late_at = 0; late_chain = 0;
       late_len = 0; late_acked = 0
    :: else
    fi
}


inline replace()
{
    hung[1 - cur] = 0;
    hung_beat[1 - cur] = 0;
    hung_acked[1 - cur] = 0;
    writes[1 - cur] = 0;
    leave((1 - cur));
    copy()
}


/* the n rows of c, the last of which is new */

inline insert(s, what, c, n, a, rc)
{
    if
    :: hung[s] || (what == CLAIM && hung_beat[s]) -> rc = UNKNOWN
    :: else ->
        if
#if MUTANT == 3
        :: size[s] != n - 1 || (what == CLAIM && !has(s, c, n - 1)) ->
            rc = REFUSED
#else
        :: size[s] != n - 1 || !has(s, c, n - 1) -> rc = REFUSED
#endif
        :: else ->
            chain[s] = PUT(CUT(chain[s], n - 1), n - 1, AT(c, n - 1));

            if
            :: confirms(s) ->
                size[s] = n;
                more_acked(s, a);
                rc = OK;

                if
                :: sync == 1 -> copy()
                :: else
                fi

            :: else ->
                hung[s] = 1;
                hung_acked[s] = (a > hung_acked[s] -> a : hung_acked[s]);
                rc = UNKNOWN
            fi
        fi
    fi
}


inline renew(s, c, n, a, rc)
{
    if
#if MUTANT == 5
    :: TERM(chain[s], size[s]) != TERM(c, n) -> rc = REFUSED
#elif MUTANT == 13
    :: !has(s, c, n) -> rc = REFUSED
#else
    :: !has(s, c, n) || TERM(chain[s], size[s]) != TERM(c, n) -> rc = REFUSED
#endif
    :: else ->
        if
#if MUTANT == 4
        :: true -> rc = OK
#else
        :: confirms(s) ->
            beat[s]++;
            more_acked(s, a);
            rc = OK;

            if
            :: sync == 1 -> copy()
            :: else
            fi
        :: !confirms(s) ->
            rc = UNKNOWN;

            /* it waits for the lock of a beat or claim that hangs, and for
               that of a primary that was killed */

            if
            :: !hung_beat[s] && !(hung[s] && (AT(chain[s], size[s]) & 7) < X) ->
                hung_beat[s] = 1;
                hung_acked[s] = (a > hung_acked[s] -> a : hung_acked[s])
            :: else
            fi
#endif
        fi
    fi
}


/* a change by the node: now, or later */

inline change(what, c, n, a)
{
    server(s);
    sent[me] = 1;
    call[me] = what;

    if
    :: what == CLAIM ->
        news[me] = (s != session[me] || beat[s] != head_beat[me])
    :: else
    fi;

    if
    :: lates < LATES && !late && what != BEAT && what != CONFIRM ->
        lates++;
        late = what;
        late_at = s;
        late_chain = c;
        late_len = n;
        late_acked = a;
        outcome[me] = UNKNOWN
    :: what == APPEND || what == CLAIM -> insert(s, what, c, n, a, outcome[me])
    :: what == BEAT || what == CONFIRM -> renew(s, c, n, a, outcome[me])
    fi;

    s = 0
}


/* the node has the store, and forgets what it was about */

inline stand()
{
    role[me] = READING;
    last[me] = 0;
    sure[me] = 0;
    known[me] = 0;
    call[me] = 0;
    outcome[me] = 0;
    sent[me] = 0;
    begun[me] = 0;
    lease[me] = 0;
    waited[me] = 0;
    news[me] = 0;
    session[me] = NOWHERE;
    head[me] = 0;
    head_beat[me] = 0;
    claim[me] = 0;
    claim_len[me] = 0
#if MUTANT == 10
    ;
    head_chain[me] = 0
#endif
}


inline forget()
{
    stand();
    log[me] = 0;
    pub[me] = 0
}


inline no_claim()
{
    role[me] = READING;
    claim[me] = 0;
    claim_len[me] = 0;
    begun[me] = 0
}


/* a step of a standby: how the log is, and the rows that are confirmed */

inline look()
{
    server(s);

    if
#if MUTANT == 10
    :: session[me] != NOWHERE && beat[s] == head_beat[me] &&
       size[s] == head[me] &&
       CUT(chain[s], size[s]) == head_chain[me]
#elif MUTANT == 14
    :: session[me] == s && size[s] == head[me]
#else
    :: session[me] == s && beat[s] == head_beat[me] && size[s] == head[me]
#endif
    :: else -> waited[me] = 0
    fi;

    session[me] = s;
    head[me] = size[s];
    head_beat[me] = beat[s];
#if MUTANT == 10
    head_chain[me] = CUT(chain[s], size[s]);
#endif

    if
#if MUTANT == 6
    :: has(s, log[me], pub[me]) -> log[me] = CUT(chain[s], size[s]);
                                   pub[me] = size[s]
#else
    :: has(s, log[me], pub[me]) && acked[s] > pub[me] ->
        assert(acked[s] <= size[s]);
        log[me] = CUT(chain[s], acked[s]);
        pub[me] = acked[s]
#endif
    :: else
    fi;

    s = 0
}


/* no other claim that is anywhere has the bytes of this one */

#define used(t, i, k)                                                         \
    (AT(chain[0], i) == ROW(t, k) || AT(chain[1], i) == ROW(t, k) ||          \
     AT(late_chain, i) == ROW(t, k) ||                                        \
     AT(log[0], i) == ROW(t, k) || AT(log[1], i) == ROW(t, k) ||              \
     AT(claim[0], i) == ROW(t, k) || AT(claim[1], i) == ROW(t, k))

inline unused(t, i)
{
    s = (MUTANT == 15 -> me : 0);

    do
    :: MUTANT != 15 && used(t, i, s) -> s++; assert(s < X)
    :: else -> break
    od
}


/* what an answer changes */

inline hear()
{
    if
    :: call[me] == APPEND && outcome[me] == OK ->
        last[me]++;
        sure[me] = last[me]
    :: call[me] == BEAT && outcome[me] == OK -> sure[me] = last[me]
    :: (call[me] == APPEND || call[me] == BEAT) && outcome[me] != OK ->
        known[me] = 0
    :: call[me] == CLAIM && taken(outcome[me]) ->
        role[me] = WAITING;
        begun[me] = sent[me];
        waited[me] = (news[me] && MUTANT != 12 -> 0 : waited[me])
    :: call[me] == CLAIM && outcome[me] == UNKNOWN && !taken(UNKNOWN) ->
        role[me] = CLAIMED
    :: call[me] == CLAIM && outcome[me] == REFUSED -> no_claim()
    :: call[me] == CONFIRM && outcome[me] == OK ->
        assert(REACH != 4);
        role[me] = WAITING;
        begun[me] = sent[me];
        waited[me] = 0
    :: call[me] == CONFIRM && outcome[me] == UNKNOWN
    :: call[me] == CONFIRM && outcome[me] == REFUSED -> no_claim()
    fi;

    if
    :: call[me] <= BEAT && outcome[me] == OK ->
        lease[me] = (MUTANT == 7 -> 1 : sent[me])
    :: else
    fi;

    call[me] = 0;
    outcome[me] = 0;
    sent[me] = 0;
    news[me] = 0
}


/* a primary does not know what follows `last` */

inline learn()
{
    server(s);

    if
    :: size[s] > last[me] ->
        if
        :: TERM(chain[s], last[me] + 1) > TERM(log[me], last[me]) ->
            assert(REACH != 2);
            forget()
        :: else ->
            if
            :: last[me] < pub[me] && has(s, log[me], last[me] + 1) ->
                last[me]++;
#if MUTANT == 2
                sure[me] = last[me]
#endif
            :: else ->
                /* LOST: no row of our term is another's */

                assert(!has(s, log[me], last[me]) ||
                       TERM(chain[s], last[me] + 1) != TERM(log[me], last[me]));
                lease[me] = 0
            fi
        fi

    :: size[s] <= last[me] && has(s, log[me], last[me]) -> known[me] = 1
    :: size[s] <= last[me] && !has(s, log[me], last[me]) ->
        if
        :: last[me] == sure[me] -> assert(REACH != 3); lease[me] = 0
        :: else -> last[me] = sure[me]
        fi
    fi;

    s = 0
}


proctype node(byte me)
{
    byte  s;

end:
    do
    :: atomic { role[me] == READING && !call[me] -> look() }

    /* a claim, of a node that has all that is acked */

    :: atomic {
           role[me] == READING && !call[me] && session[me] != NOWHERE &&
           has(session[me], log[me], pub[me]) && head[me] > 0 &&
           head[me] < ROWS &&
           pub[me] >= acked[session[me]] &&
           TERM(chain[session[me]], head[me]) < TERMS &&
           (MUTANT != 1 || waited[me]) ->
           unused(TERM(chain[session[me]], head[me]) + 1, head[me]);
           claim[me] = PUT(CUT(chain[session[me]], head[me]), head[me],
                           ROW(TERM(chain[session[me]], head[me]) + 1, s));
           s = 0;
           claim_len[me] = head[me] + 1;
           change(CLAIM, claim[me], claim_len[me], 0)
       }

    :: atomic {
           role[me] == CLAIMED && !call[me] ->
           server(s);

           if
           :: has(s, claim[me], claim_len[me]) ->
               s = 0;
#if MUTANT == 8
               role[me] = WAITING
#else
               if
               :: beats < BEATS -> beats++;
                  change(CONFIRM, claim[me], claim_len[me], pub[me])
               :: else
               fi
#endif
           :: else -> s = 0; no_claim()
           fi
       }

    :: atomic {
           role[me] == WAITING && pub[me] < claim_len[me] ->
           server(s);

           if
           :: TERM(chain[s], size[s]) > TERM(claim[me], claim_len[me]) ->
               no_claim()
           :: TERM(chain[s], size[s]) <= TERM(claim[me], claim_len[me]) &&
              has(s, claim[me], claim_len[me]) &&
              has(s, log[me], pub[me]) ->
               log[me] = claim[me];
               pub[me] = claim_len[me]
           :: else ->
#if MUTANT == 11
               if
               :: has(s, log[me], pub[me]) && size[s] > pub[me] ->
                   pub[me] = (size[s] < claim_len[me] ->
                              size[s] : claim_len[me]);
                   log[me] = CUT(chain[s], pub[me])
               :: else
               fi
#else
               skip
#endif
           fi;

           s = 0
       }

    /* a term has begun, and nobody else denies */

    :: atomic {
           role[me] == WAITING && log[me] == claim[me] &&
           (MUTANT == 1 || waited[me]) ->
           role[me] = PRIMARY;
           last[me] = pub[me];
           sure[me] = pub[me];
           known[me] = 0;
           lease[me] = begun[me];
           begun[me] = 0;
           waited[me] = 0;
           session[me] = NOWHERE;
           head[me] = 0;
           head_beat[me] = 0;
           claim[me] = 0;
           claim_len[me] = 0
       }

    :: atomic { role[me] == PRIMARY && !call[me] && !known[me] -> learn() }

    :: atomic {
           role[me] == PRIMARY && !call[me] && known[me] &&
           last[me] < pub[me] ->
           change(APPEND, CUT(log[me], last[me] + 1), last[me] + 1, sure[me])
       }

    :: atomic {
           role[me] == PRIMARY && !call[me] && known[me] && beats < BEATS ->
           beats++;
           change(BEAT, log[me], last[me], sure[me])
       }

    /* its answer, or none */

    :: atomic { call[me] -> hear() }
    :: atomic { call[me] && outcome[me] != UNKNOWN ->
                outcome[me] = UNKNOWN; hear() }

    /* clients: the URL, or another one, is new */

    :: atomic {
           role[me] == PRIMARY && pub[me] < ROWS && !FIND(log[me]) ->
           log[me] = PUT(log[me], pub[me],
                         ROW(TERM(log[me], last[me]), U));
           pub[me]++
       }
    :: atomic {
           role[me] == PRIMARY && pub[me] < ROWS && extras < XS ->
           extras++;
           log[me] = PUT(log[me], pub[me],
                         ROW(TERM(log[me], last[me]), X));
           pub[me]++
       }

    /* a request that goes on later; the store refuses it in a standby */

    :: atomic {
           role[me] == PRIMARY && requests < REQUESTS ->
           requests++;
           admitted[me] = 1
       }
    :: atomic {
           admitted[me] ->
           admitted[me] = 0;

           if
           :: (role[me] == PRIMARY || MUTANT == 16) && pub[me] < ROWS &&
              !FIND(log[me]) ->
               log[me] = PUT(log[me], pub[me],
                             ROW(TERM(log[me], pub[me]), U));
               pub[me]++
           :: else
           fi
       }

    /* a hit, or the answer of the add */

    :: atomic {
           FIND(log[me]) &&
           FIND(log[me]) <= (role[me] == PRIMARY -> sure[me] : pub[me]) &&
           (FIND(log[me]) != answered ||
               AT(log[me], answered - 1) != answer) ->
           assert(answered == 0);
           answered = FIND(log[me]);
           answer = AT(log[me], answered - 1)
       }

    /* a denial */

    :: atomic {
           role[me] == PRIMARY && lease[me] && !FIND(log[me]) &&
           answered -> assert(false)
       }
#if REACH == 1
    :: atomic {
           role[me] == PRIMARY && lease[me] && TERM(log[me], last[me]) == 3 ->
           assert(false)
       }
#endif

    /* the worker is killed; the node restarts */

    :: atomic {
           kills < KILLS && role[me] == PRIMARY ->
           kills++;
           call[me] = 0;
           outcome[me] = 0;
           sent[me] = 0;
           known[me] = 0
       }
    :: atomic { kills < KILLS && role[me] != PRIMARY -> kills++; stand() }
    :: atomic { kills < KILLS -> kills++; forget() }
    od
}


inline tick(i)
{
    lease[i] = 0;
    sent[i] = 0;
    begun[i] = 0;
    waited[i] = (session[i] != NOWHERE || role[i] == WAITING -> 1 : 0)
}


proctype world()
{
    byte  rc;

end:
    do
    :: atomic {
           tick(0);
           tick(1)
       }

    /* the standby is away; it takes over, or another one is there */

    :: atomic { sync == 1 -> sync = 0 }
    :: atomic { sync == 2 && fails < FAILS -> replace(); sync = 0 }
    :: atomic {
           sync != 2 && !writes[1 - cur] && fails < FAILS ->
           fails++;
           sync = 0;
           cur = 1 - cur;
           writes[cur] = 1
       }
    :: atomic { sync == 0 && writes[1 - cur] -> appear(cur); sync = 2 }
    :: atomic { sync != 1 -> appear(cur); replace(); sync = 1 }

    /* a server restarts while its commits hang */

    :: atomic {
           restarts < RESTARTS && !confirms(0) && (hung[0] || hung_beat[0]) ->
           restarts++;
           appear(0);
           leave(0)
       }
    :: atomic {
           restarts < RESTARTS && !confirms(1) && (hung[1] || hung_beat[1]) ->
           restarts++;
           appear(1);
           leave(1)
       }

    /* a late statement is executed */

    :: atomic {
           late ->
           insert(late_at, late, late_chain, late_len, late_acked, rc);
           rc = 0;
           late = 0;
           late_at = 0;
           late_chain = 0;
           late_len = 0;
           late_acked = 0
       }

    /* what was answered is there */

    :: atomic {
           answered && (size[cur] < answered ||
                        AT(chain[cur], answered - 1) != answer) ->
           assert(false)
       }
    od
}


init
{
    atomic {
        chain[0] = ROW(1, 0);
        chain[1] = ROW(1, 0);
        size[0] = 1;
        size[1] = 1;
        acked[0] = 1;
        acked[1] = 1;
        writes[0] = 1;

        log[0] = ROW(1, 0);
        pub[0] = 1;
        last[0] = 1;
        sure[0] = 1;
        known[0] = 1;
        role[0] = PRIMARY;
        session[0] = NOWHERE;

        session[1] = NOWHERE;
        log[1] = ROW(1, 0);
        pub[1] = 1;
        run node(0);
        run node(1);
        run world()
    }
}
