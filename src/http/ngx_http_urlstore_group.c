
/*
 * Groups: up to 256 entries that go to the store together.
 *
 *     batch->group   being filled --flush--> batch->queue --> store --> records
 *     free ones      of the worker, from one request to the next
 *
 * A group lives from its first item to the flush, at the latest until the event
 * loop goes on.  One exception: if the journal's ring is full (US_BUSY), the
 * request keeps its groups until there is room; g->done counts the entries of
 * the first group that the store has processed.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_shard.h"


/* after a disk that stood still many come back: 120 KB each */
#define NGX_HTTP_URLSTORE_FREE_GROUPS  16


/* free ones */
static ngx_http_urlstore_group_t  *ngx_http_urlstore_groups;
static ngx_uint_t                  ngx_http_urlstore_ngroups;


ngx_http_urlstore_group_t *
ngx_http_urlstore_group_get(ngx_log_t *log)
{
    ngx_http_urlstore_group_t  *g;

    g = ngx_http_urlstore_groups;

    if (g) {
        ngx_http_urlstore_groups = g->next;
        ngx_http_urlstore_ngroups--;

    } else {
        g = ngx_alloc(sizeof(ngx_http_urlstore_group_t), log);
        if (g == NULL) {
            return NULL;
        }
    }

    g->n = 0;
    g->urls = 0;
    g->done = 0;
    g->answered = 0;
    g->last = g->text;
    g->next = NULL;

    return g;
}


static void
ngx_http_urlstore_group_free(ngx_http_urlstore_group_t *g)
{
    if (ngx_http_urlstore_ngroups == NGX_HTTP_URLSTORE_FREE_GROUPS) {
        ngx_free(g);
        return;
    }

    g->next = ngx_http_urlstore_groups;
    ngx_http_urlstore_groups = g;
    ngx_http_urlstore_ngroups++;
}


