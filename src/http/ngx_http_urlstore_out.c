
/*
 * Output: text in a chain of pieces, on its way from a producer to the client,
 * or kept until it is needed.
 *
 *     out->chain   +- small -+   +------- 64 KB -------+
 *                  | in pool |-->|       pos ->    end |      being filled
 *                  +---------+   +---------------------+
 *     out->busy    +------- 64 KB -------+
 *                  |                     |--> ...             handed over
 *                  +---------------------+
 *     out->free    links and buffers without a piece, to be used again
 *
 * The first piece can be small and of the request's pool, so that a single
 * answer costs no more than that.  Pieces of 64 KB have pages of their own.  A
 * worker keeps some from one request to the next, because fresh pages are page
 * faults, a third of a batch's time; it returns the others to the system.  The
 * groups of a batch are made of pieces, too.
 */


#include "ngx_http_urlstore_request.h"

#include <sys/mman.h>


/* 4 MB: after a disk that stood still many come back */
#define NGX_HTTP_URLSTORE_KEEP    64

/* before each piece: its place in its request's list, or in the worker's */
#define NGX_HTTP_URLSTORE_MAP     (NGX_HTTP_URLSTORE_PIECE                    \
                                   + sizeof(ngx_queue_t))


/* free ones of the worker */
static ngx_queue_t  ngx_http_urlstore_pieces = {
    &ngx_http_urlstore_pieces, &ngx_http_urlstore_pieces
};

static ngx_uint_t   ngx_http_urlstore_npieces;


static void
ngx_http_urlstore_out_append(ngx_http_urlstore_out_t *out, ngx_chain_t *cl)
{
    if (out->last) {
        out->last->buf->last = out->pos;
        out->size += out->pos - out->last->buf->pos;
        out->last->next = cl;

    } else {
        out->chain = cl;
    }

    out->last = cl;
    out->pos = cl->buf->last;
    out->end = cl->buf->end;
}


/* size: of the first piece; 0: there is none */

ngx_int_t
ngx_http_urlstore_out_init(ngx_http_urlstore_out_t *out, ngx_pool_t *pool,
    size_t size)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_memzero(out, sizeof(ngx_http_urlstore_out_t));

    out->pool = pool;

    if (size == 0) {
        return NGX_OK;
    }

    b = ngx_create_temp_buf(pool, size);
    cl = ngx_alloc_chain_link(pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    ngx_http_urlstore_out_append(out, cl);

    return NGX_OK;
}


static void
ngx_http_urlstore_piece_unmap(void *p)
{
#if (NGX_DEBUG_PALLOC)

    ngx_free(p);

#else

    (void) munmap(p, NGX_HTTP_URLSTORE_MAP);

#endif
}


void
ngx_http_urlstore_piece_put(void *piece)
{
    ngx_queue_t  *q;

    q = (ngx_queue_t *) piece - 1;

    ngx_queue_remove(q);

    if (ngx_http_urlstore_npieces == NGX_HTTP_URLSTORE_KEEP) {
        ngx_http_urlstore_piece_unmap(q);
        return;
    }

    ngx_queue_insert_head(&ngx_http_urlstore_pieces, q);
    ngx_http_urlstore_npieces++;
}


/*
 * cleanup of the request's pool: frees the pieces that the request still has
 */

static void
ngx_http_urlstore_piece_cleanup(void *data)
{
    ngx_queue_t *pieces = data;

    while (!ngx_queue_empty(pieces)) {
        ngx_http_urlstore_piece_put(ngx_queue_head(pieces) + 1);
    }
}


/*
 * Memory of malloc() would stay in the middle of the heap after a busy hour.
 * AddressSanitizer sees the end of malloc()'s only.
 */

