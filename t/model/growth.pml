/*
 * The growth of a cluster, for spin: one slot, one URL, three shards, maps that
 * reach them in any order, and requests by any of these maps.
 *
 *     map   version  owner  former owners
 *      0       1       0    -
 *      1       2       1    0
 *      2       2       2    0              of two operators at once
 *      3       3       0    1, 2           the slot goes back
 *      4       4       1    0, 2
 *      5       5       2    1              has dropped 0: nobody may adopt it
 *
 * All shards have map 0 at first.  An operator posts any map to any shard at
 * any time, so each shard may skip versions and be late for ever.
 *
 * A request is one of a router, by any map, or of a client that knows none and
 * asks one shard.  Each question is answered by a shard in one step, at any
 * time later; a request that never goes on is a message that was lost, or a
 * router that died.  There is no delete.
 *
 *     add   without former owners: /add at the owner.  With them: /seen at the
 *           owner and at all former owners, in any order; if all have denied,
 *           /add at the owner by the same map
 *     seen  /seen at all of them
 *
 * What a shard may answer, by the map that it has adopted:
 *
 *                                    add          hit    denial
 *     owned, no former owners        yes          yes    yes
 *     owned, with former owners      same map     yes    same map
 *     sealed (a former owner)        no           yes    same map
 *     never owned                    no           no     no
 *
 * It refuses a request by a map that is newer than its own, or another one of
 * the same version.
 *
 * Promises: at most one shard has the URL, and nobody denies it after a client
 * was answered that it is there.
 *
 * -DMUTANT=n breaks one rule; check-model demands that spin notices:
 *
 *      1   sealed: denies by any map
 *      2   owned with former owners: denies by any map
 *      3   owned with former owners: adds by any map
 *      4   a request by a newer map is not refused
 *      5   a shard adopts another map of the same version
 *      6   a shard adopts a map that has dropped an owner
 *      7   a shard adopts a map of a lower version
 *      8   a shard forgets in a restart what it has adopted
 *      9   a router adds without asking
 *     10   a router adds by another map than it has asked by
 *     11   a shard that never owned the slot denies
 *     12   a router counts a shard that did not answer as one that denied
 *
 * -DREACH=m: nothing is ever added by map m; which is false.
 *
 * -DFRESH=1: shards 1 and 2 have no map at first, and adopt any that names
 * them; there is no map 5.  -DFRESH=2: there is.  That is an error, which no
 * shard can see: its first map can be compared with none.  So urlstore cluster
 * apply compares a map with all that are there before it posts it.
 */

#ifndef MUTANT
#define MUTANT  0
#endif

#ifndef REACH
#define REACH   9
#endif

#ifndef FRESH
#define FRESH   0
#endif

#ifndef OPS
#define OPS     3
#endif

#define SHARDS  3
#define NONE    7                     /* the client knows no map */

#define VERSION(m)  ((m) == 0 -> 1 : ((m) == 1 -> 2 : (m)))
#define OWNER(m)    ((m) == 0 || (m) == 3 -> 0 : ((m) == 1 || (m) == 4 \
                     -> 1 : 2))
#define FORMER(m)   ((m) == 0 -> 0 : ((m) == 3 -> 6 : ((m) == 4 -> 5 : \
                     ((m) == 5 -> 2 : 1))))
#define ALL(m)      (FORMER(m) | (1 << OWNER(m)))

byte  map[SHARDS];                    /* adopted */
bit   has[SHARDS];                    /* the URL is in its store */
bit   known;                          /* a client was answered so */


#if MUTANT == 5
#define newer(m, s)  (VERSION(m) >= VERSION(map[s]) && m != map[s])
#elif MUTANT == 7
#define newer(m, s)  (VERSION(m) != VERSION(map[s]))
#else
#define newer(m, s)  (VERSION(m) > VERSION(map[s]))
#endif

#define fresh(s)  (map[s] == NONE)

#if MUTANT == 6
#define follows(m, s)  newer(m, s)
#elif MUTANT == 5 || MUTANT == 7
#define follows(m, s)  (newer(m, s) && m != 5)
#else
#define follows(m, s)                                                         \
    (fresh(s) -> (ALL(m) >> s) & 1                                            \
              : newer(m, s) && (ALL(map[s]) & ALL(m)) == ALL(map[s]))
#endif

#define same(m, s)  (m == map[s])

#if MUTANT == 4
#define refuses(s, m)  (fresh(s) || (m != NONE && !same(m, s) \
                        && VERSION(m) == VERSION(map[s])))
