
/*
 * $urlstore_id, $urlstore_status and $urlstore_url: what a single look-up was
 * answered, for logs; or, before there is an answer, what the zone knows of
 * the request's ?url=, for `if` and `map`.  Such a look-up adds nothing.
 *
 * $urlstore_site_hash and $urlstore_path_hash: of ?url=, to divide URLs among
 * nodes; the store is not asked.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../us_text.h"
#include "../url/us_two_hash.h"


typedef enum {
    NGX_HTTP_URLSTORE_V_ID = 0,
    NGX_HTTP_URLSTORE_V_STATUS,
    NGX_HTTP_URLSTORE_V_URL,
    NGX_HTTP_URLSTORE_V_SITE,
    NGX_HTTP_URLSTORE_V_PATH
} ngx_http_urlstore_variable_t;


/*
 * ?url=U[&base=B]; NGX_DECLINED: the request has none, or the zone does not
 * know yet.
 */

static ngx_int_t
ngx_http_urlstore_lookup(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t         rc;
    us_canon_t        canon;
    us_verdict_t      verdict;
    us_store_item_t   item;

    if (zone->kind->look == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_query_url(r, zone, NULL, &canon, &verdict);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx->id = US_STORE_NO_ID;

    if (verdict != US_URL_OK) {
        ctx->answer = us_verdict_rejected(verdict) ? US_ANSWER_REJECTED
                                                   : US_ANSWER_INVALID;
        return NGX_OK;
    }

    ngx_memzero(&item, sizeof(us_store_item_t));

    item.url = canon.url.href;
    item.merge = canon.merge;

    rc = zone->kind->look(ctx, zone, &item);

    if (rc != NGX_OK) {
        return rc;
    }

    if (item.status == US_MOVED
        || !us_life_answers(&zone->life, item.status == US_SEEN))
    {
        return NGX_DECLINED;
    }

    if (item.status == US_SEEN) {
        ctx->answer = US_ANSWER_SEEN;
        ctx->id = ngx_http_urlstore_id(zone, item.id);

    } else {
        ctx->answer = US_ANSWER_UNSEEN;

        if (zone->store) {
            us_store_spell(zone->store, &item);
        }
    }

    ctx->url.data = ngx_pnalloc(r->pool, item.url.len + 8);
    if (ctx->url.data == NULL) {
        return NGX_ERROR;
    }

    ctx->url.len = us_store_item_url(&item, ctx->url.data);

    return NGX_OK;
}


/* the location's, or the only one that there is */

static ngx_http_urlstore_zone_t *
ngx_http_urlstore_variable_zone(ngx_http_request_t *r)
{
    ngx_http_urlstore_zone_t       **zp;
    ngx_http_urlstore_loc_conf_t    *ulcf;
    ngx_http_urlstore_main_conf_t   *umcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ulcf->zone) {
        return ulcf->zone;
    }

    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);

    if (umcf->zones.nelts != 1) {
        return NULL;
    }

    zp = umcf->zones.elts;

    return zp[0];
}


static ngx_int_t
ngx_http_urlstore_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    ngx_http_urlstore_ctx_t   *ctx, found;
    ngx_http_urlstore_zone_t  *zone;

    v->not_found = 1;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx == NULL || (ctx->answer == US_ANSWER_NONE && !ctx->replied)) {

        zone = ngx_http_urlstore_variable_zone(r);
        if (zone == NULL) {
            return NGX_OK;
        }

        ngx_memzero(&found, sizeof(ngx_http_urlstore_ctx_t));
        found.r = r;

        rc = ngx_http_urlstore_lookup(r, zone, &found);

        if (rc != NGX_OK) {
            return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
        }

        ctx = &found;
    }

    switch (data) {

    case NGX_HTTP_URLSTORE_V_ID:
        if (ctx->id == US_STORE_NO_ID || ctx->answer == US_ANSWER_NONE) {
            return NGX_OK;
        }

        p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }

        value.data = p;
        value.len = us_put_u64(p, ctx->id) - p;
        break;

    case NGX_HTTP_URLSTORE_V_STATUS:
        value.data = (u_char *) us_answer_words[ctx->answer].data;
        value.len = us_answer_words[ctx->answer].len;
        break;

    default: /* NGX_HTTP_URLSTORE_V_URL */
        value = ctx->url;
        break;
    }

    if (value.len == 0) {
        return NGX_OK;
    }

    v->len = value.len;
    v->data = value.data;
    v->valid = 1;
    v->not_found = 0;

    return NGX_OK;
}


/* empty if there is no ?url=, or no canonical URL for it */

static ngx_int_t
ngx_http_urlstore_variable_hash(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p;
    ngx_int_t                  rc;
    us_canon_t                 canon;
    us_verdict_t               verdict;
    us_two_hash_t              h;
    ngx_http_urlstore_zone_t  *zone;

    v->not_found = 1;

    zone = ngx_http_urlstore_variable_zone(r);
    if (zone == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_urlstore_query_url(r, zone, NULL, &canon, &verdict);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED || verdict != US_URL_OK) {
        return NGX_OK;
    }

    h = us_two_hash(&canon);

    p = ngx_pnalloc(r->pool, NGX_INT32_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;
    v->len = ngx_sprintf(p, "%uD", data == NGX_HTTP_URLSTORE_V_SITE ? h.site
                                                                    : h.path)
             - p;
    v->valid = 1;
    v->not_found = 0;
    v->no_cacheable = 0;

    return NGX_OK;
}


static ngx_http_variable_t  ngx_http_urlstore_vars[] = {

    { ngx_string("urlstore_id"), NULL, ngx_http_urlstore_variable,
      NGX_HTTP_URLSTORE_V_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_status"), NULL, ngx_http_urlstore_variable,
      NGX_HTTP_URLSTORE_V_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_url"), NULL, ngx_http_urlstore_variable,
      NGX_HTTP_URLSTORE_V_URL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("urlstore_site_hash"), NULL, ngx_http_urlstore_variable_hash,
      NGX_HTTP_URLSTORE_V_SITE, 0, 0 },

    { ngx_string("urlstore_path_hash"), NULL, ngx_http_urlstore_variable_hash,
      NGX_HTTP_URLSTORE_V_PATH, 0, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_urlstore_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_urlstore_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_store_look(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_zone_t *zone, us_store_item_t *item)
{
    ngx_http_urlstore_refresh(zone);

    if (!us_life_answers(&zone->life, 1)) {
        return NGX_DECLINED;
    }

    ctx->zone = zone;

    ngx_http_urlstore_shard_under(ctx);
    us_store_seen(zone->store, item, 1);

    ctx->lsn = us_store_published(zone->store);
    ctx->tops = 1;
    ctx->top = item->status == US_SEEN ? item->id + 1 : 0;
    ctx->absent = item->status != US_SEEN;

    return ngx_http_urlstore_promised(ctx) ? NGX_OK : NGX_DECLINED;
}
