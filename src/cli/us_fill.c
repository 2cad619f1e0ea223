
/*
 * See us_fill.h.
 */


#include "us_cli.h"
#include "us_fill.h"


int
us_fill_open(us_fill_t *f, const char *dir, us_profile_t profile,
    us_www_t www, us_embed_conf_t *conf)
{
    char  error[US_EMBED_ERROR];

    f->dir = dir;
    f->norm = us_norm_create(profile);

    if (f->norm) {
        us_norm_set_www(f->norm, www);
    }

    if (f->norm == NULL || us_norm_seal(f->norm) != 0
        || (f->ws = us_norm_ws_create(f->norm)) == NULL)
    {
        return us_cli_failed(f->dir, "out of memory");
    }

    conf->norm = us_norm_signature(f->norm);
    f->embed = us_embed_open(dir, conf, error);

    return f->embed ? US_CLI_DONE : us_cli_failed(f->dir, error);
}


int
us_fill_line(us_fill_t *f, us_str_t line)
{
    us_canon_t        canon;
    us_store_item_t  *item;

    if (us_normalize(f->norm, f->ws, line, NULL, &canon) != US_URL_OK) {
        f->refused++;
        return US_CLI_DONE;
    }

    item = &f->items[f->n];
    memset(item, 0, sizeof(us_store_item_t));
    memcpy(f->text[f->n], canon.url.href.data, canon.url.href.len);
    item->url = (us_str_t) { canon.url.href.len, f->text[f->n] };
    item->merge = canon.merge;

    return ++f->n == US_STORE_GROUP ? us_fill_flush(f) : US_CLI_DONE;
}


int
us_fill_flush(us_fill_t *f)
{
    unsigned  i, n, full;

    n = f->n;
    f->n = 0;
    full = 0;

    if (us_embed_add(f->embed, f->items, n) == -1) {
        return us_cli_failed(f->dir, us_embed_error(f->embed));
    }

    for (i = 0; i < n; i++) {
        f->added += (f->items[i].status == US_NEW);
        f->seen += (f->items[i].status == US_SEEN);
        full |= (f->items[i].status == US_FULL);
    }

    if (full) {
        return us_cli_failed(f->dir, f->full);
    }

    return us_embed_learn(f->embed) == 0
           ? US_CLI_DONE : us_cli_failed(f->dir, us_embed_error(f->embed));
}


int
us_fill_close(us_fill_t *f)
{
    int   code;
    char  error[US_EMBED_ERROR];

    code = US_CLI_DONE;

    if (f->embed && us_embed_close(f->embed, error) == -1) {
        code = us_cli_failed(f->dir, error);
    }

    us_norm_ws_destroy(f->ws);
    us_norm_destroy(f->norm);

    return code;
}
