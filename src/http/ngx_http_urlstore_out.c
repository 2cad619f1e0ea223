
/*
 * Reply buffers.  A reply is a chain of pieces:
 *
 *     +-- 1 KB --+   +------- 64 KB -------+   +------- 64 KB -------+
 *     | in pool  |-->|                     |-->|       pos ->    end |
 *     +----------+   +---------------------+   +---------------------+
 *
 * The first is small and of the request's pool, so that a single answer costs
 * no more than that.  Large ones are kept by the worker from one request to
 * the next: fresh ones would be page faults, a third of a batch's time.
 */


#include "ngx_http_urlstore.h"


#define NGX_HTTP_URLSTORE_PIECE   (64 * 1024)
#define NGX_HTTP_URLSTORE_KEEP    64


typedef struct ngx_http_urlstore_piece_s  ngx_http_urlstore_piece_t;

struct ngx_http_urlstore_piece_s {
    ngx_http_urlstore_piece_t  *next;
};


static u_char *ngx_http_urlstore_piece(ngx_pool_t *pool);
static void ngx_http_urlstore_piece_free(void *data);
static void ngx_http_urlstore_out_link(ngx_http_urlstore_out_t *out,
    ngx_chain_t *cl);


static ngx_http_urlstore_piece_t  *ngx_http_urlstore_pieces;
static ngx_uint_t                  ngx_http_urlstore_npieces;


/* size: of the first piece */

ngx_int_t
ngx_http_urlstore_out_init(ngx_http_urlstore_out_t *out, ngx_pool_t *pool,
    size_t size)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_memzero(out, sizeof(ngx_http_urlstore_out_t));

    out->pool = pool;

    b = ngx_create_temp_buf(pool, size);
    cl = ngx_alloc_chain_link(pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    ngx_http_urlstore_out_link(out, cl);

    return NGX_OK;
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

    if (n > NGX_HTTP_URLSTORE_PIECE) {
        size = n;
        p = ngx_palloc(out->pool, n);

    } else {
        size = NGX_HTTP_URLSTORE_PIECE;
        p = ngx_http_urlstore_piece(out->pool);
    }

    b = ngx_calloc_buf(out->pool);
    cl = ngx_alloc_chain_link(out->pool);

    if (p == NULL || b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->start = p;
    b->pos = p;
    b->last = p;
    b->end = p + size;
    b->temporary = 1;

    cl->buf = b;
    cl->next = NULL;

    ngx_http_urlstore_out_link(out, cl);

    return NGX_OK;
}


static void
ngx_http_urlstore_out_link(ngx_http_urlstore_out_t *out, ngx_chain_t *cl)
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


size_t
ngx_http_urlstore_out_size(ngx_http_urlstore_out_t *out)
{
    return out->size + (out->pos - out->last->buf->pos);
}


/*
 * nginx takes no empty buffer for data: they are left out, but for the last,
 * which becomes a special one.
 */

ngx_chain_t *
ngx_http_urlstore_out_finish(ngx_http_urlstore_out_t *out)
{
    ngx_chain_t  *cl, **ll;

    out->last->buf->last = out->pos;

    ll = &out->chain;

    for (cl = out->chain; cl; cl = cl->next) {

        if (cl->buf->pos == cl->buf->last && cl->next) {
            *ll = cl->next;
            continue;
        }

        ll = &cl->next;
    }

    if (out->last->buf->pos == out->last->buf->last) {
        out->last->buf->temporary = 0;
        out->last->buf->sync = 1;
    }

    return out->chain;
}


static u_char *
ngx_http_urlstore_piece(ngx_pool_t *pool)
{
    ngx_pool_cleanup_t         *cln;
    ngx_http_urlstore_piece_t  *p;

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    p = ngx_http_urlstore_pieces;

    if (p) {
        ngx_http_urlstore_pieces = p->next;
        ngx_http_urlstore_npieces--;

    } else {
        p = ngx_alloc(NGX_HTTP_URLSTORE_PIECE, pool->log);
        if (p == NULL) {
            return NULL;
        }
    }

    cln->handler = ngx_http_urlstore_piece_free;
    cln->data = p;

    return (u_char *) p;
}


static void
ngx_http_urlstore_piece_free(void *data)
{
    ngx_http_urlstore_piece_t *p = data;

    if (ngx_http_urlstore_npieces == NGX_HTTP_URLSTORE_KEEP) {
        ngx_free(p);
        return;
    }

    p->next = ngx_http_urlstore_pieces;
    ngx_http_urlstore_pieces = p;
    ngx_http_urlstore_npieces++;
}


void
ngx_http_urlstore_out_exit(void)
{
    ngx_http_urlstore_piece_t  *p;

    while (ngx_http_urlstore_pieces) {
        p = ngx_http_urlstore_pieces;
        ngx_http_urlstore_pieces = p->next;
        ngx_free(p);
    }

    ngx_http_urlstore_npieces = 0;
}


/* decimal digits, two at a time: %uL is half of an answer's time */

u_char *
ngx_http_urlstore_u64(u_char *p, uint64_t n)
{
    u_char      buf[NGX_INT64_LEN], *b;
    ngx_uint_t  k;

    static const char  digits[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "68697071727374757677787980818283848586878889909192939495969798"
        "99";

    b = buf + sizeof(buf);

    while (n >= 100) {
        k = n % 100;
        n /= 100;
        b -= 2;
        ngx_memcpy(b, &digits[k * 2], 2);
    }

    if (n >= 10) {
        b -= 2;
        ngx_memcpy(b, &digits[n * 2], 2);

    } else {
        *--b = '0' + n;
    }

    return ngx_cpymem(p, b, buf + sizeof(buf) - b);
}
