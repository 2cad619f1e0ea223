
/*
 * PUBLIC.  A store in a directory, for a program of one process: opened with
 * one call, kept with another.
 *
 *     char              error[US_EMBED_ERROR], text[2][US_URL_MAX + 8];
 *     size_t            i, n;
 *     us_norm_t        *norm = us_norm_create(US_PROFILE_CRAWLER);
 *     us_canon_t        canon;
 *     us_embed_t       *e;
 *     us_norm_ws_t     *ws;
 *     us_embed_conf_t   conf = { 0 };
 *     us_store_item_t   items[2] = { 0 };
 *     us_str_t          links[2] = { us_string("http://example.com/a"),
 *                                    us_string("HTTP://Example.com:80/b") };
 *
 *     ws = us_norm_ws_create(norm);
 *     conf.norm = us_norm_signature(norm);
 *     e = us_embed_open("urls", &conf, error);
 *
 *     for (i = 0, n = 0; i < 2; i++) {
 *         if (us_normalize(norm, ws, links[i], NULL, &canon) == US_URL_OK) {
 *
 *             // a copy: the next us_normalize() overwrites the text
 *
 *             memcpy(text[n], canon.url.href.data, canon.url.href.len);
 *             items[n].url.data = (uint8_t *) text[n];
 *             items[n].url.len = canon.url.href.len;
 *             items[n++].merge = canon.merge;
 *         }
 *     }
 *
 *     us_embed_add(e, items, n);        // ids; in the journal on return
 *     us_embed_close(e, error);
 *
 * The directory is that of a zone with path=: nginx may serve it afterwards,
 * and the command urlstore reads it.  One process owns it at a time.
 *
 * Caveats, besides those in us_store.h:
 *
 *  - Memory is private to the process, and a start reads the directory into
 *    it: some 20 to 25 bytes a URL.
 *  - After us_embed_add() the process may be killed and nothing is lost.  A
 *    power failure takes what came after the last us_embed_sync().
 *  - Without us_embed_learn() new URLs stay as large as the first ones.
 *  - A us_embed_t is for one thread.  Other threads that only look up open
 *    handles of their own: us_embed_handle().
 *  - After fork() only one of the two processes may use it.
 */


#ifndef _US_EMBED_H_INCLUDED_
#define _US_EMBED_H_INCLUDED_


#include "../store/us_erasures.h"
#include "../store/us_store.h"


#ifdef __cplusplus
extern "C" {
#endif


#define US_EMBED_ERROR  480


typedef struct us_embed_s  us_embed_t;


/* zeroed, but for norm */

typedef struct {
    us_str_t      norm;               /* us_norm_signature() of the URLs;
                                         empty: as the directory has it */
    size_t        size;               /* bytes of memory at most; 0: three
                                         quarters of the machine's.  Memory
                                         is taken in chunks of a share of it,
                                         so us_store_info() does not know
                                         bytes_per_url while there are few */
    uint64_t      snapshot;           /* bytes of journal between two
                                         snapshots; 0: 64 MiB */
    unsigned      sites:1;            /* count URLs by site; 0: if the
                                         directory does */
    unsigned      sets:1;             /* there may be sets; the same */
    unsigned      erases:1;           /* there may be erasures; the same */
    uint32_t      revisit;            /* claims, by units of so many seconds;
                                         0: if the directory has them */
} us_embed_conf_t;


/*
 * Opens the directory, which is made if it is not there, as its owner.  It must
 * not be moved while it is open.  NULL with the reason in error (US_EMBED_ERROR
 * bytes, without the path): it has an owner, it holds files that are not of a
 * store, it is damaged, its URLs were normalized in another way, there is no
 * memory.
 */
us_embed_t *us_embed_open(const char *path, const us_embed_conf_t *conf,
    char *error);

/*
 * Syncs, marks the directory as closed in order, frees: 0; or -1 with error:
 * what was added since the last us_embed_sync() may be lost.
 */
int us_embed_close(us_embed_t *e, char *error);

/* for us_store_seen(), us_store_get() and whatever else changes nothing */
us_store_t *us_embed_store(us_embed_t *e);

/* a handle for another thread; to be closed before us_embed_close() */
us_store_t *us_embed_handle(us_embed_t *e);

/*
 * As us_store_add(), but waits for the disk instead of answering US_BUSY:
 * everything that the answers report is written when it returns.  Takes
 * snapshots when they are due.  0; or -1 with us_embed_error(): the disk
 * refuses.  After -1 the answers do not count; the call may be repeated, and
 * succeeds when the disk accepts writes again.  A sync that has failed is
 * final: all later calls return -1, and the directory has to be opened anew.
 */
int us_embed_add(us_embed_t *e, us_store_item_t *items, size_t n);

/*
 * The same as us_store_add_older() and us_store_claim(); claims, also those of
 * new URLs, are of now, or at a time.
 */
int us_embed_add_older(us_embed_t *e, us_store_item_t *items, size_t n,
    uint32_t older);
int us_embed_claim(us_embed_t *e, us_store_claim_t *claims, size_t n,
    uint64_t at);

/*
 * The same as us_store_add_set(); an item is US_GONE if the set was dropped.
 */
int us_embed_add_set(us_embed_t *e, us_store_item_t *items, size_t n,
    us_store_set_t set);

/*
 * Makes the set of a name, of 1 to US_STORE_SET_LEN bytes, or finds it; drops
 * one.  1: done; 0: it was there, or is a mark's, which stays, or is gone; -1
 * as above.
 */
int us_embed_make_set(us_embed_t *e, us_str_t name, us_store_set_t *set);
int us_embed_drop_set(us_embed_t *e, us_store_set_t set);

/*
 * Erases URLs, or a site (us_erasures.h).  us_embed_erase_begin() gives the
 * number of a new erasure; us_embed_erase() answers US_ERASED or US_FULL; the
 * end deletes what is left of a site, erases the records of all erasures and
 * takes a snapshot, with which their files go; if that fails, it is taken when
 * the directory is closed, or opened again.  us_embed_erase_lift(): 1; or 0:
 * there is no such erasure.  0, or -1 as above.  us_embed_left(): where bytes
 * may be left, US_LEFT_*, when this process has ended.
 */
int us_embed_erase_begin(us_embed_t *e, us_erasure_kind_t kind,
    us_str_t reason, uint64_t *number);
int us_embed_erase(us_embed_t *e, uint64_t number, us_store_item_t *items,
    size_t n);
int us_embed_erase_site(us_embed_t *e, uint64_t number, us_str_t site);
int us_embed_erase_end(us_embed_t *e, uint64_t number);
int us_embed_erase_lift(us_embed_t *e, uint64_t number);
unsigned us_embed_left(us_embed_t *e, const us_erasure_info_t *erasure);

/*
 * Learns a better model from the URLs, if one is due: takes seconds, then makes
 * new URLs smaller.  To be called now and then by a program that adds much.
 * 0, or -1 as above.
 */
int us_embed_learn(us_embed_t *e);

/* makes all that was added durable: 0, or -1 as above */
int us_embed_sync(us_embed_t *e);

const char *us_embed_error(const us_embed_t *e);


#ifdef __cplusplus
}
#endif


#endif /* _US_EMBED_H_INCLUDED_ */
