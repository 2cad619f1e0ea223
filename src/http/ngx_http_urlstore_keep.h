
/*
 * A request with an Idempotency-Key: its place among those under way, and its
 * reply, which is kept for a retry.  How it began is in
 * ngx_http_urlstore_idempotency.c.
 */


#ifndef _NGX_HTTP_URLSTORE_KEEP_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_KEEP_H_INCLUDED_


#include "ngx_http_urlstore_request.h"
#include "../idempotency/us_idem.h"


struct ngx_http_urlstore_idem_s {
    us_idem_t                      *area;
    us_idem_ticket_t                ticket;
    uint64_t                        keep;     /* ms */
    unsigned                        held:1;   /* the ticket is */

    /* the names, while the body is read */
    ngx_str_t                       text;     /* the client's key */
    ngx_str_t                       client;
    us_hash128_t                    print;
    ngx_chain_t                    *rest;     /* of the body */
    off_t                           offset;   /* in its file */
    u_char                         *window;   /* on that */
};


/*
 * Before the bytes of a kept reply: those of its type and of its Location, and
 * the variables' (status_name, url), for the access log.
 */

typedef struct {
    uint64_t                        lsn;      /* that the reply waits for */
    uint64_t                        id;       /* variable */
    uint32_t                        status;
    uint16_t                        type_len;
    uint16_t                        location_len;
    uint32_t                        url_len;
    uint16_t                        name_len;
    uint16_t                        unused;
} ngx_http_urlstore_kept_t;


/* of a request with ctx->idem */

/*
 * The reply in ctx->out is whole: keeps it for a retry, or ends the ticket if
 * it is not worth that.  Does nothing the second time.
 */
void ngx_http_urlstore_keep(ngx_http_request_t *r);

/*
 * A reply is produced slice by slice.  1: it is to be kept, and can still be
 * short enough, so nothing of it is sent yet.
 */
ngx_uint_t ngx_http_urlstore_keep_holds(ngx_http_request_t *r);

/* ends the ticket without an answer; the reply says so, if it is a good one */
void ngx_http_urlstore_keep_none(ngx_http_request_t *r);


#endif /* _NGX_HTTP_URLSTORE_KEEP_H_INCLUDED_ */
