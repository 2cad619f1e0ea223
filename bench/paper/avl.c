
/*
 * Koht-arsa, Sanguanpong: "In-memory URL Compression", National Computer
 * Science and Engineering Conference, 2001.
 *
 * The URLs are the nodes of an AVL tree; none of them is there as text:
 *
 *     node    left child, right child           32 bits each, of which one
 *                                               says "this side is higher"
 *     record  reference id, common prefix, tail
 *
 *     0: -, 0,  "http://www.example.ac.th/"
 *     1: 0, 25, "library/"        = the first 25 bytes of URL 0, "library/"
 *     2: 1, 33, "index.html"
 *
 * A new URL is compared with every node on its search path, each unpacked by
 * following its references.  Both of its neighbours in the order are on that
 * path, so that the node of it with the longest common prefix has the longest
 * of all URLs: that one is the reference.  References never change; rotations
 * move ids only.  Without the tree, ids still give their URLs.
 *
 * Sizes: the paper gives 28 bytes for a URL of 55, 20 of them without the
 * tree, hence 8 for two children.  A record here has 4 bytes of reference,
 * 1 of common prefix and 1 of tail length (3 each from 255 on), the tail,
 * and 4 of the record's place.
 */


#include "avl.h"

#include <stdlib.h>


#define AVL_HIGH    0x80000000
#define AVL_HEIGHT  64


typedef struct {
    uint32_t      child[2];           /* left, right; AVL_HIGH: the higher */
} avl_node_t;


struct avl_s {
    avl_node_t   *nodes;
    uint32_t     *places;
    uint32_t      n;
    uint32_t      max;
    uint32_t      root;

    uint8_t      *text;
    size_t        used;
    size_t        size;
    size_t        tails;

    uint8_t       buf[US_URL_MAX];
};


/* the way from the root to where a URL is, or would be */

typedef struct {
    uint32_t      id[AVL_HEIGHT];
    unsigned      side[AVL_HEIGHT];   /* taken from there */
    unsigned      depth;
    uint32_t      ref;
    uint32_t      lcp;
} avl_path_t;


avl_t *
avl_create(void)
{
    avl_t  *t;

    t = calloc(1, sizeof(avl_t));

    if (t) {
        t->root = AVL_NONE;
    }

    return t;
}


void
avl_destroy(avl_t *t)
{
    free(t->nodes);
    free(t->places);
    free(t->text);
    free(t);
}


static uint32_t
avl_child(const avl_t *t, uint32_t id, unsigned side)
{
    return t->nodes[id].child[side] & ~AVL_HIGH;
}


static void
avl_set_child(avl_t *t, uint32_t id, unsigned side, uint32_t child)
{
    t->nodes[id].child[side] &= AVL_HIGH;
    t->nodes[id].child[side] |= child;
}


/* the height of the right side less that of the left */

static int
avl_balance(const avl_t *t, uint32_t id)
{
    return (int) (t->nodes[id].child[1] >> 31)
           - (int) (t->nodes[id].child[0] >> 31);
}


static void
avl_set_balance(avl_t *t, uint32_t id, int balance)
{
    t->nodes[id].child[0] &= ~AVL_HIGH;
    t->nodes[id].child[1] &= ~AVL_HIGH;

    if (balance) {
        t->nodes[id].child[balance > 0] |= AVL_HIGH;
    }
}


/* a length: one byte below 255, else 255 and two more */

static const uint8_t *
avl_length(const uint8_t *p, uint32_t *n)
{
    *n = *p++;

    if (*n == 255) {
        *n = p[0] | (uint32_t) p[1] << 8;
        p += 2;
    }

    return p;
}


static uint8_t *
avl_put_length(uint8_t *p, uint32_t n)
{
    if (n < 255) {
        *p++ = n;
        return p;
    }

    *p++ = 255;
    *p++ = n;
    *p++ = n >> 8;

    return p;
}


us_str_t
avl_record(const avl_t *t, uint32_t id, uint32_t *ref, uint32_t *lcp)
{
    uint32_t        n;
    us_str_t        tail;
    const uint8_t  *p;

    p = t->text + t->places[id];

    memcpy(ref, p, 4);
    p = avl_length(p + 4, lcp);
    tail.data = avl_length(p, &n);
    tail.len = n;

    return tail;
}


size_t
avl_get(const avl_t *t, uint32_t id, uint8_t *buf)
{
    size_t    len, need;
    uint32_t  lcp;
    us_str_t  tail;

    tail = avl_record(t, id, &id, &lcp);
    len = lcp + tail.len;
    need = len;

    /* from the end to the front: each record gives what is not yet there */

    for ( ;; ) {
        if (lcp < need) {
            memcpy(buf + lcp, tail.data, need - lcp);
            need = lcp;
        }

        if (need == 0) {
            return len;
        }

        tail = avl_record(t, id, &id, &lcp);
    }
}


/* 1 if the URL is there: the last id of the path */

static int
avl_search(avl_t *t, us_str_t url, avl_path_t *path)
{
    size_t    i, n, len;
    uint32_t  id;

    path->depth = 0;
    path->ref = AVL_NONE;
    path->lcp = 0;

    for (id = t->root; id != AVL_NONE; /* void */ ) {
        len = avl_get(t, id, t->buf);
        n = len < url.len ? len : url.len;

        for (i = 0; i < n && t->buf[i] == url.data[i]; i++) {
            /* void */
        }

        if (i > path->lcp) {
            path->lcp = i;
            path->ref = id;
        }

        path->id[path->depth] = id;

        if (i == n && len == url.len) {
            return 1;
        }

        path->side[path->depth] = i == n ? url.len > len
                                         : url.data[i] > t->buf[i];
        id = avl_child(t, id, path->side[path->depth++]);
    }

    return 0;
}


