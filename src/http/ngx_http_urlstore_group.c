
/*
 * Groups: up to 256 entries that go to the store together.
 *
 *     ctx->group   being filled --flush--> ctx->queue --> store --> answers
 *     free ones    of the worker, from one request to the next
 *
 * A group lives from its first item to the flush, which is at the latest when
 * the event loop goes on.  One exception: if the journal's ring is full
 * (US_BUSY), the request keeps its groups until there is room; g->done tells
 * how far the store has come in the first of them.
 */


#include "ngx_http_urlstore.h"


static ngx_int_t ngx_http_urlstore_group_run(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g);
static ngx_int_t ngx_http_urlstore_group_store(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g);
static ngx_int_t ngx_http_urlstore_group_mark(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g);
static void ngx_http_urlstore_group_free(ngx_http_urlstore_group_t *g);


/* free ones */
static ngx_http_urlstore_group_t  *ngx_http_urlstore_groups;


ngx_http_urlstore_group_t *
ngx_http_urlstore_group_get(ngx_log_t *log)
{
    ngx_http_urlstore_group_t  *g;

    g = ngx_http_urlstore_groups;

    if (g) {
        ngx_http_urlstore_groups = g->next;

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
    g->next = ngx_http_urlstore_groups;
    ngx_http_urlstore_groups = g;
}


ngx_int_t
ngx_http_urlstore_group_flush(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_group_t  *g, **gp;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->group) {
        for (gp = &ctx->queue; *gp; gp = &(*gp)->next) { /* void */ }

        *gp = ctx->group;
        ctx->group = NULL;
    }

    ctx->busy = 0;

    while (ctx->queue) {
        g = ctx->queue;

        rc = ngx_http_urlstore_group_run(r, g);

        if (rc == NGX_AGAIN) {
            ctx->busy = 1;
            return NGX_AGAIN;
        }

        if (rc != NGX_OK) {

            /* the reply may end in the middle of an answer: it is not sent */

            return ngx_http_urlstore_fault(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for the reply");
        }

        ctx->queue = g->next;
        ngx_http_urlstore_group_free(g);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_group_run(ngx_http_request_t *r,
    ngx_http_urlstore_group_t *g)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_group_store(ctx, g) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (ctx->processed == 0 && ngx_http_urlstore_answer_begin(r) != NGX_OK) {
        return NGX_ERROR;
    }

    for ( /* void */ ; g->answered < g->n; g->answered++) {
        if (ngx_http_urlstore_answer(r, &g->entries[g->answered]) != NGX_OK) {
            return NGX_ERROR;
        }

        ctx->processed++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_group_store(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g)
{
    uint64_t          lsn;
    us_store_t       *store;
    us_store_item_t  *item;

    if (ctx->zone->filter) {

        if (g->done < g->urls) {
            ngx_http_urlstore_filter_group(ctx, g);
        }

        return NGX_OK;
    }

    store = ctx->zone->store;

    switch (ctx->action) {

    case NGX_HTTP_URLSTORE_ADD:

        if (g->done < g->urls) {
            lsn = us_store_add(store, &g->items[g->done], g->urls - g->done);
            ctx->lsn = ngx_max(ctx->lsn, lsn);
        }

        for (item = &g->items[g->done]; g->done < g->urls; item++) {

            if (item->status == US_BUSY) {
                return NGX_AGAIN;
            }

            if (item->status == US_NEW) {
                ctx->wrote = 1;
            }

            g->done++;
        }

        if (ctx->wrote) {
            ngx_http_urlstore_train(ctx->zone);
        }

        return NGX_OK;

    case NGX_HTTP_URLSTORE_SEEN:

        us_store_seen(store, g->items, g->urls);

        /* what is published now covers what the look-up has seen */

        ctx->lsn = us_store_published(store);

        return NGX_OK;

    default: /* NGX_HTTP_URLSTORE_MARK */

        if (g->done == 0) {
            us_store_seen(store, g->items, g->urls);
        }

        return ngx_http_urlstore_group_mark(ctx, g);
    }
}


/* here g->done counts entries */

static ngx_int_t
ngx_http_urlstore_group_mark(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_group_t *g)
{
    uint64_t                    lsn;
    ngx_http_urlstore_entry_t  *e;

    for ( /* void */ ; g->done < g->n; g->done++) {
        e = &g->entries[g->done];

        if (e->by_id) {

            /* e->id was given */

        } else if (e->item) {
            e->id = e->item->id;

            if (e->item->status != US_SEEN) {
                e->status = US_UNKNOWN;
                continue;
            }

        } else {
            continue;
        }

        if (e->id == US_STORE_NO_ID) {
            e->status = US_UNKNOWN;
            continue;
        }

        lsn = 0;
        e->status = us_store_mark(ctx->zone->store, ctx->mark, e->id,
                                  !ctx->clear, &lsn);

        if (e->status == US_BUSY) {
            return NGX_AGAIN;
        }

        if (e->status == US_OK) {
            ctx->lsn = ngx_max(ctx->lsn, lsn);
            ctx->wrote = 1;
        }
    }

    /* what was unknown or deleted is told as well: it is so by now */

    ctx->lsn = ngx_max(ctx->lsn, us_store_published(ctx->zone->store));

    return NGX_OK;
}


/*
 * Those of a request that ends.  What the store has taken of the first one is
 * new for nobody else any more, and counts.
 */

void
ngx_http_urlstore_group_drop(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_uint_t                  i;
    ngx_http_urlstore_entry_t  *e;
    ngx_http_urlstore_group_t  *g;

    g = ctx->queue;

    if (g && ctx->action == NGX_HTTP_URLSTORE_ADD) {

        for (i = g->answered; i < g->n; i++) {
            e = &g->entries[i];

            if (e->item && e->item < &g->items[g->done]
                && e->item->status == US_NEW)
            {
                ctx->counts[NGX_HTTP_URLSTORE_A_NEW]++;
            }
        }
    }

    if (ctx->group) {
        ngx_http_urlstore_group_free(ctx->group);
        ctx->group = NULL;
    }

    while (ctx->queue) {
        g = ctx->queue;
        ctx->queue = g->next;
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
