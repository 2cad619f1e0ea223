
/*
 * Idempotency-Key: a client that lost a reply sends its request again with the
 * same key, and what the lost request has added or claimed is answered as `new`
 * or `due` again.
 *
 *     urlstore_idempotency SIZE [keep=TIME];   or off
 *
 *     key  --> scope: user, client of a quota  --> name, of 64 bits
 *                                                    |
 *     items of /add --> us_store_add_key() <---------'
 *                          |
 *                          `--> of equal items, the first is `new`
 *
 * What was new to a key is in the zone and in the journal (us_keys.h).  So it
 * outlives workers, restarts and the node.  No reply is kept, and a retry is a
 * request like any other: all else it does once more, which changes nothing.
 *
 * A key is a name under the uuid of the data, so all nodes of a log have the
 * same.  A client learns by a key which URLs, of those that it sends itself,
 * were new to a request with that key; so a key is of one user and one client
 * of a quota.  A router, where they are known, sends the name as the key, and
 * keeps nothing.
 */


#include "ngx_http_urlstore_batch.h"
#include "../us_hash.h"


#define NGX_HTTP_URLSTORE_KEYS_MIN   (16 * 1024)

/* the longest key, in bytes */
#define NGX_HTTP_URLSTORE_KEY_MAX    255


static ngx_http_urlstore_option_t  ngx_http_urlstore_keys_options[] = {
    { ngx_string("keep"), ngx_http_urlstore_opt_time,
      offsetof(ngx_http_urlstore_main_conf_t, keys_keep), 1000, 86400000, NULL,
      NULL, "a time from 1s to 1d" },
    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


/* SIZE [keep=TIME], or off */

char *
ngx_http_urlstore_idempotency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_main_conf_t *umcf = conf;

    ssize_t     size;
    ngx_str_t  *value;

    if (umcf->keys_size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        if (cf->args->nelts > 2) {
            return "is wrong: \"off\" allows no other parameter";
        }

        umcf->keys_size = 0;
        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&value[1]);

    if (size < NGX_HTTP_URLSTORE_KEYS_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of urlstore_idempotency: at "
                           "least %dk, or \"off\", is expected", &value[1],
                           NGX_HTTP_URLSTORE_KEYS_MIN / 1024);
        return NGX_CONF_ERROR;
    }

    umcf->keys_size = size;

    return ngx_http_urlstore_options_read(cf, umcf, 2,
                                          ngx_http_urlstore_keys_options)
           == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/*
 * The key of a header's value: an sf-string of RFC 8941, section 3.3.3, or the
 * same text without quotes, as many clients send it.  Returns its length in
 * buf; 0: it is neither, empty, or too long.
 */

static size_t
ngx_http_urlstore_key_parse(ngx_str_t *value, u_char *buf)
{
    size_t      len;
    u_char     *p, *last;
    ngx_uint_t  quoted;

    p = value->data;
    last = p + value->len;

    quoted = (value->len >= 2 && p[0] == '"' && last[-1] == '"');

    if (quoted) {
        p++;
        last--;
    }

    for (len = 0; p < last; p++) {

        if (quoted && *p == '\\') {

            /* only these two are escaped, and the last quote is not */

            if (++p == last || (*p != '\\' && *p != '"')) {
                return 0;
            }

        } else if (*p < ' ' || *p > '~' || *p == '"'
                   || (!quoted && (*p == ' ' || *p == '\\' || *p == ','
                                   || *p == ';')))
        {
            return 0;
        }

        if (len == NGX_HTTP_URLSTORE_KEY_MAX) {
            return 0;
        }

        buf[len++] = *p;
    }

    return len;
}


/* with its length, so that no two lists of texts are one */

static void
ngx_http_urlstore_key_add(us_hash128_t *h, const u_char *p, size_t len)
{
    uint64_t  n;

    n = len;
    us_hash128_add(h, (uint8_t *) &n, sizeof(n));
    us_hash128_add(h, p, len);
}


/*
 * Of a request that changes the store: its key, if it has one.  NGX_DECLINED:
 * go on; else the reply has been sent.
 */

