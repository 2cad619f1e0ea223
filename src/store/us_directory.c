
/*
 * The directory of the index: see us_directory.h.
 */


#include "us_directory.h"
#include "us_leaf.h"


int
us_directory_extend_locked(us_arena_t *a, uint64_t leaf)
{
    uint32_t   *entry;
    uint64_t    number, chunk;
    us_head_t  *h;

    h = a->head;
    number = us_directory_chunk_number(a, leaf);
    entry = us_directory_chunk(a, number);

    if (number < h->directory_last
        || (number == h->directory_last && *entry))
    {
        return 0;
    }

    if (number - h->directory_first >= h->area[US_AREA_DIRECTORY].max) {
        return -1;
    }

    chunk = h->directory_spare;

    if (chunk == 0) {
        chunk = us_arena_take_locked(a, US_AREA_DIRECTORY, 1) >> a->chunk_shift;

        if (chunk == 0) {
            return -1;
        }
    }

    us_intend_locked(a, &h->directory_spare, 0);
    us_intend32_locked(a, entry, chunk);
    us_intend_locked(a, &h->directory_last, number);
    us_commit_locked(a);

    return 0;
}


void
us_directory_replace_locked(us_arena_t *a, uint64_t leaf, uint32_t address,
    uint32_t old)
{
    us_intend32_locked(a, us_directory_word(a, leaf), address);
    us_leaf_free_locked(a, old);
    us_intend_locked(a, &a->head->staged[0], 0);
}


void
us_directory_drop_locked(us_arena_t *a, uint64_t leaf)
{
    uint64_t    first;
    us_head_t  *h;

    h = a->head;
    first = us_directory_chunk_number(a, leaf);

    if (first == h->directory_first || h->directory_spare) {
        return;
    }

    us_intend_locked(a, &h->directory_spare,
                     *us_directory_chunk(a, h->directory_first));
    us_intend_locked(a, &h->directory_first, first);
}
