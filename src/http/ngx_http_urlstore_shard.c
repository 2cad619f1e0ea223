
/*
 * See ngx_http_urlstore_shard.h.
 */


#include "ngx_http_urlstore_shard.h"
#include "../store/us_shard.h"


/* tries to adopt one map, while other workers adopt others */
#define NGX_HTTP_URLSTORE_ADOPTIONS  8


/* the store's map, read once for each map that it adopts */

const us_map_t *
ngx_http_urlstore_shard_map(ngx_http_urlstore_zone_t *zone)
{
    u_char    *text;
    size_t     len;
    uint64_t   number;
    us_map_t  *map;
    char       err[NGX_MAX_ERROR_STR];

    number = us_store_map_number(zone->store);

    if (zone->map && zone->map_number == number) {
        return zone->map;
    }

    if (number == 0) {
        return NULL;
    }

    text = malloc(US_MAP_TEXT_MAX);
    if (text == NULL) {
        return NULL;
    }

    len = us_store_map_text(zone->store, text, &number);
    map = us_map_read((us_str_t) { len, text }, err, sizeof(err));

    free(text);

    if (map == NULL) {
        return NULL;
    }

    us_map_free(zone->map);

    zone->map = map;
    zone->map_number = number;

    return map;
}


void
ngx_http_urlstore_shard_exit(ngx_http_urlstore_zone_t *zone)
{
    us_map_free(zone->map);
    zone->map = NULL;
}


/* whether the map has this shard, with this store at this node */

static ngx_int_t
ngx_http_urlstore_shard_place(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    int         at;
    u_char     *last;
    us_str_t    node;
    ngx_str_t   norm;

    last = (u_char *) err + NGX_MAX_ERROR_STR - 1;
    at = us_map_shard(map, zone->conf.shard);

    if (at == -1) {
        last = ngx_slprintf((u_char *) err, last, "it has no shard %uD",
                            zone->conf.shard);
        goto declined;
    }

    if (ngx_memcmp(map->shards[at].uuid, zone->conf.uuid, 16) != 0) {
        last = ngx_slprintf((u_char *) err, last, "its shard %uD is another "
                            "store, of uuid %*xs; this one has the uuid %*xs",
                            zone->conf.shard, (size_t) 16,
                            map->shards[at].uuid, (size_t) 16,
                            zone->conf.uuid);
        goto declined;
    }

    node = ngx_http_urlstore_str(&zone->node);

    if (us_map_node(map, node) != at) {
        last = ngx_slprintf((u_char *) err, last, "its shard %uD has no node "
                            "\"%V\"", zone->conf.shard, &zone->node);
        goto declined;
    }

    if (!us_norm_same(map->norm, zone->conf.norm)) {
        norm.len = map->norm.len;
        norm.data = (u_char *) map->norm.data;
        last = ngx_slprintf((u_char *) err, last, "its \"norm\" is \"%V\", "
                            "that of the zone \"%*s\"", &norm,
                            zone->conf.norm.len, zone->conf.norm.data);
        goto declined;
    }

    return NGX_OK;

declined:

    *last = '\0';

    return NGX_DECLINED;
}


/*
 * The first map of a store that has URLs.  They may be in any slot, so each one
 * has to be the shard's, or to have been.  Else another shard would deny them.
 */

