
/*
 * See us_gzip.h.
 */


#include "us_gzip.h"

#include <stdlib.h>
#include <zlib.h>


struct us_gzip_s {
    z_stream   z;
    unsigned   more:1;                /* in the inflater */
    unsigned   open:1;                /* a member is */
    uint8_t    window[US_GZIP_WINDOW];
};


us_gzip_t *
us_gzip_create(void)
{
    us_gzip_t  *g;

    g = malloc(sizeof(us_gzip_t));
    if (g == NULL) {
        return NULL;
    }

    /* all but the window, which is written before it is read */

    memset(g, 0, offsetof(us_gzip_t, window));

    /* 16: a header of gzip, not of zlib */

    if (inflateInit2(&g->z, MAX_WBITS + 16) != Z_OK) {
        free(g);
        return NULL;
    }

    return g;
}


void
us_gzip_destroy(us_gzip_t *g)
{
    (void) inflateEnd(&g->z);
    free(g);
}


us_gzip_rc_t
us_gzip_next(us_gzip_t *g, us_str_t *in, us_str_t *out)
{
    int        rc;
    z_stream  *z;

    z = &g->z;

    z->next_in = (Bytef *) in->data;
    z->avail_in = in->len;
    z->next_out = g->window;
    z->avail_out = US_GZIP_WINDOW;

    if (in->len) {
        g->open = 1;
    }

    rc = inflate(z, Z_NO_FLUSH);

    in->data = z->next_in;
    in->len = z->avail_in;
    g->more = (z->avail_out == 0);

    out->data = g->window;
    out->len = US_GZIP_WINDOW - z->avail_out;

    switch (rc) {

    case Z_OK:
        return US_GZIP_OK;

    case Z_STREAM_END:
        g->open = 0;
        g->more = 0;

        /* the next member, if there is one */

        (void) inflateReset(z);

        return US_GZIP_OK;

    case Z_BUF_ERROR:

        /* the text had ended exactly at the end of the window before */

        return in->len ? US_GZIP_BAD : US_GZIP_OK;

    case Z_MEM_ERROR:
        return US_GZIP_NO_MEMORY;

    default:
        return US_GZIP_BAD;
    }
}


int
us_gzip_more(const us_gzip_t *g)
{
    return g->more;
}


int
us_gzip_open(const us_gzip_t *g)
{
    return g->open;
}
