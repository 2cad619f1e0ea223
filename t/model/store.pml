/*
 * The protocol of the store, for spin: publish, move, delete, growth, and one
 * kill at any step, against a reader that takes no lock.
 *
 * The words that processes share are m[]: each access to one of them is a step
 * of its own.  The model is sequentially consistent.  That is enough: writers
 * store only in the order that matters (release), readers load only in the
 * order that matters (acquire), and nobody relies on a load that comes after
 * a store of the same process.
 *
 *     m[]    next_id | leaves | directory of leaves 1, 2, 3 | deleted |
 *            blocks of memory: header, slot, slot
 *
 * A header is 4 * serial number + entries.  There are 1 or 2 leaves: leaf 1 has
 * all keys; when it is split, leaf 2 has the even and leaf 3 the odd ones.  A
 * block that was freed is used again at once, which is the worst for readers.
 *
 * src/zone/us_arena.c (intents), us_index.c (leaves) and us_add.c (order of
 * words) are modelled.  -DMUTANT=n breaks one of their rules; check-model
 * demands that spin notices:
 *
 *     1   the number of intents is stored before the list is complete
 *     2   a split publishes the number of leaves before the directory words
 *     3   freeing a leaf does not change its serial number
 *     4   a reader does not look at the directory again
 *
 * All at once is more than a few minutes can search, so tools/check-model.sh
 * runs it three times: -DREADERS=0 (kills, as the next writer finds them),
 * -DKILLS=0 (long histories for a reader), and both with shorter histories.
 */

#ifndef READERS
#define READERS 1
#endif

#ifndef KILLS
#define KILLS   1
#endif

#ifndef MUTANT
#define MUTANT  0
#endif

#define KEYS      3
#define IDS       4
#define BLOCKS    4
#ifndef OPS
#define OPS       4
#endif

#define NEXT      0
#define LEAVES    1
#define DIR(l)    (1 + (l))
#define DELETED   5
#define HEAD(b)   (6 + 3 * (b))
#define SLOT(b,i) (7 + 3 * (b) + (i))
#define WORDS     (6 + 3 * BLOCKS)

#define COUNT(h)  ((h) & 3)
#define SERIAL(h) ((h) >> 2)
#define LEAF(n,k) ((n) == 1 -> 1 : 2 + ((k) & 1))

#define NONE      15

byte  m[WORDS];
byte  record[IDS];                    /* the text of an id: a key */
bit   ack[KEYS];                      /* an add was answered */
bit   forgotten[KEYS];                /* a delete was begun */

byte  intents;
byte  offset[8];
byte  value[8];

byte  serial;
bit   killed;
bit   locked;


#define is_deleted(id)  ((m[DELETED] >> (id)) & 1)


/* nobody else's: the writer's registers */

byte  n, i, b, c, x, y, k, id, leaf, ops;


inline intend(o, v)
{
    offset[n] = o;
    value[n] = v;
    n++
}


inline fulfil()
{
    i = 0;
    do
    :: i < intents -> m[offset[i]] = value[i]; i++
    :: else -> break
    od;
    atomic { intents = 0; reset() }
}


/* what nobody reads any more must not make two states of one */