void *
ngx_http_urlstore_piece_get(ngx_http_urlstore_out_t *out)
{
    ngx_queue_t         *q;
    ngx_pool_cleanup_t  *cln;

    if (out->pieces == NULL) {
        cln = ngx_pool_cleanup_add(out->pool, sizeof(ngx_queue_t));
        if (cln == NULL) {
            return NULL;
        }

        cln->handler = ngx_http_urlstore_piece_cleanup;

        out->pieces = cln->data;
        ngx_queue_init(out->pieces);
    }

    if (ngx_queue_empty(&ngx_http_urlstore_pieces)) {

#if (NGX_DEBUG_PALLOC)

        q = ngx_alloc(NGX_HTTP_URLSTORE_MAP, out->pool->log);
        if (q == NULL) {
            return NULL;
        }

#else

        q = mmap(NULL, NGX_HTTP_URLSTORE_MAP, PROT_READ|PROT_WRITE,
                 MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

        if (q == MAP_FAILED) {
            ngx_log_error(NGX_LOG_EMERG, out->pool->log, ngx_errno,
                          "mmap(%uz) failed", NGX_HTTP_URLSTORE_MAP);
            return NULL;
        }

#endif

    } else {
        q = ngx_queue_head(&ngx_http_urlstore_pieces);
        ngx_queue_remove(q);
        ngx_http_urlstore_npieces--;
    }

    ngx_queue_insert_tail(out->pieces, q);

    return q + 1;
}


ngx_int_t
ngx_http_urlstore_out_room(ngx_http_urlstore_out_t *out, size_t n)
{
    size_t        size;
    u_char       *p;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if ((size_t) (out->end - out->pos) >= n) {
        return NGX_OK;
    }

    size = ngx_max(n, NGX_HTTP_URLSTORE_PIECE);
    p = size > NGX_HTTP_URLSTORE_PIECE ? ngx_palloc(out->pool, size)
                                       : ngx_http_urlstore_piece_get(out);
    cl = ngx_chain_get_free_buf(out->pool, &out->free);

    if (p == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b = cl->buf;

    ngx_memzero(b, sizeof(ngx_buf_t));

    b->start = p;
    b->pos = p;
    b->last = p;
    b->end = p + size;
    b->temporary = 1;

    b->tag = size > NGX_HTTP_URLSTORE_PIECE
             ? NULL : (ngx_buf_tag_t) &ngx_http_urlstore_pieces;

    ngx_http_urlstore_out_append(out, cl);

    return NGX_OK;
}


/* max: bytes that the text cannot exceed */

ngx_int_t
ngx_http_urlstore_out_printf(ngx_http_urlstore_out_t *out, size_t max,
    const char *fmt, ...)
{
    va_list  args;

    if (ngx_http_urlstore_out_room(out, max) != NGX_OK) {
        return NGX_ERROR;
    }

    va_start(args, fmt);
    out->pos = ngx_vslprintf(out->pos, out->pos + max, fmt, args);
    va_end(args);

    return NGX_OK;
}


static void
ngx_http_urlstore_out_release(ngx_http_urlstore_out_t *out, ngx_chain_t *cl)
{
    if (cl->buf->tag == (ngx_buf_tag_t) &ngx_http_urlstore_pieces) {
        ngx_http_urlstore_piece_put(cl->buf->start);
        cl->buf->tag = NULL;
    }

    cl->next = out->free;
    out->free = cl;
}


/*
 * Hands over what has been written, to be sent, and leaves the output ready for
 * more.  nginx takes no empty buffer for data: those are left out.  With last
 * set the chain has a buffer, if only a special one.  NULL: there is nothing,
 * or no memory for that.
 */

ngx_chain_t *
ngx_http_urlstore_out_take(ngx_http_urlstore_out_t *out, ngx_uint_t last)
{
    ngx_chain_t  *cl, *next, *chain, **ll;

    if (out->last) {
        out->last->buf->last = out->pos;
    }

    chain = NULL;
    ll = &chain;

    for (cl = out->chain; cl; cl = next) {
        next = cl->next;

        if (cl->buf->pos == cl->buf->last) {
            ngx_http_urlstore_out_release(out, cl);
            continue;
        }

        *ll = cl;
        ll = &cl->next;
    }

    *ll = NULL;

    out->chain = NULL;
    out->last = NULL;
    out->pos = NULL;
    out->end = NULL;
    out->size = 0;

    if (chain == NULL && last) {
        chain = ngx_chain_get_free_buf(out->pool, &out->free);
        if (chain == NULL) {
            return NULL;
        }

        ngx_memzero(chain->buf, sizeof(ngx_buf_t));
        chain->buf->sync = 1;
    }

    for (ll = &out->busy; *ll; ll = &(*ll)->next) { /* void */ }

    *ll = chain;

    return chain;
}


/* returns the pieces of what has been sent; 1: all of it has */

ngx_uint_t
ngx_http_urlstore_out_sent(ngx_http_urlstore_out_t *out)
{
    ngx_chain_t  *cl;

    while (out->busy && ngx_buf_size(out->busy->buf) == 0) {
        cl = out->busy;
        out->busy = cl->next;

        ngx_http_urlstore_out_release(out, cl);
    }

    return out->busy == NULL;
}


void
ngx_http_urlstore_out_exit(void)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&ngx_http_urlstore_pieces)) {
        q = ngx_queue_head(&ngx_http_urlstore_pieces);
        ngx_queue_remove(q);
        ngx_http_urlstore_piece_unmap(q);
    }

    ngx_http_urlstore_npieces = 0;
}
