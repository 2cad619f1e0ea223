
/*
 * Requests of /add, /seen, /set, /mark, /claim and /erase.  Their items go one
 * way:
 *
 *     query, or body   ngx_http_urlstore_body.c     us_input_item_t
 *         |
 *     normalizer       ngx_http_urlstore_group.c    entry of a group
 *         |
 *     store            ngx_http_urlstore_group.c    up to 256 at a time
 *         |
 *     record           ngx_http_urlstore_answer.c   what is to be answered
 *         |                                         ... the body has ended
 *     reply            ngx_http_urlstore_answer.c   text, JSON or NDJSON
 *
 * and ngx_http_urlstore_batch.c calls each for the next step.  A filter has
 * another group(); a router keeps groups until the body has ended.
 *
 * Each returns NGX_OK, NGX_BUSY (the journal's ring is full: go on when it has
 * room), or a status that ends the batch.  Groups, which requests of a worker
 * share, are given back before the event loop goes on, so a slow client holds
 * up only its own request.
 *
 * An item without a base of its own is resolved against the batch's, which is
 * in the query or in the JSON envelope.
 *
 * The reply begins when the body has ended.  Until then an answer is a record:
 * its id, and the URL or reason.  A request keeps 1 MB of texts.  Past that,
 * the URL of an id is looked up when it is sent; texts that are not in the
 * store (URLs of /seen, refs) are kept, and count up to urlstore_max_reply.
 *
 * A full zone does not end a batch: a URL that is new, and for which there is
 * no room, is `full`, and all others are answered as ever.  A request of one
 * item is a 507 instead.
 *
 * A fault of the envelope ends the batch.  The items before it are still sent
 * to the store, and the problem document has their answers.
 */


#ifndef _NGX_HTTP_URLSTORE_BATCH_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_BATCH_H_INCLUDED_


#include "ngx_http_urlstore_request.h"
#include "../api/us_answer.h"


typedef struct {
    us_refusal_t                    refusal;      /* if it has no URL */
    unsigned                        by_id:1;      /* set or claim by id */
    unsigned                        moved:1;      /* another shard's id */
    unsigned                        same:1;       /* canonical as it came */
    us_store_status_t               status;       /* of these only */
    us_store_item_t                *item;         /* NULL: not a URL */
    ngx_str_t                       ref;
    uint64_t                        id;           /* of these only */
} ngx_http_urlstore_entry_t;


/*
 * Items on their way to the store: what the normalizer made of each, in the
 * order of the input, and the URLs among them in one array for the store.
 */

struct ngx_http_urlstore_group_s {
    ngx_uint_t                      n;
    ngx_uint_t                      urls;
    ngx_uint_t                      done;         /* taken by the store */
    ngx_uint_t                      answered;     /* entries */
    u_char                         *text;         /* a piece of its own */
    u_char                         *last;         /* of it */
    ngx_http_urlstore_entry_t       entries[US_STORE_GROUP];
    us_store_item_t                 items[US_STORE_GROUP];
};


/* bytes of records that keep the URLs of ids */
#define NGX_HTTP_URLSTORE_KEPT       (1024 * 1024)


typedef enum {
    NGX_HTTP_URLSTORE_ADD = 0,
    NGX_HTTP_URLSTORE_SEEN,
    NGX_HTTP_URLSTORE_SET,
    NGX_HTTP_URLSTORE_CLAIM,
    NGX_HTTP_URLSTORE_ERASE
} ngx_http_urlstore_action_t;


/* whether items can be ids */
#define ngx_http_urlstore_of_ids(action)                                      \
    ((action) == NGX_HTTP_URLSTORE_SET || (action) == NGX_HTTP_URLSTORE_CLAIM  \
     || (action) == NGX_HTTP_URLSTORE_ERASE)

/* whether a key repeats its answers */
#define ngx_http_urlstore_repeatable(batch)                                   \
    ((batch)->action == NGX_HTTP_URLSTORE_ADD                                 \
     || ((batch)->action == NGX_HTTP_URLSTORE_SET && !(batch)->clear))


typedef ngx_int_t (*ngx_http_urlstore_show_pt)(
    ngx_http_urlstore_batch_t *batch, ngx_http_urlstore_out_t *out);


struct ngx_http_urlstore_batch_s {
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_action_t      action;
    uint64_t                        start;        /* us, monotonic */

    uint32_t                        older;        /* units; 0: none */
    uint64_t                        at_time;      /* of claims; 0: clear */

