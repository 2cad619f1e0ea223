
/*
 * See us_fill.h.
 */


#include "us_cli.h"
#include "us_fill.h"
#include "../us_text.h"

#include <stdio.h>
#include <string.h>


/* refused lines that are printed, and bytes of each */

#define US_FILL_PRINTED  10
#define US_FILL_SHOWN    200


int
us_fill_open(us_fill_t *f, const char *dir, us_profile_t profile,
    us_www_t www, us_embed_conf_t *conf)
{
    char  error[US_EMBED_ERROR];

    f->dir = dir;
    f->time = US_FILL_NOW;
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


/* the first ones are printed: their reasons tell most */

static void
us_fill_refused(us_fill_t *f, us_str_t line, const char *reason)
{
    char  text[4 * US_FILL_SHOWN + 1];

    if (f->refused++ < US_FILL_PRINTED) {
        line.len = line.len > US_FILL_SHOWN ? US_FILL_SHOWN : line.len;
        *us_put_escaped((uint8_t *) text, line) = '\0';
        fprintf(stderr, "urlstore: refused (%s): %s\n", reason, text);
    }
}


int
us_fill_line(us_fill_t *f, us_str_t line)
{
    us_canon_t        canon;
    us_verdict_t      verdict;
    us_store_item_t  *item;

    verdict = us_normalize(f->norm, f->ws, line, NULL, &canon);

    if (verdict != US_URL_OK) {
        us_fill_refused(f, line, us_verdict_name(verdict));
        return US_CLI_DONE;
    }

    item = &f->items[f->n];
    memset(item, 0, sizeof(us_store_item_t));
    memcpy(f->text[f->n], canon.url.href.data, canon.url.href.len);
    item->url = (us_str_t) { canon.url.href.len, f->text[f->n] };
    item->merge = canon.merge;
    f->times[f->n] = f->time;

    return ++f->n == US_STORE_GROUP ? us_fill_flush(f) : US_CLI_DONE;
}


void
us_fill_time(us_fill_t *f, uint64_t time)
{
    f->time = time;
}


/* claims of the group, those that follow each other with one time together */

static int
us_fill_claims(us_fill_t *f, unsigned n)
{
    unsigned          i, k;
    us_store_claim_t  claims[US_STORE_GROUP];

    if (us_store_revisit(us_embed_store(f->embed)) == 0) {
        return 0;
    }

    for (i = 0, k = 0; i < n; i++) {

        if (f->times[i] != US_FILL_NOW && f->items[i].id != US_STORE_NO_ID) {
            claims[k++].id = f->items[i].id;
        }

        if (k && (i + 1 == n || f->times[i + 1] != f->times[i])) {

            if (us_embed_claim(f->embed, claims, k, f->times[i]) == -1) {
                return -1;
            }

            k = 0;
        }
    }

    return 0;
}


int
us_fill_flush(us_fill_t *f)
{
    unsigned  i, n, full;

    n = f->n;
    f->n = 0;
    full = 0;

    if (us_embed_add(f->embed, f->items, n) == -1
        || us_fill_claims(f, n) == -1)
    {
        return us_cli_failed(f->dir, us_embed_error(f->embed));
    }

    for (i = 0; i < n; i++) {
        f->added += (f->items[i].status == US_NEW);
        f->seen += (f->items[i].status == US_SEEN);
        f->refused += (f->items[i].status == US_MOVED);
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
