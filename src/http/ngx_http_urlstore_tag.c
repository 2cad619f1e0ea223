
/*
 * The header Urlstore-Map of a reply: the map that the shard has adopted.
 */


#include "ngx_http_urlstore_shard.h"
#include "../store/us_shard.h"


void
ngx_http_urlstore_tag(ngx_http_urlstore_zone_t *zone, us_map_tag_t *tag)
{
    const us_store_map_t  *map;

    map = us_store_map(zone->store);

    ngx_memcpy(tag->cluster, map->cluster, 16);
    ngx_memcpy(tag->digest, map->digest, 16);
    tag->shard = zone->conf.shard;
    tag->version = map->version;
}


ngx_int_t
ngx_http_urlstore_tag_header(ngx_http_request_t *r, ngx_str_t *value)
{
    us_map_tag_t              tag;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (!ctx->tagged || us_store_map(ctx->zone->store)->number == 0) {
        return NGX_DECLINED;
    }

    value->data = ngx_pnalloc(r->pool, US_MAP_TAG_LEN);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    ngx_http_urlstore_tag(ctx->zone, &tag);
    value->len = us_map_tag_put(value->data, &tag) - value->data;

    return NGX_OK;
}