ngx_int_t
ngx_http_urlstore_key(ngx_http_urlstore_ctx_t *ctx)
{
    size_t                          len;
    u_char                          key[NGX_HTTP_URLSTORE_KEY_MAX];
    uint64_t                        name[2];
    ngx_str_t                      *value, client;
    ngx_uint_t                      i;
    us_hash128_t                    h128;
    ngx_list_part_t                *part;
    ngx_table_elt_t                *h;
    ngx_http_request_t             *r;
    ngx_http_urlstore_main_conf_t  *umcf;

    r = ctx->r;

    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);

    /* a subrequest has the headers of another request */

    if (umcf->keys_size == 0 || r != r->main) {
        return NGX_DECLINED;
    }

    value = NULL;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_urlstore_is(&h[i].key, "Idempotency-Key")) {
                continue;
            }

            if (value) {
                return ngx_http_urlstore_bad(ctx, "the request has more than "
                                             "one Idempotency-Key");
            }

            value = &h[i].value;
        }
    }

    if (value == NULL) {
        return NGX_DECLINED;
    }

    len = ngx_http_urlstore_key_parse(value, key);

    if (len == 0) {
        return ngx_http_urlstore_bad(ctx, "invalid Idempotency-Key: allowed is "
                                     "a string of 1 to %d printable ASCII "
                                     "characters, in double quotes; without "
                                     "the quotes it has no space, quote, "
                                     "backslash, comma or semicolon",
                                     NGX_HTTP_URLSTORE_KEY_MAX);
    }

    if (ngx_http_urlstore_quota_key(ctx, &client) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    us_hash128_init(&h128, ctx->zone->store ? ctx->zone->conf.uuid
                                            : (uint8_t *) "urlstore routers");
    ngx_http_urlstore_key_add(&h128, client.data, client.len);
    ngx_http_urlstore_key_add(&h128, r->headers_in.user.data,
                              r->headers_in.user.len);
    ngx_http_urlstore_key_add(&h128, key, len);
    us_hash128_end(&h128, name);

    ctx->key.name = name[0] ? name[0] : 1;

    return NGX_DECLINED;
}


/*
 * Of a request with a key, for each item that is new or due in the order of the
 * input: whether it is the first with its id.  The store answers each of equal
 * URLs in one batch as it has answered one of them before.
 */

ngx_int_t
ngx_http_urlstore_once(ngx_http_urlstore_batch_t *batch, uint64_t id)
{
    uint64_t   *ids, *old;
    ngx_uint_t  i, k, n;

    n = batch->nonce;

    if (batch->given * 2 >= n) {
        old = batch->once;
        batch->nonce = n ? n * 2 : 16;
        batch->once = ngx_pcalloc(batch->ctx->r->pool,
                                  batch->nonce * sizeof(uint64_t));

        if (batch->once == NULL) {
            return NGX_ERROR;
        }

        batch->given = 0;

        for (i = 0; i < n; i++) {
            if (old[i]) {
                (void) ngx_http_urlstore_once(batch, old[i] - 1);
            }
        }

        if (old) {
            (void) ngx_pfree(batch->ctx->r->pool, old);
        }

        n = batch->nonce;
    }

    ids = batch->once;

    for (k = id * 0x9e3779b97f4a7c15 >> 32 & (n - 1);
         ids[k];
         k = (k + 1) & (n - 1))
    {
        if (ids[k] == id + 1) {
            return NGX_DECLINED;
        }
    }

    ids[k] = id + 1;
    batch->given++;

    return NGX_OK;
}


/*
 * At the end of an add with a key: whether its answers are those that a retry
 * needs, so that what is seen was there before the first try.  Not if a part
 * was not answered, which a lost try may have added.
 */

void
ngx_http_urlstore_repeats(ngx_http_urlstore_batch_t *batch)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    /*
     * A router has asked its shards; a filter forgets.  What was added before
     * the last reload that has made keep= longer may have been forgotten.
     */

    if (ctx->zone->store) {
        ctx->repeats = us_store_repeats(ctx->zone->store)
                       && (time_t) ctx->zone->sh->keys_since
                          + ctx->zone->keys_keep < ngx_time();
        us_tally_add(ctx->zone->tally, US_N_FORGOTTEN, !ctx->repeats);
    }

    if (batch->answers.counts[US_ANSWER_UNAVAILABLE]) {
        ctx->repeats = 0;
    }
}