#else
#define refuses(s, m)  (fresh(s) || (m != NONE && !same(m, s) \
                        && VERSION(m) >= VERSION(map[s])))
#endif

#define owned(s)      (OWNER(map[s]) == s)
#define inherited(s)  (owned(s) && FORMER(map[s]) != 0)
#define sealed(s)     ((FORMER(map[s]) >> s) & 1)

#if MUTANT == 1
#define seal_denies(s, m)  1
#else
#define seal_denies(s, m)  same(m, s)
#endif

#if MUTANT == 2
#define heir_denies(s, m)  1
#else
#define heir_denies(s, m)  same(m, s)
#endif

#if MUTANT == 3
#define heir_adds(s, m)  1
#else
#define heir_adds(s, m)  same(m, s)
#endif

#if MUTANT == 11
#define stranger_denies  1
#else
#define stranger_denies  0
#endif

#define hits(s)     (has[s] && (owned(s) || sealed(s)))
#define denies(s, m)                                                          \
    ((owned(s) && (!inherited(s) || heir_denies(s, m)))                       \
     || (sealed(s) && seal_denies(s, m))                                      \
     || (!owned(s) && !sealed(s) && stranger_denies))
#define adds(s, m)  (owned(s) && (!inherited(s) || heir_adds(s, m)))


/* the next shard of a set */

inline choose(set, s)
{
    if
    :: set & 1 -> s = 0
    :: set & 2 -> s = 1
    :: set & 4 -> s = 2
    fi
}


inline any_map(m)
{
    if
    :: m = 0 :: m = 1 :: m = 2 :: m = 3 :: m = 4
#if FRESH != 1
    :: m = 5
#endif
    fi
}


proctype operator()
{
    byte  m, s;

end:
    do
    :: atomic {
           any_map(m);
           choose(7, s);

           if
           :: follows(m, s) -> map[s] = m
           :: else
           fi;

           m = 0;
           s = 0
       }
#if MUTANT == 8
    :: atomic { choose(7, s); map[s] = 0; s = 0 }
#endif
    od
}


/* a question to a shard of `left`; goes to `there` or `over`, or it denied */

inline ask()
{
    choose(left, s);

    if
    :: !refuses(s, m) && hits(s) -> goto there
    :: !refuses(s, m) && !hits(s) && denies(s, m) -> left = left & ~(1 << s)
#if MUTANT == 12
    :: refuses(s, m) || (!hits(s) && !denies(s, m)) -> left = left & ~(1 << s)
#else
    :: refuses(s, m) || (!hits(s) && !denies(s, m)) -> goto over
#endif
    fi;

    s = 0
}


proctype request()
{
    byte  m, s, left;
    bit   add, had;

    /*
     * Which request it is, and its first question.  A question that comes
     * later than the request begins adds nothing: `had` is what was known
     * before, and it only grows.
     */

    atomic {
        if
        :: add = 0
        :: add = 1
        fi;

        if
        :: any_map(m); left = ALL(m)
        :: m = NONE; choose(7, s); left = 1 << s
        fi;

#if MUTANT == 9
        if
        :: add && m != NONE -> goto second
        :: else
        fi;
#endif

        if
        :: add && (m == NONE || FORMER(m) == 0) -> goto second
        :: else
        fi;

        had = known && !add;
        ask()
    }

    /* the other questions, each a step of its own; then the second round */

    do
    :: atomic { left != 0 -> ask() }
    :: atomic {
           left == 0;

           if
           :: !add -> assert(!had); goto over
           :: else
           fi;

second:
#if MUTANT == 10
           if
           :: m != NONE -> any_map(m)
           :: else
           fi;
#endif

           if
           :: m != NONE -> s = OWNER(m)
           :: else -> choose(left, s)
           fi;

           if
           :: !refuses(s, m) && hits(s) -> goto there
           :: !refuses(s, m) && !hits(s) && adds(s, m) ->
               has[s] = 1;
               assert(has[0] + has[1] + has[2] == 1);
               assert(m != REACH);
               goto there
           :: refuses(s, m) || (!hits(s) && !adds(s, m)) -> goto over
           fi
       }
    od;

    /* the answer comes later */

there:
    atomic { m = 0; s = 0; left = 0; add = 0; had = 0 };

    known = 1;

over:
    atomic { m = 0; s = 0; left = 0; add = 0; had = 0 };

end:
    false
}


init
{
    byte  i;

    atomic {
#if FRESH
        map[1] = NONE;
        map[2] = NONE;
#endif
        run operator();

        do
        :: i < OPS -> run request(); i++
        :: else -> break
        od;

        i = 0
    }
}
