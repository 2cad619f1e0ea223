
/*
 * Idempotency-Key: a client that lost a reply sends its request again with the
 * same key, and gets the same reply (draft-ietf-httpapi-idempotency-key-header,
 * version 07).
 *
 *     urlstore_idempotency SIZE [keep=TIME];   or off
 *
 *     body --> read whole, hashed              --> fingerprint
 *     key  --> scope: zone, its data, client   --> name of the key
 *                 |
 *                 |  us_idem_begin()
 *                 +--> new         the endpoint; its reply is kept
 *                 +--> kept        the reply of the first try
 *                 +--> under way   409
 *                 +--> other       422: the key has another fingerprint
 *                 `--> busy        the endpoint; its reply is not kept
 *
 * Any request that changes the store can have a key: see `writes` in the table
 * of endpoints.
 *
 * A request with a key is executed when its body has arrived whole, and nginx
 * buffers it.  So a try whose client leaves in the middle changes nothing, one
 * that is slow is in nobody's way, and the fingerprint is known before
 * anything is done.
 *
 * Both names are 128 bits of SipHash-1-3 under a secret of the area.  A client
 * learns about them only whether two of them are equal.  Without the secret it
 * cannot make two bodies that collide better than by trying: after 2^40
 * requests in the keeping time two of them collide with a probability of
 * 2^-49.  So the area has no copy of the request to compare.
 *
 * The area is a zone of nginx of its own.  A reload keeps it if its size is the
 * same; a restart or a binary upgrade begins with an empty one.
 */


#include "ngx_http_urlstore_keep.h"


#define NGX_HTTP_URLSTORE_IDEM_SIZE    (16 * 1024 * 1024)
#define NGX_HTTP_URLSTORE_IDEM_MIN     (256 * 1024)
#define NGX_HTTP_URLSTORE_IDEM_KEEP    60000            /* ms */

/* pages of the slab pool that are left to nginx; of the area, at least */
#define NGX_HTTP_URLSTORE_IDEM_SPARE   4
#define NGX_HTTP_URLSTORE_IDEM_PAGES   (2 * NGX_HTTP_URLSTORE_IDEM_SPARE)

/* bytes hashed in one turn of the event loop; of a file at once */
#define NGX_HTTP_URLSTORE_IDEM_TURN    (512 * 1024)
#define NGX_HTTP_URLSTORE_IDEM_WINDOW  (64 * 1024)

/* a reply was dropped while it was to be copied: looks again so often */
#define NGX_HTTP_URLSTORE_IDEM_AGAIN   8


static ngx_int_t ngx_http_urlstore_idem_init_zone(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_urlstore_idem_lock(void *data);
static void ngx_http_urlstore_idem_unlock(void *data);

static ngx_int_t ngx_http_urlstore_idem_key(ngx_http_request_t *r,
    ngx_str_t *key);
static ngx_int_t ngx_http_urlstore_idem_create(ngx_http_request_t *r,
    ngx_str_t *key);
static void ngx_http_urlstore_idem_named(ngx_http_request_t *r,
    us_idem_name_t *name);
static void ngx_http_urlstore_idem_add(us_hash128_t *h, const u_char *p,
    size_t len);
static void ngx_http_urlstore_idem_number(us_hash128_t *h, uint64_t n);
static void ngx_http_urlstore_idem_print(ngx_http_request_t *r,
    us_hash128_t *h);
static void ngx_http_urlstore_idem_event(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_idem_turn(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_idem_hash(ngx_http_request_t *r,
    ngx_http_urlstore_idem_t *idem);
static ngx_int_t ngx_http_urlstore_idem_begin(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_idem_replay(ngx_http_request_t *r,
    us_idem_answer_t *answer);
static ngx_int_t ngx_http_urlstore_idem_wait(ngx_http_request_t *r);
static void ngx_http_urlstore_idem_cleanup(void *data);


/* its address is the tag of the zone */
static ngx_uint_t  ngx_http_urlstore_idem_tag;

static ngx_str_t   ngx_http_urlstore_idem_name =
    ngx_string("urlstore_idempotency");


/* SIZE [keep=TIME], or off */

char *
ngx_http_urlstore_idempotency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_main_conf_t *umcf = conf;

    ssize_t      size, least;
    ngx_str_t   *value, text;
    ngx_msec_t   keep;

    if (umcf->idem.size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        if (cf->args->nelts > 2) {
            return "is wrong: \"off\" allows no other parameter";
        }

        umcf->idem.size = 0;
        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&value[1]);

    least = NGX_HTTP_URLSTORE_IDEM_PAGES * ngx_pagesize;
    least = ngx_max(least, NGX_HTTP_URLSTORE_IDEM_MIN);

    if (size < least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of urlstore_idempotency: at "
                           "least %zk, or \"off\", is expected", &value[1],
                           least / 1024);
        return NGX_CONF_ERROR;
    }

    umcf->idem.size = size;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[2].data, "keep=", 5) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of urlstore_idempotency: "
                           "keep=TIME is expected", &value[2]);
        return NGX_CONF_ERROR;
    }

    text.data = value[2].data + 5;
    text.len = value[2].len - 5;

    keep = ngx_parse_time(&text, 0);

    if (keep == (ngx_msec_t) NGX_ERROR || keep < 1000 || keep > 86400000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time \"%V\" of urlstore_idempotency: 1s "
                           "to 1d is expected", &text);
        return NGX_CONF_ERROR;
    }

    umcf->idem.keep = keep;

    return NGX_CONF_OK;
}