    unsigned                        clear:1;      /* out of a set; claims */
    unsigned                        query:1;      /* ?url= or ?id= */
    unsigned                        query_id:1;
    unsigned                        counted:1;    /* in metrics and quota */
    unsigned                        admitted:1;   /* by the quota, to add */
    unsigned                        erased:1;     /* the erasure has ended */

    /* items */
    ngx_uint_t                      items;        /* read */
    uint64_t                        budget;       /* of the rules, ns */
    ngx_str_t                       query_base;   /* data is NULL: none */
    us_base_t                      *base;         /* of the last item, */
    us_verdict_t                    base_verdict; /* and of this text */
    ngx_str_t                       base_text;
    ngx_uint_t                      logged;       /* refused ones */

    ngx_http_urlstore_group_t      *group;        /* NULL: none */

    /* answers */
    us_answers_t                    answers;      /* format, counts */
    ngx_uint_t                      charged;      /* new ones, to the quota */
    ngx_uint_t                      free;         /* new, but stored before */
    uint64_t                       *once;         /* ids answered, and 1 */
    ngx_uint_t                      nonce;        /* places there, and used */
    ngx_uint_t                      given;
    us_answer_t                     first;        /* that of a single one */
    us_refusal_t                    refusal;      /* of the first */
    ngx_http_urlstore_out_t         records;
    unsigned                        long_reply:1; /* shown in slices */
    unsigned                        over:1;       /* urlstore_max_reply */

    /* of another kind; show: writes a slice of the answers, without records */
    void                           *own;
    ngx_http_urlstore_show_pt       show;

    /* the end: NGX_DONE, or the status of a fault; 0: not yet */
    ngx_int_t                       end;

    /* the reply */
    ngx_chain_t                    *at;           /* records not shown */
    unsigned                        begun:1;
};


/* ngx_http_urlstore_batch.c */

ngx_int_t ngx_http_urlstore_batch(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_action_t action, ngx_uint_t clear);

/* all is answered: sends the reply */
ngx_int_t ngx_http_urlstore_batch_end(ngx_http_urlstore_batch_t *batch);

/* ngx_http_urlstore_group.c */

ngx_int_t ngx_http_urlstore_item(ngx_http_urlstore_batch_t *batch,
    const us_input_item_t *in);

/* sends the group of the request to the store, and records the answers */
ngx_int_t ngx_http_urlstore_group_flush(ngx_http_urlstore_batch_t *batch);

/* at the end, whatever it was: of what is left, nothing is done */
void ngx_http_urlstore_group_drop(ngx_http_urlstore_batch_t *batch);

/* of a store: see ngx_http_urlstore_kind_t */
ngx_int_t ngx_http_urlstore_store_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g);

/* ngx_http_urlstore_erase.c */

/* all of its URLs were erased: NGX_OK, or NGX_BUSY */
ngx_int_t ngx_http_urlstore_erasure_end(ngx_http_urlstore_ctx_t *ctx,
    uint64_t number);

/* the reply is the erasure */
ngx_int_t ngx_http_urlstore_erasure_reply(ngx_http_urlstore_ctx_t *ctx,
    uint64_t number);

/* the request is answered 202, with the place of the erasure */
void ngx_http_urlstore_erasure_accepted(ngx_http_urlstore_ctx_t *ctx,
    uint64_t number);

/* of a batch: see ngx_http_urlstore_store_group() */
ngx_int_t ngx_http_urlstore_erase_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g);

/* ngx_http_urlstore_idempotency.c: NGX_OK, NGX_DECLINED or NGX_ERROR */
ngx_int_t ngx_http_urlstore_once(ngx_http_urlstore_batch_t *batch,
    uint64_t id);
void ngx_http_urlstore_repeats(ngx_http_urlstore_batch_t *batch);

/* ngx_http_urlstore_answer.c */

/* records what an entry is answered, after the store has taken it */
ngx_int_t ngx_http_urlstore_answer(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e);

/* writes an answer, if it is wanted (only=new) */
ngx_int_t ngx_http_urlstore_answer_show(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_out_t *out, us_answer_record_t *rec, us_str_t text,
    us_str_t ref);

/* sends the answers, after what ctx->out has already */
ngx_int_t ngx_http_urlstore_answer_reply(ngx_http_urlstore_batch_t *batch);


#endif /* _NGX_HTTP_URLSTORE_BATCH_H_INCLUDED_ */