static ngx_int_t
ngx_http_urlstore_shard_first(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    ngx_uint_t  slot;

    if (us_store_next_id(zone->store) == 0) {
        return NGX_OK;
    }

    for (slot = 0; slot < US_SLOTS; slot++) {
        if (!us_map_has_owner(map, slot, zone->conf.shard)) {
            (void) ngx_sprintf((u_char *) err, "the store has URLs, and slot "
                               "%ui of the map is, and was, not its own: "
                               "begin with a map of this shard alone%Z",
                               slot);
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_shard_check(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    us_life_t       *life;
    uint32_t         shard;
    const us_map_t  *old;

    life = &zone->life;

    /* until it is loaded it has no uuid */

    if (!us_life_admits(life, US_WANTS_BY_ID)) {
        return us_life_state(life) == US_LIFE_STANDBY ? NGX_BUSY : NGX_AGAIN;
    }

    if (ngx_http_urlstore_shard_place(zone, map, err) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (us_life_state(life) == US_LIFE_STANDBY) {
        return NGX_BUSY;
    }

    if (us_life_state(life) != US_LIFE_READY
        || !us_life_writable(&zone->life, NULL)
        || !us_store_is_shard(zone->store, &shard))
    {
        return NGX_AGAIN;
    }

    old = ngx_http_urlstore_shard_map(zone);

    if (old == NULL) {
        return us_store_map_number(zone->store) ? NGX_AGAIN
               : ngx_http_urlstore_shard_first(zone, map, err);
    }

    return us_map_follows(old, map, err, NGX_MAX_ERROR_STR) == 0
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_shard_adopt(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    uint64_t    lsn, number;
    ngx_int_t   rc;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_URLSTORE_ADOPTIONS; i++) {
        rc = ngx_http_urlstore_shard_check(zone, map, err);

        if (rc != NGX_OK) {
            return rc;
        }

        number = zone->map ? zone->map_number : 0;

        if (number && zone->map->version == map->version
            && !us_store_map_stale(zone->store))
        {
            return NGX_OK;
        }

        switch (us_store_adopt(zone->store, map, number, &lsn)) {

        case US_OK:
            us_life_write(&zone->life);
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": shard %uD has adopted map "
                          "version %uL", &zone->name, zone->conf.shard,
                          map->version);
            return NGX_OK;

        case US_MOVED:
            continue;

        case US_FULL:
            ngx_sprintf((u_char *) err, "its %uz bytes do not fit the zone, "
                        "or its ring: a larger SIZE is needed%Z",
                        map->text.len);
            return NGX_DECLINED;

        default: /* US_BUSY */
            return NGX_AGAIN;
        }
    }

    return NGX_AGAIN;
}


void
ngx_http_urlstore_shard_tick(ngx_http_urlstore_zone_t *zone)
{
    char             err[NGX_MAX_ERROR_STR];
    ngx_uint_t       stale;
    const us_map_t  *map;

    if (zone->cluster == NULL || zone->life.conf.follow) {
        return;
    }

    /* the file may be as old as what was restored: one that is posted counts */

    stale = us_store_map_stale(zone->store);
    map = stale ? NULL : ngx_http_urlstore_cluster_map(zone->cluster,
                                                       ngx_cycle->log);

    if (map == NULL && !zone->map_missed && ngx_worker == 0
        && us_life_state(&zone->life) == US_LIFE_READY)
    {
        zone->map_missed = 1;

        if (us_store_map(zone->store)->number == 0) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": shard %uD %s, and answers "
                          "nothing: \"urlstore cluster apply\" posts it",
                          &zone->name, zone->conf.shard, stale
                          ? "was restored, and needs the newest map again"
                          : "has no map so far");
        }
    }

    if (map == NULL || map->version <= zone->map_file
        || map->version <= us_store_map(zone->store)->version)
    {
        return;
    }

    switch (ngx_http_urlstore_shard_adopt(zone, map, err)) {

    case NGX_BUSY:
    case NGX_AGAIN:
        return;

    case NGX_DECLINED:
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the map \"%V\", version %uL, is "
                      "not adopted: %s", &zone->name, &zone->cluster->path,
                      map->version, err);
        break;

    default:
        break;
    }

    /* one message for each version */

    zone->map_file = map->version;
}


static ngx_int_t
ngx_http_urlstore_shard_older(ngx_http_request_t *r)
{
    uint64_t                  version;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    version = us_store_map(ctx->zone->store)->version;

    if (ngx_http_urlstore_untouched(r) != NGX_OK
        || ngx_http_urlstore_retry_after(r, 1) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "\"reason\":\"map\"",
                                     version ? "the shard has map version %uL, "
                                               "the request a newer one"
                                             : "the shard has no map so far",
                                     version);
}