/* at the end of http { }: the area, with its default size if it has none */

ngx_int_t
ngx_http_urlstore_idem_conf(ngx_conf_t *cf, ngx_http_urlstore_main_conf_t *umcf)
{
    ngx_shm_zone_t               *shm_zone;
    ngx_http_urlstore_retries_t  *idem;

    idem = &umcf->idem;

    ngx_conf_init_size_value(idem->size, NGX_HTTP_URLSTORE_IDEM_SIZE);
    ngx_conf_init_msec_value(idem->keep, NGX_HTTP_URLSTORE_IDEM_KEEP);

    if (idem->size == 0 || umcf->zones.nelts == 0) {
        return NGX_OK;
    }

    shm_zone = ngx_shared_memory_add(cf, &ngx_http_urlstore_idem_name,
                                     idem->size, &ngx_http_urlstore_idem_tag);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    shm_zone->init = ngx_http_urlstore_idem_init_zone;
    shm_zone->data = idem;

    idem->shm_zone = shm_zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_idem_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    size_t            size;
    uint8_t           secret[16];
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists || ngx_test_config) {
        return NGX_OK;
    }

    if (ngx_http_urlstore_random(shm_zone->shm.log, secret, sizeof(secret))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* fresh pages of a mapping: they are zero, and take memory when touched */

    size = (shpool->pfree - NGX_HTTP_URLSTORE_IDEM_SPARE) * ngx_pagesize;
    shpool->data = ngx_slab_alloc(shpool, size);

    if (shpool->data == NULL
        || us_idem_format(shpool->data, size, secret) != 0)
    {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "no memory for urlstore_idempotency");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* of a worker */

ngx_int_t
ngx_http_urlstore_idem_open(ngx_http_urlstore_main_conf_t *umcf,
    ngx_log_t *log)
{
    us_idem_lock_t                lock;
    ngx_slab_pool_t              *shpool;
    ngx_http_urlstore_retries_t  *idem;

    idem = &umcf->idem;

    if (idem->shm_zone == NULL) {
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) idem->shm_zone->shm.addr;

    /* the master opens the mutex of a worker that was killed */

    lock.lock = ngx_http_urlstore_idem_lock;
    lock.unlock = ngx_http_urlstore_idem_unlock;
    lock.data = &shpool->mutex;

    if (us_idem_open(&idem->area, shpool->data, &lock) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "the area of "
                      "urlstore_idempotency has another layout");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_urlstore_idem_lock(void *data)
{
    ngx_shmtx_lock(data);
}


static void
ngx_http_urlstore_idem_unlock(void *data)
{
    ngx_shmtx_unlock(data);
}


/*
 * A request that changes the store: NGX_DECLINED if it has no key; else the
 * result of the request, which calls its endpoint.
 */

ngx_int_t
ngx_http_urlstore_idem(ngx_http_request_t *r)
{
    ngx_int_t                       rc;
    ngx_str_t                       key;
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_urlstore_loc_conf_t   *ulcf;
    ngx_http_urlstore_main_conf_t  *umcf;

    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);

    /* a subrequest has the headers of another request */

    if (umcf->idem.shm_zone == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_idem_key(r, &key);

    if (rc != NGX_DECLINED || key.len == 0) {
        return rc;
    }

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->headers_in.content_length_n > (off_t) ulcf->max_body) {

        /* the endpoint refuses it */

        return NGX_DECLINED;
    }

    if (r->headers_in.content_length_n == -1
        && clcf->client_max_body_size == 0
        && r->headers_in.chunked)
    {
        /*
         * nothing would end what nginx buffers; in HTTP/2 and 3, chunked says
         * that a body without a length follows
         */

        return ngx_http_urlstore_problem(r, NGX_HTTP_LENGTH_REQUIRED, NULL,
                                         "a body of a request with "
                                         "Idempotency-Key needs "
                                         "Content-Length where "
                                         "client_max_body_size is 0");
    }

    if (ngx_http_urlstore_idem_create(r, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_urlstore_idem_event);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


/* NGX_DECLINED: go on, it is empty if there is none; else a reply was sent */

static ngx_int_t
ngx_http_urlstore_idem_key(ngx_http_request_t *r, ngx_str_t *key)
{
    us_str_t          text;
    ngx_str_t        *value;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    value = NULL;
    ngx_str_null(key);

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len != sizeof("Idempotency-Key") - 1
                || ngx_strncasecmp(h[i].key.data,
                                   (u_char *) "Idempotency-Key", h[i].key.len)
                   != 0)
            {
                continue;
            }

            if (value) {
                return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST,
                                                 NULL, "the request has more "
                                                 "than one Idempotency-Key");
            }

            value = &h[i].value;
        }
    }

    if (value == NULL) {
        return NGX_DECLINED;
    }

    key->data = ngx_pnalloc(r->pool, US_IDEM_KEY_MAX);
    if (key->data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text.data = value->data;
    text.len = value->len;

    key->len = us_idem_key(text, key->data);

    if (key->len) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid Idempotency-Key: allowed is a "
                                     "string of 1 to %d printable ASCII "
                                     "characters, in double quotes; without "
                                     "the quotes it has no space, quote, "
                                     "backslash, comma or semicolon",
                                     US_IDEM_KEY_MAX);
}


