
/*
 * Directives that shape the normalizer of a zone: rewrite, reject, accept,
 * strip_args, www_except, max_depth, max_args, max_repeat.  NAME is that of a
 * zone, or of a cluster that is routed here.  It must be declared above them:
 * each is compiled into its normalizer at once, so that the message about a bad
 * pattern has the line of the directive.
 */


#include "ngx_http_urlstore_cluster.h"


/* between the zone's name and the last values */

typedef struct {
    ngx_str_t                       name;
    ngx_str_t                       host;
} ngx_http_urlstore_rule_t;


/* answers show it: a word */

static ngx_int_t
ngx_http_urlstore_opt_rule(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value)
{
    return strspn((char *) value->data, "abcdefghijklmnopqrstuvwxyz"
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == value->len
           ? ngx_http_urlstore_opt_text(cf, conf, opt, value) : NGX_ERROR;
}


/* the first of them is for urlstore_rewrite only */

static ngx_http_urlstore_option_t  ngx_http_urlstore_rule_options[] = {

    { ngx_string("host"), ngx_http_urlstore_opt_text,
      offsetof(ngx_http_urlstore_rule_t, host), 1, NGX_MAX_UINT32_VALUE, NULL,
      NULL, "a glob" },

    { ngx_string("name"), ngx_http_urlstore_opt_rule,
      offsetof(ngx_http_urlstore_rule_t, name), 1, 64, NULL, NULL,
      "up to 64 letters, digits, \"_\", \".\" and \"-\"" },

    { ngx_null_string, NULL, 0, 0, 0, NULL, NULL, NULL }
};


static ngx_http_urlstore_zone_t *
ngx_http_urlstore_rule_zone(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_cluster_t    *cluster;
    ngx_http_urlstore_main_conf_t  *umcf;

    zone = ngx_http_urlstore_zone_find(cf, name);

    if (zone == NULL || zone->shm_zone) {
        return zone;
    }

    cluster = ngx_http_urlstore_cluster_find(cf, name);

    if (cluster == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\" must be declared above "
                           "this directive", name);
        return NULL;
    }

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    return umcf->route(cf, cluster);
}


/*
 * urlstore_rewrite NAME [name=WORD] [host=GLOB] REGEX REPLACEMENT;
 * urlstore_reject NAME [name=WORD] REGEX; and so urlstore_accept
 */

char *
ngx_http_urlstore_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    int                        rc;
    us_str_t                   name, regex;
    ngx_str_t                 *args, *value;
    ngx_uint_t                 rewrites, last;
    us_rule_error_t            err;
    ngx_http_urlstore_rule_t   rule;
    ngx_http_urlstore_zone_t  *zone;

    ngx_memzero(&rule, sizeof(ngx_http_urlstore_rule_t));

    args = cf->args->elts;
    rewrites = ngx_strcmp(cmd->name.data, "urlstore_rewrite") == 0;

    last = rewrites ? 2 : 1;

    zone = ngx_http_urlstore_rule_zone(cf, &args[1]);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    cf->args->nelts -= last;
    value = args + cf->args->nelts;

    if (ngx_http_urlstore_options_read(cf, &rule, 2,
                                       ngx_http_urlstore_rule_options
                                       + !rewrites)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    name = ngx_http_urlstore_str(&rule.name);
    regex = ngx_http_urlstore_str(&value[0]);

    if (rewrites) {
        rc = us_norm_add_rewrite(zone->norm, name,
                                 ngx_http_urlstore_str(&rule.host), regex,
                                 ngx_http_urlstore_str(&value[1]), &err);

    } else if (ngx_strcmp(cmd->name.data, "urlstore_reject") == 0) {
        rc = us_norm_add_reject(zone->norm, name, regex, &err);

    } else {
        rc = us_norm_add_accept(zone->norm, name, regex, &err);
    }

    if (rc != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" of zone \"%V\": %s in \"%V\"", &args[0],
                           &args[1], err.text, &value[0]);
        return NGX_CONF_ERROR;
    }

    zone->rules++;

    return NGX_CONF_OK;
}


static char *
ngx_http_urlstore_rule_value(ngx_conf_t *cf, ngx_str_t *value,
    const char *allowed)
{
    ngx_str_t  *args;

    args = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" of \"%V\": %s is expected",
                       value, &args[0], allowed);

    return NGX_CONF_ERROR;
}


/* urlstore_strip_args NAME GLOB ...; urlstore_www_except NAME HOST ...; */

char *
ngx_http_urlstore_rule_words(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    int                        rc;
    us_str_t                   word;
    ngx_str_t                 *value;
    ngx_uint_t                 i, strips;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;
    strips = ngx_strcmp(cmd->name.data, "urlstore_strip_args") == 0;

    zone = ngx_http_urlstore_rule_zone(cf, &value[1]);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        word = ngx_http_urlstore_str(&value[i]);

        /* a glob of a host would match nothing */

        rc = strips ? us_norm_add_strip_arg(zone->norm, word)
             : word.len && strcspn((char *) word.data, "*?/ ") == word.len
             ? us_norm_www_except(zone->norm, word) : -1;

        if (rc != 0) {
            return ngx_http_urlstore_rule_value(cf, &value[i], strips
                                                ? "the name of an argument or "
                                                  "a glob" : "a host");
        }

        zone->rules++;
    }

    return NGX_CONF_OK;
}


/* urlstore_max_depth | urlstore_max_args | urlstore_max_repeat NAME N; */

char *
ngx_http_urlstore_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    int                        i;
    ngx_int_t                  n;
    ngx_str_t                 *value;
    ngx_http_urlstore_zone_t  *zone;

    static void  (*const  set[])(us_norm_t *n, unsigned max) = {
        us_norm_set_max_depth, us_norm_set_max_args, us_norm_set_max_repeat
    };

    value = cf->args->elts;

    zone = ngx_http_urlstore_rule_zone(cf, &value[1]);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    n = ngx_atoi(value[2].data, value[2].len);

    if (n == NGX_ERROR || n > US_URL_MAX) {
        return ngx_http_urlstore_rule_value(cf, &value[2], "0 to 8192, where "
                                            "0 is no limit,");
    }

    i = us_word_number("urlstore_max_depth urlstore_max_args "
                       "urlstore_max_repeat",
                       ngx_http_urlstore_str(&cmd->name));

    if (zone->limits & ((ngx_uint_t) 1 << i)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate \"%V\" of urlstore_zone \"%V\"",
                           &cmd->name, &zone->name);
        return NGX_CONF_ERROR;
    }

    zone->limits |= (ngx_uint_t) 1 << i;
    zone->rules++;

    set[i](zone->norm, n);

    return NGX_CONF_OK;
}