inline reset()
{
    n = 0;
    i = 0;
    do
    :: i < 8 -> offset[i] = 0; value[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    b = 0;
    c = 0;
    x = 0;
    y = 0;
    leaf = 0
}


inline commit()
{
    intents = n;
    n = 0;
    fulfil()
}


/* a block that no directory word in use leads to, and not `but` */

inline find_free(to, but)
{
    atomic {
        to = 0;
        do
        :: to != but && ((m[LEAVES] == 1 && to != m[DIR(1)]) ||
           (m[LEAVES] == 2 && to != m[DIR(2)] && to != m[DIR(3)])) -> break
        :: else -> to++; assert(to < BLOCKS)
        od
    }
}


inline free_block(o)
{
#if MUTANT == 3
    intend(HEAD(o), SERIAL(m[HEAD(o)]) << 2)
#else
    atomic { serial++; intend(HEAD(o), serial << 2) }
#endif
}


inline finish_block(o, entries)
{
#if MUTANT == 3
    m[HEAD(o)] = entries
#else
    atomic { serial++; m[HEAD(o)] = (serial << 2) + entries }
#endif
}


/* copies entries of block b into x: those of one side, or all but one id */

inline copy_into(to, side, but)
{
    i = 0;
    c = 0;
    do
    :: i < COUNT(m[HEAD(b)]) ->
        if
        :: (side == NONE || (record[m[SLOT(b, i)]] & 1) == side) &&
           m[SLOT(b, i)] != but ->
            m[SLOT(to, c)] = m[SLOT(b, i)];
            c++
        :: else
        fi;
        i++
    :: else -> break
    od;
    finish_block(to, c)
}


/* the id of key k, or NONE; under the lock nothing moves */

inline look(result)
{
    atomic {
        result = NONE;
        b = m[DIR(LEAF(m[LEAVES], k))];
        i = 0;
        do
        :: i < COUNT(m[HEAD(b)]) ->
            if
            :: m[SLOT(b, i)] < m[NEXT] && record[m[SLOT(b, i)]] == k &&
               !is_deleted(m[SLOT(b, i)]) ->
                result = m[SLOT(b, i)]
            :: else
            fi;
            i++
        :: else -> break
        od
    }
}


inline op_add()
{
    look(id);
    if
    :: id != NONE -> ack[k] = 1
    :: id == NONE && COUNT(m[HEAD(b)]) < 2 && m[NEXT] < IDS ->
        id = m[NEXT];
        record[id] = k;
        m[SLOT(b, COUNT(m[HEAD(b)]))] = id;
#if MUTANT == 1
        intents = 2;
#endif
        intend(HEAD(b), m[HEAD(b)] + 1);
        intend(NEXT, id + 1);
        commit();
        ack[k] = 1
    :: else
    fi
}


inline op_move()
{
    leaf = LEAF(m[LEAVES], k);
    b = m[DIR(leaf)];
    find_free(x, NONE);
    copy_into(x, NONE, NONE);
    intend(DIR(leaf), x);
    free_block(b);
    commit()
}


inline op_split()
{
    if
    :: m[LEAVES] == 1 ->
        b = m[DIR(1)];
        find_free(x, NONE);
        find_free(y, x);
        copy_into(x, 0, NONE);
        copy_into(y, 1, NONE);
#if MUTANT == 2
        intend(LEAVES, 2);
#endif
        intend(DIR(2), x);
        intend(DIR(3), y);
#if MUTANT != 2
        intend(LEAVES, 2);
#endif
        free_block(b);
        commit()
    :: else
    fi
}


inline op_delete()
{
    look(id);
    if
    :: id != NONE ->
        leaf = LEAF(m[LEAVES], k);
        find_free(x, NONE);
        copy_into(x, NONE, id);
        forgotten[k] = 1;
        intend(DELETED, m[DELETED] | (1 << id));
        intend(DIR(leaf), x);
        free_block(b);
        commit()
    :: else
    fi
}


/* nobody at work: one live id for a key, and every answer holds */

inline judge()
{
    x = 0;
    do
    :: x < m[NEXT] ->
        y = x + 1;
        do
        :: y < m[NEXT] ->
            assert(record[x] != record[y] || is_deleted(x) || is_deleted(y));
            y++
        :: else -> break
        od;
        x++
    :: else -> break
    od;

    k = 0;
    do
    :: k < KEYS ->
        look(id);
        assert(!ack[k] || forgotten[k] || id != NONE);
        k++
    :: else -> break
    od;

    reset();
    k = 0;
    id = 0
}


inline choose_key()
{
    if
    :: k = 0
    :: k = 1
    :: k = 2
    fi
}


/* what the holder of the lock does; it may be killed at any step */

proctype writer()
{
again:
    {
        locked = 1;
        n = 0;
        if
        :: intents > 0 -> fulfil()
        :: else
        fi;
        do
        :: ops < OPS ->
            ops++;
            if
            :: choose_key(); op_add()
            :: k = 0; op_move()
            :: k = 1; op_move()
            :: op_split()
            :: choose_key(); op_delete()
            fi;
            atomic { reset(); k = 0; id = 0 }
        :: else -> break
        od;
        atomic { judge(); locked = 0 }
    } unless {
        killed
    };

    /* another process takes the lock, which the master has released */

    if
    :: killed -> killed = 0; goto again
    :: else
    fi
}


proctype killer()
{
    if
    :: atomic { locked -> killed = 1 }
    :: true
    fi
}


/* looks one key up, as us_store_look_alone() does */

proctype reader()
{
    byte  rk, rn, rleaf, rb, rh, ri, rid;
    bit   had, found;

    if
    :: rk = 0
    :: rk = 1
    :: rk = 2
    fi;

    had = ack[rk];

retry:
    rn = m[LEAVES];
    rleaf = LEAF(rn, rk);
    rb = m[DIR(rleaf)];
    rh = m[HEAD(rb)];
    ri = 0;
    found = 0;

    do
    :: ri < COUNT(rh) && !found ->
        rid = m[SLOT(rb, ri)];
        ri++;
        if
        :: rid < m[NEXT] ->

            /* the record is immutable from here on */

            if
            :: record[rid] == rk && !is_deleted(rid) -> found = 1
            :: else
            fi
        :: else
        fi
    :: else -> break
    od;

    if
    :: found -> goto done
    :: else
    fi;

    if
    :: LEAF(m[LEAVES], rk) != rleaf -> goto retry
    :: else
    fi;

#if MUTANT != 4
    if
    :: m[DIR(rleaf)] != rb -> goto retry
    :: else
    fi;
#endif

    if
    :: SERIAL(m[HEAD(rb)]) != SERIAL(rh) -> goto retry
    :: else
    fi;

    /* unseen: right, unless it was answered before, and never deleted */

    assert(!had || forgotten[rk]);

done:
    skip
}


/* keys 0 and 1 are there, in one leaf or in two */

init
{
    atomic {
        record[1] = 1;
        ack[0] = 1;
        ack[1] = 1;
        m[NEXT] = 2;
        if
        :: m[LEAVES] = 1;
           m[HEAD(0)] = 2;
           m[SLOT(0, 1)] = 1
        :: m[LEAVES] = 2;
           m[DIR(3)] = 1;
           m[HEAD(0)] = 1;
           m[HEAD(1)] = 1;
           m[SLOT(1, 0)] = 1
        fi;
        run writer();
#if KILLS
        run killer();
#endif
#if READERS
        run reader()
#endif
    }
}