/* what the names are made of; begins the fingerprint */

static ngx_int_t
ngx_http_urlstore_idem_create(ngx_http_request_t *r, ngx_str_t *key)
{
    ngx_http_cleanup_t             *cln;
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_idem_t       *idem;
    ngx_http_urlstore_main_conf_t  *umcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);

    idem = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_idem_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (idem == NULL || cln == NULL
        || ngx_http_urlstore_quota_key(r, &idem->client) != NGX_OK)
    {
        return NGX_ERROR;
    }

    idem->area = &umcf->idem.area;
    idem->keep = umcf->idem.keep;
    idem->text = *key;

    ctx->idem = idem;

    cln->handler = ngx_http_urlstore_idem_cleanup;
    cln->data = idem;

    us_idem_name_init(idem->area, &idem->print);
    ngx_http_urlstore_idem_print(r, &idem->print);

    return NGX_OK;
}


/* names the key */

static void
ngx_http_urlstore_idem_named(ngx_http_request_t *r, us_idem_name_t *name)
{
    us_hash128_t               h;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_idem_t  *idem;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    idem = ctx->idem;

    us_idem_name_init(idem->area, &h);
    ngx_http_urlstore_idem_add(&h, ctx->zone->name.data, ctx->zone->name.len);

    /* ids of one epoch and generation mean nothing in another */

    ngx_http_urlstore_idem_number(&h, ctx->zone->conf.epoch);
    ngx_http_urlstore_idem_number(&h, ctx->view.generation);

    ngx_http_urlstore_idem_add(&h, idem->client.data, idem->client.len);
    ngx_http_urlstore_idem_add(&h, r->headers_in.user.data,
                               r->headers_in.user.len);
    ngx_http_urlstore_idem_add(&h, idem->text.data, idem->text.len);
    us_hash128_end(&h, name->w);
}


