
/*
 * Rounds of a router: what a us_scatter_t asks, as calls to shards.
 *
 *     rounds()      the items are there, and what is to be asked
 *        |
 *     round         a call for each lane, and then for its next part
 *        |
 *     round ...
 *        |
 *     done()        all is answered, as far as it will be
 *
 * A request keeps to the map that it began with.  If a shard does not own a URL
 * (`moved`) the map is older than the shard's: it is read again, and those URLs
 * are tried again, twice at most.
 *
 * What the client has asked for may be wrong in a way that only a shard can
 * notice: a mark that is not declared, a time where no claims are kept.  Then
 * no item has an answer, and the problem that a shard has sent is the reply.
 */


#ifndef _NGX_HTTP_URLSTORE_ROUNDS_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_ROUNDS_H_INCLUDED_


#include "ngx_http_urlstore_route.h"
#include "../cluster/us_scatter.h"


typedef struct {
    us_scatter_t                    s;
    ngx_http_urlstore_fan_t        *fan;      /* a call for each lane */
    ngx_http_urlstore_out_t        *bodies;   /* of these */

    /* the caller's: what is asked, and how URLs are looked up */
    ngx_str_t                       action;   /* paths with their arguments */
    ngx_str_t                       look_up;
    ngx_http_urlstore_handler_pt    done;
    size_t                          limit;    /* of replies; 0: none */

    ngx_uint_t                      remaps;
    size_t                          size;     /* of the replies, by id */
    unsigned                        over:1;   /* they have more: not asked on */
    unsigned                        forgets:1; /* a retry is not repeated all */
    ngx_http_urlstore_call_t        refusal;  /* status 0: there is none */
} ngx_http_urlstore_rounds_t;


/*
 * The rounds of a request, freed with its pool, for the map of the cluster as
 * it is now.  NULL: the reply has been sent, and *rc is the request's result.
 */
ngx_http_urlstore_rounds_t *ngx_http_urlstore_rounds_create(
    ngx_http_request_t *r, us_scatter_action_t action, ngx_int_t *rc);

/* those of a request */
ngx_http_urlstore_rounds_t *ngx_http_urlstore_rounds_of(ngx_http_request_t *r);

/* asks the shards; returns what done() does, or NGX_DONE: it is called later */
ngx_int_t ngx_http_urlstore_rounds(ngx_http_urlstore_rounds_t *rounds);

/* the reply if no item has an answer: a problem */
ngx_int_t ngx_http_urlstore_rounds_none(ngx_http_urlstore_rounds_t *rounds);


#endif /* _NGX_HTTP_URLSTORE_ROUNDS_H_INCLUDED_ */
