
/*
 * An image of the index: all leaves, as they are, for a dump.  See us_index.h.
 *
 * The copy is made in steps, between which others go on.  Growth splits leaf
 * after leaf, in order, and so does the copy go: as long as it is ahead, what
 * it has not copied yet has the same number as when it was begun.
 */


#include "us_index.h"
#include "us_directory.h"
#include "us_leaf.h"

#include <stdlib.h>


#define US_IMAGE_STEP  256            /* leaves copied in one lock hold */


int
us_index_image_room(us_index_image_t *im)
{
    void    *p;
    size_t   need, size;

    need = im->n + US_IMAGE_STEP * (US_LEAF_WORDS_MAX + 1);

    if (need <= im->size) {
        return 0;
    }

    size = 2 * need;
    p = realloc(im->words, size * sizeof(uint64_t));

    if (p == NULL) {
        return -1;
    }

    im->words = p;
    im->size = size;

    return 0;
}


int
us_index_image(us_arena_t *a, us_index_image_t *im)
{
    unsigned   n;
    uint32_t   address;
    uint64_t   last, *w;
    us_leaf_t  l;

    if (im->leaves == 0) {
        im->leaves = a->head->leaves;
        im->next = im->leaves;
    }

    /* the leaf that is split next must have been copied as it was */

    if (im->next < a->head->leaves) {
        return -1;
    }

    last = im->next + US_IMAGE_STEP;
    last = (last < 2 * im->leaves) ? last : 2 * im->leaves;

    for ( /* void */ ; im->next < last; im->next++) {

        address = us_directory_get(a, im->next);
        w = address ? us_leaf_at(a, address) : NULL;
        n = 0;

        if (w && (us_relaxed(w) & 0xff)) {
            l = us_leaf(us_relaxed(w));
            n = l.high + us_select(w + l.high, us_leaf_words(a, &l) - l.high,
                                   l.count - 1) / 64 + 1;
        }

        im->words[im->n++] = n;

        if (n) {
            memcpy(&im->words[im->n], w, n * sizeof(uint64_t));
            im->n += n;
        }
    }

    return im->next < 2 * im->leaves;
}


void
us_index_image_free(us_index_image_t *im)
{
    free(im->words);
    memset(im, 0, sizeof(us_index_image_t));
}


int
us_index_leaf(us_arena_t *a, uint64_t leaf, const uint8_t *words, size_t n,
    uint64_t end)
{
    int         failed;
    unsigned    i, count;
    uint32_t    address;
    uint64_t    w[US_LEAF_WORDS_MAX + 1];
    us_leaf_t   l;
    us_entry_t  e[US_LEAF_MAX];

    if (n == 0) {
        return 0;
    }

    if (n > US_LEAF_WORDS_MAX || leaf < a->head->leaves
        || leaf >= 2 * a->head->leaves)
    {
        return -1;
    }

    memcpy(w, words, n * sizeof(uint64_t));
    w[n] = 0;
    l = us_leaf(w[0]);

    if (l.count > l.slots || l.low + l.extra > US_WIDTH_MAX || l.high >= n) {
        return -1;
    }

    count = us_leaf_entries(w, n, &l, e);

    if (count == 0) {
        return -1;
    }

    for (i = 1; i < count; i++) {
        if (e[i].id < e[i - 1].id) {
            return -1;
        }
    }

    while (count && e[count - 1].id >= end) {
        count--;
    }

    if (count == 0) {
        return 0;
    }

    if (us_directory_extend(a, leaf) != 0 || us_directory_get(a, leaf)) {
        return -1;
    }

    failed = 0;
    address = us_leaf_make(a, e, count, l.extra, 0, e[count - 1].id, 0,
                           &failed);
    if (failed) {
        return -1;
    }

    us_directory_replace(a, leaf, address, 0);
    us_intend(a, &a->head->entries, a->head->entries + count);
    us_commit(a);

    return 0;
}