/* with its length, so that no two lists of texts are one */

static void
ngx_http_urlstore_idem_add(us_hash128_t *h, const u_char *p, size_t len)
{
    ngx_http_urlstore_idem_number(h, len);
    us_hash128_add(h, p, len);
}


static void
ngx_http_urlstore_idem_number(us_hash128_t *h, uint64_t n)
{
    us_hash128_add(h, (uint8_t *) &n, sizeof(n));
}


/* all but the body that makes the request, and the form of its reply */

static void
ngx_http_urlstore_idem_print(ngx_http_request_t *r, us_hash128_t *h)
{
    ngx_str_t                *value;
    ngx_uint_t                i;
    ngx_http_urlstore_ctx_t  *ctx;

    static const char *const  names[] = {
        "content-type", "content-encoding", "accept"
    };

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_idem_number(h, r->method);
    ngx_http_urlstore_idem_add(h, ctx->endpoint->name.data,
                               ctx->endpoint->name.len);
    ngx_http_urlstore_idem_add(h, ctx->tail.data, ctx->tail.len);
    ngx_http_urlstore_idem_add(h, r->args.data, r->args.len);

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        value = ngx_http_urlstore_header_in(r, names[i]);

        /* an empty header is not the same as none */

        ngx_http_urlstore_idem_number(h, value != NULL);

        if (value) {
            ngx_http_urlstore_idem_add(h, value->data, value->len);
        }
    }
}


/* the body has been read */

static void
ngx_http_urlstore_idem_event(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ctx->idem->rest = r->request_body ? r->request_body->bufs : NULL;

    /*
     * NGX_DONE of the endpoint may be the end of the request: it is the last
     * to hold the request's count then.
     */

    ngx_http_finalize_request(r, ngx_http_urlstore_idem_turn(r));
}


/* a turn of hashing; NGX_DONE: the request goes on later, its count is up */

static ngx_int_t
ngx_http_urlstore_idem_turn(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_idem_hash(r, ctx->idem);

    if (rc == NGX_AGAIN) {
        return ngx_http_urlstore_turn_when(r, ngx_http_urlstore_idem_turn);
    }

    return rc == NGX_OK ? ngx_http_urlstore_idem_begin(r) : rc;
}


/*
 * As received: compressed, if it was.  The buffers are the endpoint's after
 * us.  NGX_OK: that was all of it, NGX_AGAIN: enough for a turn; or a status.
 */