uint32_t
avl_find(avl_t *t, us_str_t url)
{
    avl_path_t  path;

    return avl_search(t, url, &path) ? path.id[path.depth] : AVL_NONE;
}


static void *
avl_grow(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        abort();
    }

    return p;
}


static uint32_t
avl_append(avl_t *t, us_str_t url, const avl_path_t *path)
{
    uint8_t   *p;
    uint32_t   id;

    if (t->n == t->max) {
        t->max = t->max ? t->max + t->max / 2 : 1024;
        t->nodes = avl_grow(t->nodes, t->max * sizeof(avl_node_t));
        t->places = avl_grow(t->places, t->max * sizeof(uint32_t));
    }

    if (t->size - t->used < url.len + 16) {
        t->size = t->size + t->size / 2 + (1 << 20);
        t->text = avl_grow(t->text, t->size);
    }

    if (t->used > UINT32_MAX) {
        abort();
    }

    id = t->n++;
    t->nodes[id].child[0] = AVL_NONE;
    t->nodes[id].child[1] = AVL_NONE;
    t->places[id] = t->used;

    p = t->text + t->used;
    memcpy(p, &path->ref, 4);
    p = avl_put_length(p + 4, path->lcp);
    p = avl_put_length(p, url.len - path->lcp);
    p = mempcpy(p, url.data + path->lcp, url.len - path->lcp);

    t->tails += url.len - path->lcp;
    t->used = p - t->text;

    return id;
}


/*
 * The rotations of Adelson-Velsky and Landis at id, whose side is two higher
 * than the other; returns the new top.
 */

static uint32_t
avl_rotate(avl_t *t, uint32_t id, unsigned side)
{
    int       sign, b;
    uint32_t  child, top;

    sign = side ? 1 : -1;
    child = avl_child(t, id, side);

    if (avl_balance(t, child) == sign) {
        avl_set_child(t, id, side, avl_child(t, child, !side));
        avl_set_child(t, child, !side, id);
        avl_set_balance(t, id, 0);
        avl_set_balance(t, child, 0);
        return child;
    }

    top = avl_child(t, child, !side);
    b = avl_balance(t, top);

    avl_set_child(t, child, !side, avl_child(t, top, side));
    avl_set_child(t, id, side, avl_child(t, top, !side));
    avl_set_child(t, top, side, child);
    avl_set_child(t, top, !side, id);

    avl_set_balance(t, id, b == sign ? -sign : 0);
    avl_set_balance(t, child, b == -sign ? sign : 0);
    avl_set_balance(t, top, 0);

    return top;
}


uint32_t
avl_add(avl_t *t, us_str_t url)
{
    int          sign;
    unsigned     i, side;
    uint32_t     id, at, top;
    avl_path_t   path;

    if (avl_search(t, url, &path)) {
        return path.id[path.depth];
    }

    id = avl_append(t, url, &path);

    if (path.depth == 0) {
        t->root = id;
        return id;
    }

    i = path.depth - 1;
    avl_set_child(t, path.id[i], path.side[i], id);

    for ( ;; i--) {
        at = path.id[i];
        side = path.side[i];
        sign = side ? 1 : -1;

        if (avl_balance(t, at) == -sign) {
            avl_set_balance(t, at, 0);
            return id;
        }

        if (avl_balance(t, at) == sign) {
            break;
        }

        avl_set_balance(t, at, sign);

        if (i == 0) {
            return id;
        }
    }

    top = avl_rotate(t, at, side);

    if (i == 0) {
        t->root = top;
    } else {
        avl_set_child(t, path.id[i - 1], path.side[i - 1], top);
    }

    return id;
}


static unsigned
avl_height(const avl_t *t, uint32_t id, int *right)
{
    unsigned  left, other;

    if (id == AVL_NONE) {
        return 0;
    }

    left = avl_height(t, avl_child(t, id, 0), right);
    other = avl_height(t, avl_child(t, id, 1), right);

    if ((int) other - (int) left != avl_balance(t, id)) {
        *right = 0;
    }

    return 1 + (left > other ? left : other);
}


/* in order, each greater than the one before */

static void
avl_order(const avl_t *t, uint32_t id, uint8_t *last, size_t *len, int *right)
{
    int      rc;
    size_t   n;
    uint8_t  buf[US_URL_MAX];

    if (id == AVL_NONE) {
        return;
    }

    avl_order(t, avl_child(t, id, 0), last, len, right);

    n = avl_get(t, id, buf);
    rc = memcmp(last, buf, n < *len ? n : *len);

    if (rc > 0 || (rc == 0 && *len >= n && *len)) {
        *right = 0;
    }

    memcpy(last, buf, n);
    *len = n;

    avl_order(t, avl_child(t, id, 1), last, len, right);
}


int
avl_check(const avl_t *t)
{
    int      right;
    size_t   len;
    uint8_t  last[US_URL_MAX];

    right = 1;
    len = 0;

    (void) avl_height(t, t->root, &right);
    avl_order(t, t->root, last, &len, &right);

    return right;
}


void
avl_info(const avl_t *t, avl_info_t *info)
{
    int        right;
    size_t     hops;
    uint32_t   id, at, lcp, need;

    right = 1;
    hops = 0;

    for (id = 0; id < t->n; id++) {
        (void) avl_record(t, id, &at, &lcp);

        for (hops++, need = lcp; need; hops++) {
            (void) avl_record(t, at, &at, &lcp);
            need = lcp < need ? lcp : need;
        }
    }

    info->urls = t->n;
    info->tree = t->n * sizeof(avl_node_t);
    info->records = t->used + t->n * sizeof(uint32_t);
    info->tails = t->tails;
    info->hops = t->n ? (double) hops / t->n : 0;
    info->height = avl_height(t, t->root, &right);
}