static ngx_int_t
ngx_http_urlstore_group_run(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;

    /* the body may have come slowly, while others of the client were added */

    if (batch->action == NGX_HTTP_URLSTORE_ADD && !batch->admitted) {
        rc = ngx_http_urlstore_quota_test(batch->r);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        batch->admitted = 1;
    }

    rc = ctx->zone->kind->group(batch, g);

    if (rc != NGX_OK) {
        return rc;
    }

    for ( /* void */ ; g->answered < g->n; g->answered++) {
        rc = ngx_http_urlstore_answer(batch, &g->entries[g->answered]);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    ngx_http_urlstore_group_charge(batch);

    return batch->over ? NGX_HTTP_REQUEST_ENTITY_TOO_LARGE : NGX_OK;
}


ngx_int_t
ngx_http_urlstore_group_flush(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                    rc;
    ngx_http_urlstore_group_t   *g, **gp;

    if (batch->group) {
        for (gp = &batch->queue; *gp; gp = &(*gp)->next) { /* void */ }

        *gp = batch->group;
        batch->group = NULL;
    }

    while (batch->queue) {
        g = batch->queue;

        rc = ngx_http_urlstore_group_run(batch, g);

        if (rc != NGX_OK) {
            return rc;
        }

        batch->queue = g->next;
        ngx_http_urlstore_group_free(g);
    }

    return NGX_OK;
}


/* ends the batch: nothing more is changed, and what was changed may be lost */

static ngx_int_t
ngx_http_urlstore_group_fenced(ngx_http_urlstore_batch_t *batch)
{
    return ngx_http_urlstore_fault(batch->r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "this node is not the primary any more");
}


static ngx_int_t
ngx_http_urlstore_group_add(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                        lsn;
    us_store_key_t                 *key;
    us_store_item_t                *item;
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_main_conf_t  *umcf;

    ctx = batch->ctx;
    key = ctx->key.name ? &ctx->key : NULL;

    if (g->done < g->urls) {
        ngx_http_urlstore_clock(ctx->zone);

        if (key) {
            umcf = ngx_http_get_module_main_conf(batch->r,
                                                 ngx_http_urlstore_module);
            key->until = ngx_time() + umcf->keys_keep / 1000;
        }

        lsn = us_store_add_key(ctx->zone->store, &g->items[g->done],
                               g->urls - g->done, batch->older, key);
        ctx->lsn = ngx_max(ctx->lsn, lsn);
    }

    for (item = &g->items[g->done]; g->done < g->urls; item++) {

        if (item->status == US_BUSY) {
            return NGX_BUSY;
        }

        if (item->status == US_FENCED) {
            return ngx_http_urlstore_group_fenced(batch);
        }

        g->done++;

        if (item->status != US_NEW && item->status != US_DUE) {
            continue;
        }

        if (key) {
            switch (ngx_http_urlstore_once(batch, item->id)) {

            case NGX_DECLINED:
                item->status = US_SEEN;
                item->again = 0;
                continue;

            case NGX_ERROR:
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }

        ctx->wrote |= !item->again;

        if (item->again) {
            us_tally_add(ctx->zone->tally, US_N_REPEATED, 1);
            batch->repeated += (item->status == US_NEW);
        }
    }

    if (ctx->wrote) {
        ngx_http_urlstore_train(ctx->zone);
    }

    return NGX_OK;
}


/* whether an entry has an id, by itself or by its URL */

static ngx_uint_t
ngx_http_urlstore_group_id(ngx_http_urlstore_entry_t *e)
{
    if (!e->by_id && e->item == NULL) {
        return 0;
    }

    if (!e->by_id) {
        e->id = e->item->status == US_SEEN ? e->item->id : US_STORE_NO_ID;
        e->moved = e->item->status == US_MOVED;
    }

    e->status = e->moved ? US_MOVED : US_UNKNOWN;

    return e->id != US_STORE_NO_ID;
}


/* here g->done counts entries */

static ngx_int_t
ngx_http_urlstore_group_mark(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                    lsn;
    us_store_t                 *store;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_entry_t  *e;

    ctx = batch->ctx;
    store = ctx->zone->store;

    if (g->done == 0) {
        us_store_seen(store, g->items, g->urls);
    }

    for ( /* void */ ; g->done < g->n; g->done++) {
        e = &g->entries[g->done];

        if (!ngx_http_urlstore_group_id(e)) {
            continue;
        }

        lsn = 0;
        e->status = us_store_mark(store, batch->mark, e->id, !batch->clear,
                                  &lsn);

        if (e->status == US_BUSY) {
            return NGX_BUSY;
        }

        if (e->status == US_FENCED) {
            return ngx_http_urlstore_group_fenced(batch);
        }

        if (e->status == US_OK) {
            ctx->lsn = ngx_max(ctx->lsn, lsn);
            ctx->wrote = 1;
        }
    }

    /* the answers "unknown" and "deleted" depend on all until now */

    ctx->lsn = ngx_max(ctx->lsn, us_store_published(store));

    return NGX_OK;
}


/* all of the group, or none: the ring is full */

static ngx_int_t
ngx_http_urlstore_group_claim(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                   lsn;
    ngx_uint_t                 i, n;
    us_store_t                *store;
    us_store_claim_t           claims[US_STORE_GROUP];
    ngx_http_urlstore_ctx_t   *ctx;

    ctx = batch->ctx;
    store = ctx->zone->store;

    ngx_http_urlstore_clock(batch->ctx->zone);
    us_store_seen(store, g->items, g->urls);

    for (i = 0, n = 0; i < g->n; i++) {
        if (ngx_http_urlstore_group_id(&g->entries[i])) {
            claims[n++].id = g->entries[i].id;
        }
    }

    lsn = us_store_claim(store, claims, n, batch->at_time);

    if (n && claims[0].status == US_BUSY) {
        return NGX_BUSY;
    }

    if (n && claims[0].status == US_FENCED) {
        return ngx_http_urlstore_group_fenced(batch);
    }

    for (i = 0, n = 0; i < g->n; i++) {
        if (ngx_http_urlstore_group_id(&g->entries[i])) {
            g->entries[i].status = claims[n].status;
            ctx->wrote |= (claims[n++].status == US_OK);
        }
    }

    ctx->lsn = ngx_max(ctx->lsn, lsn);

    return NGX_OK;
}


/* of the kind: the store looks the URLs up, or adds them */

ngx_int_t
ngx_http_urlstore_store_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    ngx_int_t                 rc;
    us_store_t               *store;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = batch->ctx;
    store = ctx->zone->store;
    rc = NGX_OK;

    /* the node was the primary when the request began, and maybe long ago */

    if (ctx->writes && ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_group_fenced(batch);
    }

    ngx_http_urlstore_shard_under(ctx);

    if (batch->action == NGX_HTTP_URLSTORE_ADD) {
        rc = ngx_http_urlstore_group_add(batch, g);

    } else if (batch->action == NGX_HTTP_URLSTORE_SEEN) {
        ngx_http_urlstore_clock(batch->ctx->zone);
        us_store_seen(store, g->items, g->urls);

        if (batch->older) {
            (void) us_store_due(store, g->items, g->urls, batch->older);
        }

        /* what is published now covers what the look-up has seen */

        ctx->lsn = us_store_published(store);

    } else if (batch->action == NGX_HTTP_URLSTORE_CLAIM) {
        rc = ngx_http_urlstore_group_claim(batch, g);

    } else {
        rc = ngx_http_urlstore_group_mark(batch, g);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (batch->answers.times) {
        us_store_times(store, g->items, g->urls);
        ctx->lsn = ngx_max(ctx->lsn, us_store_published(store));
    }

    return NGX_OK;
}


/* what was new since it was called last */

void
ngx_http_urlstore_group_charge(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t  n;

    if (batch->action == NGX_HTTP_URLSTORE_ADD) {
        n = batch->answers.counts[US_ANSWER_NEW] - batch->repeated;
        ngx_http_urlstore_quota_charge(batch->r, n - batch->charged);
        batch->charged = n;
    }
}


/*
 * The groups of a request that is ended.  Entries of the first one that the
 * store has changed count as processed; URLs that it has added are new to no
 * other request, so they are counted, too.
 */

void
ngx_http_urlstore_group_drop(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                  i, add;
    ngx_http_urlstore_entry_t  *e;
    ngx_http_urlstore_group_t  *g;

    g = batch->queue;
    add = (batch->action == NGX_HTTP_URLSTORE_ADD);

    for (i = g ? g->answered : 0; g && i < g->n; i++) {
        e = &g->entries[i];

        if (add ? (e->item == NULL || e->item >= &g->items[g->done])
                : i >= g->done)
        {
            continue;
        }

        batch->ctx->processed++;

        if (add && e->item->status == US_NEW) {
            batch->answers.counts[US_ANSWER_NEW]++;

        } else if (add && e->item->status == US_DUE) {
            batch->answers.counts[US_ANSWER_DUE]++;
        }
    }

    if (batch->group) {
        ngx_http_urlstore_group_free(batch->group);
        batch->group = NULL;
    }

    while (batch->queue) {
        g = batch->queue;
        batch->queue = g->next;
        ngx_http_urlstore_group_free(g);
    }
}


void
ngx_http_urlstore_group_exit(void)
{
    ngx_http_urlstore_group_t  *g;

    while (ngx_http_urlstore_groups) {
        g = ngx_http_urlstore_groups;
        ngx_http_urlstore_groups = g->next;
        ngx_free(g);
    }
}
