
/*
 * An image of the index: all leaves, as they are, for a dump.  See us_index.h.
 *
 * The copy is made in steps, and writers go on between the steps.  Growth
 * splits leaves and changes their numbers, but never moves an entry to another
 * path.  So the copy proceeds by paths: entries from the current path on were
 * not copied yet, in whichever leaf they are now.
 */


#include "us_index.h"
#include "us_directory.h"
#include "us_index_path.h"


/* the words of a leaf that are used */

static unsigned
us_index_image_words(const us_arena_t *a, const uint64_t *w)
{
    us_leaf_t  l;

    if (w == NULL || (us_relaxed(w) & 0xff) == 0) {
        return 0;
    }

    l = us_leaf(us_relaxed(w));

    return l.high + us_select(w + l.high, us_leaf_words(a, &l) - l.high,
                              l.count - 1) / 64 + 1;
}


int
us_index_image(const us_arena_t *a, us_index_image_t *im)
{
    unsigned         i, n;
    uint32_t         address;
    uint64_t         leaf;
    const uint64_t  *w;

    im->n = 0;
    im->leaf = us_leaf_number(a->head->leaves, im->path);

    for (i = 0; i < US_IMAGE_LEAVES && !im->done; i++) {

        leaf = us_leaf_number(a->head->leaves, im->path);

        if (leaf != im->leaf + i) {
            break;
        }

        address = us_directory_get(a, leaf);
        w = address ? us_leaf_at(a, address) : NULL;
        n = us_index_image_words(a, w);

        im->words[im->n++] = n;

        if (n) {
            memcpy(&im->words[im->n], w, n * sizeof(uint64_t));
            im->n += n;
        }

        im->path = us_leaf_path_end(leaf);
        im->done = im->path == 0;
    }

    return i > 0;
}