ngx_int_t
ngx_http_urlstore_shard_begin(ngx_http_request_t *r)
{
    ngx_str_t                 *value;
    us_map_tag_t               tag, own;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    if (zone->cluster == NULL) {
        return NGX_DECLINED;
    }

    value = ngx_http_urlstore_header_in(r, "urlstore-map");

    if (value == NULL) {
        return NGX_DECLINED;
    }

    if (us_map_tag_parse(&tag, ngx_http_urlstore_str(value)) != 0) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "invalid header Urlstore-Map; "
                                         "CLUSTER SHARD VERSION DIGEST is "
                                         "expected");
    }

    ctx->tagged = 1;

    if (us_store_map(zone->store)->number == 0) {
        return ngx_http_urlstore_shard_older(r);
    }

    ngx_http_urlstore_tag(zone, &own);

    if (ngx_memcmp(tag.cluster, own.cluster, 16) != 0
        || tag.shard != own.shard
        || (tag.version == own.version
            && ngx_memcmp(tag.digest, own.digest, 16) != 0))
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_MISDIRECTED,
                                         "\"reason\":\"map\"", "this is shard "
                                         "%uD of another cluster or map",
                                         own.shard);
    }

    if (tag.version > own.version) {
        return ngx_http_urlstore_shard_older(r);
    }

    ctx->under_version = tag.version;
    ngx_memcpy(ctx->under_digest, tag.digest, 16);

    return NGX_DECLINED;
}


void
ngx_http_urlstore_shard_under(ngx_http_urlstore_ctx_t *ctx)
{
    if (ctx->zone->cluster) {
        us_store_under(ctx->zone->store, ctx->under_version,
                       ctx->under_digest);
    }
}


ngx_int_t
ngx_http_urlstore_shard_moved(ngx_http_request_t *r, const char *what)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (us_store_map(ctx->zone->store)->number == 0) {
        return ngx_http_urlstore_shard_older(r);
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_URLSTORE_MISDIRECTED,
                                     "\"reason\":\"moved\"", "%s belongs to "
                                     "another shard; GET /cluster shows the "
                                     "map", what);
}


ngx_int_t
ngx_http_urlstore_shard_sites(ngx_http_request_t *r, const char *what)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->zone->cluster == NULL
        || us_store_map(ctx->zone->store)->number == 0
        || us_store_map(ctx->zone->store)->key == US_KEY_SITE)
    {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST,
                                     "\"reason\":\"key\"", "\"%s\" is not "
                                     "allowed: the cluster has key=url, so "
                                     "each shard knows a part of a site",
                                     what);
}


us_store_status_t
ngx_http_urlstore_shard_site(ngx_http_urlstore_ctx_t *ctx, us_str_t key,
    us_store_site_t *site)
{
    us_str_t                   url;
    us_store_t                *store;
    ngx_uint_t                 denies;
    us_store_status_t          status;
    ngx_http_urlstore_zone_t  *zone;
    u_char                     buf[US_SLOT_FRONT];

    zone = ctx->zone;
    store = zone->store;

    if (zone->cluster == NULL) {
        return us_store_site(store, key, site);
    }

    url = us_slot_front(key, buf);

    ngx_http_urlstore_shard_under(ctx);

    /* before the look-up: see store/us_shard.h */

    denies = us_store_denies(store, url);

    if (us_store_slot(store, url) == US_SLOT_FOREIGN) {
        return US_MOVED;
    }

    status = us_store_site(store, key, site);

    return status == US_OK || denies ? status : US_MOVED;
}


ngx_http_urlstore_zone_t *
ngx_http_urlstore_shard_next(ngx_http_request_t *r,
    ngx_http_urlstore_cluster_t *cluster, ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t       **zp, *zone;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);
    zp = umcf->zones.elts;

    while (*i < umcf->zones.nelts) {
        zone = zp[(*i)++];

        if (zone->cluster == cluster
            && zone->life.conf.follow == NULL)
        {
            return zone;
        }
    }

    return NULL;
}