static ngx_int_t
ngx_http_urlstore_idem_hash(ngx_http_request_t *r,
    ngx_http_urlstore_idem_t *idem)
{
    off_t       rest;
    size_t      len, done;
    u_char     *p;
    ssize_t     n;
    ngx_buf_t  *b;

    for (done = 0; idem->rest; done += len) {

        if (done >= NGX_HTTP_URLSTORE_IDEM_TURN) {
            return NGX_AGAIN;
        }

        b = idem->rest->buf;
        rest = ngx_buf_size(b) - idem->offset;
        len = ngx_min(rest, NGX_HTTP_URLSTORE_IDEM_WINDOW);

        if (rest <= 0) {
            idem->rest = idem->rest->next;
            idem->offset = 0;
            len = 0;
            continue;
        }

        if (ngx_buf_in_memory(b)) {
            p = b->pos + idem->offset;

        } else {
            if (idem->window == NULL) {
                idem->window = ngx_palloc(r->pool,
                                          NGX_HTTP_URLSTORE_IDEM_WINDOW);
                if (idem->window == NULL) {
                    return NGX_HTTP_INTERNAL_SERVER_ERROR;
                }
            }

            n = ngx_read_file(b->file, idem->window, len,
                              b->file_pos + idem->offset);

            if (n <= 0) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            p = idem->window;
            len = n;
        }

        us_hash128_add(&idem->print, p, len);
        idem->offset += len;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_idem_begin(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    us_idem_name_t             key, print;
    us_idem_answer_t           answer;
    us_idem_status_t           status;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_idem_t  *idem;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    idem = ctx->idem;

    /* the zone is what it is now: the body may have taken long */

    ngx_http_urlstore_refresh(ctx->zone);

    rc = ngx_http_urlstore_begin(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_urlstore_idem_named(r, &key);
    us_hash128_end(&idem->print, print.w);

    for (i = 0; i < NGX_HTTP_URLSTORE_IDEM_AGAIN; i++) {
        status = us_idem_begin(idem->area, &key, &print,
                               ngx_http_urlstore_now() / 1000, &idem->ticket,
                               &answer);

        switch (status) {

        case US_IDEM_NEW:
            idem->held = 1;
            return ngx_http_urlstore_execute(r);

        case US_IDEM_BUSY:
            ngx_http_urlstore_keep_none(r);
            return ngx_http_urlstore_execute(r);

        case US_IDEM_UNDER_WAY:
            return ngx_http_urlstore_idem_wait(r);

        case US_IDEM_OTHER:
            us_tally_add(ctx->zone->tally, US_N_MISMATCHED, 1);

            return ngx_http_urlstore_problem(r,
                       NGX_HTTP_URLSTORE_UNPROCESSABLE, NULL,
                       "the Idempotency-Key is that of another request: a "
                       "retry has the same method, path, query, body, "
                       "Content-Type, Content-Encoding and Accept");

        default: /* US_IDEM_KEPT */
            rc = ngx_http_urlstore_idem_replay(r, &answer);

            if (rc != NGX_DECLINED) {
                return rc;
            }
        }
    }

    return ngx_http_urlstore_idem_wait(r);
}


/* NGX_DECLINED: it has just been dropped */

static ngx_int_t
ngx_http_urlstore_idem_replay(ngx_http_request_t *r, us_idem_answer_t *answer)
{
    u_char                    *p;
    ngx_str_t                  location;
    ngx_http_urlstore_out_t   *out;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_kept_t   kept;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    if (ngx_http_urlstore_out_init(out, r->pool, answer->len) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = out->pos;

    if (us_idem_copy(ctx->idem->area, answer, p) != 0) {
        return NGX_DECLINED;
    }

    out->pos += answer->len;

    ngx_memcpy(&kept, p, sizeof(ngx_http_urlstore_kept_t));
    p += sizeof(ngx_http_urlstore_kept_t);

    ctx->lsn = kept.lsn;
    ctx->status = kept.status;

    ctx->type.data = p;
    ctx->type.len = kept.type_len;
    p += kept.type_len;

    location.data = p;
    location.len = kept.location_len;
    p += kept.location_len;

    ctx->id = kept.id;
    ctx->status_name.data = p;
    ctx->status_name.len = kept.name_len;
    p += kept.name_len;

    ctx->url.data = p;
    ctx->url.len = kept.url_len;
    p += kept.url_len;

    /* the first piece has the whole answer: its text begins here */

    out->chain->buf->pos = p;

    ngx_http_urlstore_problem_line(r, ctx->status);

    if (location.len
        && ngx_http_urlstore_header(r, "Location", &location) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&ctx->outcome, "replayed");
    us_tally_add(ctx->zone->tally, US_N_REPLAYED, 1);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_idem_wait(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    us_tally_add(ctx->zone->tally, US_N_UNDER_WAY, 1);

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT, NULL,
                                     "a request with this Idempotency-Key is "
                                     "under way; retry in 1 second");
}


/* of a request that ends without a reply */

static void
ngx_http_urlstore_idem_cleanup(void *data)
{
    ngx_http_urlstore_idem_t *idem = data;

    if (idem->held) {
        us_idem_release(idem->area, &idem->ticket);
        idem->held = 0;
    }
}
