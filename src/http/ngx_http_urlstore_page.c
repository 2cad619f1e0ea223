
/*
 * GET /              the status page
 * GET /openapi.yaml  the description of the interface
 *
 * Both are files of front/, which front.awk turns into a header at configure
 * time: texts with slots between them,
 *
 *     text  slot  text  slot  ...  text  SLOT_END
 *
 * and a slot is filled by the function that the table below has for it.  What
 * comes from outside (the query, URLs, names) goes through
 * ngx_http_urlstore_page_escaped() only.
 *
 * The page is whole without a script: ?q= is a URL or an id to look up, the
 * answer is a part of the page.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"
#include "ngx_http_urlstore_persist.h"


typedef enum {
    NGX_HTTP_URLSTORE_SLOT_END = 0,
    NGX_HTTP_URLSTORE_SLOT_ZONE,
    NGX_HTTP_URLSTORE_SLOT_STORE,
    NGX_HTTP_URLSTORE_SLOT_HEALTH,
    NGX_HTTP_URLSTORE_SLOT_STATE,
    NGX_HTTP_URLSTORE_SLOT_QUERY,
    NGX_HTTP_URLSTORE_SLOT_RESULT,
    NGX_HTTP_URLSTORE_SLOT_URLS,
    NGX_HTTP_URLSTORE_SLOT_SITES,
    NGX_HTTP_URLSTORE_SLOT_BPU,
    NGX_HTTP_URLSTORE_SLOT_USED,
    NGX_HTTP_URLSTORE_SLOT_SIZE,
    NGX_HTTP_URLSTORE_SLOT_FIT,
    NGX_HTTP_URLSTORE_SLOT_PARTS,
    NGX_HTTP_URLSTORE_SLOT_ANSWERS,
    NGX_HTTP_URLSTORE_SLOT_VERSION
} ngx_http_urlstore_slot_name_t;


typedef struct {
    ngx_str_t                      text;
    ngx_http_urlstore_slot_name_t  slot;
} ngx_http_urlstore_front_t;


#include "ngx_http_urlstore_front.h"


/* what the slots are filled from */

typedef struct {
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_zone_t      *zone;
    ngx_http_urlstore_out_t       *out;
    us_store_info_t                info;
    ngx_str_t                      query;
    ngx_uint_t                     steps;
    ngx_uint_t                     ready;
    ngx_int_t                      rc;        /* of the last write */
} ngx_http_urlstore_page_t;


typedef void (*ngx_http_urlstore_slot_pt)(ngx_http_urlstore_page_t *p);


static ngx_int_t ngx_http_urlstore_page_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_front_send(ngx_http_request_t *r,
    ngx_http_urlstore_front_t *part, ngx_http_urlstore_page_t *p);

static void ngx_http_urlstore_page_zone(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_store(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_health(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_state(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_query(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_result(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_urls(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_sites(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_bpu(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_used(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_size(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_fit(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_parts(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_answers(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_version(ngx_http_urlstore_page_t *p);

static void ngx_http_urlstore_page_by_id(ngx_http_urlstore_page_t *p,
    uint64_t id);
static void ngx_http_urlstore_page_by_url(ngx_http_urlstore_page_t *p);
static void ngx_http_urlstore_page_step(void *data, const char *step,
    us_str_t before, us_str_t after);
static void ngx_http_urlstore_page_status(ngx_http_urlstore_page_t *p,
    const char *status);

static void ngx_http_urlstore_page_text(ngx_http_urlstore_page_t *p,
    const char *text);
static void ngx_http_urlstore_page_bytes(ngx_http_urlstore_page_t *p,
    const u_char *text, size_t len);
static void ngx_http_urlstore_page_escaped(ngx_http_urlstore_page_t *p,
    const u_char *text, size_t len);
static void ngx_http_urlstore_page_number(ngx_http_urlstore_page_t *p,
    uint64_t n);
static void ngx_http_urlstore_page_short(ngx_http_urlstore_page_t *p,
    uint64_t n, const char *unit);


static ngx_http_urlstore_slot_pt  ngx_http_urlstore_page_slots[] = {
    NULL,
    ngx_http_urlstore_page_zone,
    ngx_http_urlstore_page_store,
    ngx_http_urlstore_page_health,
    ngx_http_urlstore_page_state,
    ngx_http_urlstore_page_query,
    ngx_http_urlstore_page_result,
    ngx_http_urlstore_page_urls,
    ngx_http_urlstore_page_sites,
    ngx_http_urlstore_page_bpu,
    ngx_http_urlstore_page_used,
    ngx_http_urlstore_page_size,
    ngx_http_urlstore_page_fit,
    ngx_http_urlstore_page_parts,
    ngx_http_urlstore_page_answers,
    ngx_http_urlstore_page_version
};


ngx_int_t
ngx_http_urlstore_page_handler(ngx_http_request_t *r)
{
    ngx_str_t                      policy;
    ngx_http_urlstore_page_t       p;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (ulcf->endpoint == NULL && r->uri.data[r->uri.len - 1] != '/') {
        return ngx_http_urlstore_page_redirect(r);
    }

    ngx_memzero(&p, sizeof(ngx_http_urlstore_page_t));

    p.ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    p.zone = p.ctx->zone;

    p.ready = ngx_strcmp(ngx_http_urlstore_state_name(p.zone), "ready") == 0;

    us_store_info(p.zone->store, &p.info);

    if (ngx_http_urlstore_arg(r, "q", &p.query) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&p.ctx->type, "text/html; charset=utf-8");

    /* nothing from elsewhere, and no script but the page's own */

    ngx_str_set(&policy, "default-src 'none'; style-src 'unsafe-inline'; "
                         "script-src 'unsafe-inline'; img-src data:; "
                         "connect-src 'self'; form-action 'self'; "
                         "base-uri 'none'; frame-ancestors 'none'");

    if (ngx_http_urlstore_header(r, "Content-Security-Policy", &policy)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_front_send(r, ngx_http_urlstore_front_status,
                                        &p);
}


ngx_int_t
ngx_http_urlstore_openapi_handler(ngx_http_request_t *r)
{
    ngx_http_urlstore_page_t  p;

    ngx_memzero(&p, sizeof(ngx_http_urlstore_page_t));

    p.ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_str_set(&p.ctx->type, "application/yaml");

    return ngx_http_urlstore_front_send(r, ngx_http_urlstore_front_openapi,
                                        &p);
}


/*
 * The page's links are relative, and need the slash behind the location's
 * name.  The answer is relative too: "./NAME/" cannot lead to another host.
 */

static ngx_int_t
ngx_http_urlstore_page_redirect(ngx_http_request_t *r)
{
    u_char                   *name, *end;
    ngx_str_t                 location;
    ngx_http_urlstore_ctx_t  *ctx;

    name = r->unparsed_uri.data;
    end = ngx_strlchr(name, name + r->unparsed_uri.len, '?');

    if (end == NULL) {
        end = name + r->unparsed_uri.len;
    }

    for (name = end; name > r->unparsed_uri.data && name[-1] != '/'; name--) {
        /* void */
    }

    location.data = ngx_pnalloc(r->pool, sizeof(".//?") - 1 + (end - name)
                                         + r->args.len);
    if (location.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    location.len = ngx_sprintf(location.data, "./%*s/%s%V", end - name, name,
                               r->args.len ? "?" : "", &r->args)
                   - location.data;

    if (ngx_http_urlstore_header(r, "Location", &location) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ctx->status = NGX_HTTP_MOVED_PERMANENTLY;

    ngx_str_set(&ctx->type, "text/plain");

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 64) != NGX_OK
        || ngx_http_urlstore_out_printf(&ctx->out, 64, "moved\n") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}


/* p is only looked at by slots; a file without any goes out as it is */

static ngx_int_t
ngx_http_urlstore_front_send(ngx_http_request_t *r,
    ngx_http_urlstore_front_t *part, ngx_http_urlstore_page_t *p)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    p->out = &p->ctx->out;

    p->rc = ngx_http_urlstore_out_init(p->out, r->pool, 32 * 1024);

    for ( ;; ) {
        ngx_http_urlstore_page_bytes(p, part->text.data, part->text.len);

        if (part->slot == NGX_HTTP_URLSTORE_SLOT_END) {
            break;
        }

        ngx_http_urlstore_page_slots[part->slot](p);
        part++;
    }

    if (p->rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}


static void
ngx_http_urlstore_page_zone(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_escaped(p, p->zone->name.data, p->zone->name.len);
}


static void
ngx_http_urlstore_page_store(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_persist_t  *persist;

    persist = p->zone->persist;

    ngx_http_urlstore_page_escaped(p, p->zone->conf.norm.data,
                                   p->zone->conf.norm.len);

    if (persist == NULL) {
        ngx_http_urlstore_page_text(p, "; in memory only: a restart forgets");
        return;
    }

    ngx_http_urlstore_page_text(p, "; kept in ");
    ngx_http_urlstore_page_escaped(p, persist->path.data, persist->path.len);
    ngx_http_urlstore_page_text(p, ", sync=");
    ngx_http_urlstore_page_escaped(p, persist->sync_name.data,
                                   persist->sync_name.len);
}


static void
ngx_http_urlstore_page_health(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_text(p, p->ready && !p->info.full
                                   && ngx_http_urlstore_writable(p->zone)
                                   ? "good" : "bad");
}


static void
ngx_http_urlstore_page_state(ngx_http_urlstore_page_t *p)
{
    ngx_uint_t  done;

    ngx_http_urlstore_page_text(p, ngx_http_urlstore_state_name(p->zone));

    if (!p->ready) {
        done = ngx_http_urlstore_progress(p->zone);

        if (done < 100) {
            p->rc |= ngx_http_urlstore_out_printf(p->out, 64, ", %ui %%",
                                                  done);
        }

    } else if (p->info.full) {
        ngx_http_urlstore_page_text(p, ", full: new URLs are refused");

    } else if (!ngx_http_urlstore_writable(p->zone)) {
        ngx_http_urlstore_page_text(p, " to read only: see the error log");
    }
}


static void
ngx_http_urlstore_page_query(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_escaped(p, p->query.data, p->query.len);
}


static void
ngx_http_urlstore_page_result(ngx_http_urlstore_page_t *p)
{
    uint64_t   id;
    ngx_int_t  rc;

    if (p->query.len == 0) {
        ngx_http_urlstore_page_text(p,
            "<p class=\"hint\">A URL: its canonical form, whether it is "
            "known, its id. A number: the URL of that id. Looking up adds "
            "nothing.</p>");
        return;
    }

    if (!p->ready) {
        ngx_http_urlstore_page_text(p,
            "<p class=\"hint\">The store cannot answer yet.</p>");
        return;
    }

    rc = ngx_http_urlstore_id(p->query.data, p->query.len, &id);

    if (rc == NGX_ERROR && p->zone->conf.lookup) {
        ngx_http_urlstore_page_text(p,
            "<p class=\"hint\">This zone knows URLs by id only "
            "(mode=lookup).</p>");

    } else if (rc == NGX_ERROR) {
        ngx_http_urlstore_page_by_url(p);

    } else {
        ngx_http_urlstore_page_by_id(p, rc == NGX_OK ? id : US_STORE_NO_ID);
    }
}


static void
ngx_http_urlstore_page_by_id(ngx_http_urlstore_page_t *p, uint64_t id)
{
    size_t             len;
    us_store_status_t  status;
    uint8_t            url[US_URL_MAX + 8];

    status = us_store_get(p->zone->store, id, url, &len);

    ngx_http_urlstore_page_text(p, "<dl>");
    ngx_http_urlstore_page_status(p, status == US_OK ? "known"
                                     : status == US_DELETED ? "deleted"
                                     : "unknown");

    if (status == US_OK) {
        ngx_http_urlstore_page_text(p, "<dt>URL</dt><dd id=\"url\">");
        ngx_http_urlstore_page_escaped(p, url, len);
        ngx_http_urlstore_page_text(p, "</dd>");
    }

    ngx_http_urlstore_page_text(p, "</dl>");
}


static void
ngx_http_urlstore_page_by_url(ngx_http_urlstore_page_t *p)
{
    size_t            len;
    us_str_t          in;
    us_canon_t        canon;
    us_verdict_t      verdict;
    us_store_item_t   item;
    uint8_t           url[US_URL_MAX + 8];

    in.data = p->query.data;
    in.len = p->query.len;

    /* the steps come while the text is normalized, the answer above them */

    verdict = us_normalize(p->zone->norm, p->zone->ws, in, NULL, &canon);

    ngx_http_urlstore_page_text(p, "<dl>");

    if (verdict != US_URL_OK) {
        ngx_http_urlstore_page_status(p, us_verdict_rejected(verdict)
                                         ? "rejected" : "invalid");
        ngx_http_urlstore_page_text(p, "<dt>reason</dt><dd>");
        ngx_http_urlstore_page_text(p, us_verdict_name(verdict));

    } else {
        ngx_memzero(&item, sizeof(us_store_item_t));

        item.url = canon.url.href;
        item.merge = canon.merge;

        us_store_seen(p->zone->store, &item, 1);

        if (item.status != US_SEEN) {
            us_store_spell(p->zone->store, &item);
        }

        len = us_store_item_url(&item, url);

        ngx_http_urlstore_page_status(p, item.status == US_SEEN ? "seen"
                                         : "unseen");

        if (item.status == US_SEEN) {
            ngx_http_urlstore_page_text(p, "<dt>id</dt><dd id=\"id\">");
            ngx_http_urlstore_page_number(p, item.id);
            ngx_http_urlstore_page_text(p, "</dd>");
        }

        ngx_http_urlstore_page_text(p, "<dt>URL</dt><dd id=\"url\">");
        ngx_http_urlstore_page_escaped(p, url, len);
    }

    ngx_http_urlstore_page_text(p, "</dd></dl>");

    (void) us_normalize_explain(p->zone->norm, p->zone->ws, in, NULL, &canon,
                                ngx_http_urlstore_page_step, p);

    if (p->steps) {
        ngx_http_urlstore_page_text(p, "</table>");
    }
}


static void
ngx_http_urlstore_page_step(void *data, const char *step, us_str_t before,
    us_str_t after)
{
    ngx_http_urlstore_page_t  *p = data;

    if (p->steps++ == 0) {
        ngx_http_urlstore_page_text(p, "<table class=\"steps\">");
    }

    ngx_http_urlstore_page_text(p, "<tr><th>");
    ngx_http_urlstore_page_text(p, step);
    ngx_http_urlstore_page_text(p, "</th><td><del>");
    ngx_http_urlstore_page_escaped(p, before.data, before.len);
    ngx_http_urlstore_page_text(p, "</del><br>");
    ngx_http_urlstore_page_escaped(p, after.data, after.len);
    ngx_http_urlstore_page_text(p, "</td></tr>");
}


static void
ngx_http_urlstore_page_status(ngx_http_urlstore_page_t *p, const char *status)
{
    ngx_http_urlstore_page_text(p, "<dt>status</dt><dd><span class=\"tag ");
    ngx_http_urlstore_page_text(p, status);
    ngx_http_urlstore_page_text(p, "\">");
    ngx_http_urlstore_page_text(p, status);
    ngx_http_urlstore_page_text(p, "</span></dd>");
}


static void
ngx_http_urlstore_page_urls(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_number(p, p->info.urls);
}


static void
ngx_http_urlstore_page_sites(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_number(p, p->info.sites);
    ngx_http_urlstore_page_text(p, p->info.sites == 1 ? " site" : " sites");

    if (p->info.deleted) {
        ngx_http_urlstore_page_text(p, ", ");
        ngx_http_urlstore_page_number(p, p->info.deleted);
        ngx_http_urlstore_page_text(p, " deleted");
    }
}


static void
ngx_http_urlstore_page_bpu(ngx_http_urlstore_page_t *p)
{
    if (p->info.urls == 0) {
        ngx_http_urlstore_page_text(p, "-");
        return;
    }

    p->rc |= ngx_http_urlstore_out_printf(p->out, 64, "%.1f",
                                          (double) p->info.used
                                          / p->info.urls);
}


static void
ngx_http_urlstore_page_used(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_short(p, p->info.used, "B");
}


static void
ngx_http_urlstore_page_size(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_text(p, "of ");
    ngx_http_urlstore_page_short(p, p->info.size, "B");

    if (p->info.size) {
        p->rc |= ngx_http_urlstore_out_printf(p->out, 64, ", %.1f %%",
                                              100.0 * p->info.used
                                              / p->info.size);
    }
}


static void
ngx_http_urlstore_page_fit(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_short(p, p->info.fit, "");
}


/* a bar and a table; the colours are the page's --p0, --p1, ... */

static void
ngx_http_urlstore_page_parts(ngx_http_urlstore_page_t *p)
{
    ngx_uint_t  i;

    if (p->info.used == 0) {
        return;
    }

    ngx_http_urlstore_page_text(p, "<div class=\"bar\">");

    for (i = 0; i < US_PARTS; i++) {
        p->rc |= ngx_http_urlstore_out_printf(p->out, 128,
                     "<i style=\"width:%.2f%%;background:var(--p%ui)\"></i>",
                     100.0 * p->info.parts[i] / p->info.used, i);
    }

    ngx_http_urlstore_page_text(p, "</div><table>");

    for (i = 0; i < US_PARTS; i++) {
        p->rc |= ngx_http_urlstore_out_printf(p->out, 128,
                     "<tr><td><span class=\"dot\" "
                     "style=\"background:var(--p%ui)\"></span>", i);

        ngx_http_urlstore_page_text(p, us_store_part_name(i));
        ngx_http_urlstore_page_text(p, "</td><td class=\"n\">");
        ngx_http_urlstore_page_short(p, p->info.parts[i], "B");
        ngx_http_urlstore_page_text(p, "</td><td class=\"n\">");

        if (p->info.urls) {
            p->rc |= ngx_http_urlstore_out_printf(p->out, 64, "%.2f a URL",
                                                  (double) p->info.parts[i]
                                                  / p->info.urls);
        }

        ngx_http_urlstore_page_text(p, "</td></tr>");
    }

    ngx_http_urlstore_page_text(p, "</table>");
}


static void
ngx_http_urlstore_page_answers(ngx_http_urlstore_page_t *p)
{
    ngx_uint_t  i;

    static struct {
        ngx_http_urlstore_counter_t   counter;
        const char                   *name;
    }  rows[] = {
        { NGX_HTTP_URLSTORE_N_NEW, "new" },
        { NGX_HTTP_URLSTORE_N_SEEN, "seen" },
        { NGX_HTTP_URLSTORE_N_UNSEEN, "unseen" },
        { NGX_HTTP_URLSTORE_N_INVALID, "invalid" },
        { NGX_HTTP_URLSTORE_N_REJECTED, "rejected by a rule" },
        { NGX_HTTP_URLSTORE_N_FULL, "refused: full" },
        { NGX_HTTP_URLSTORE_N_QUOTA, "requests over quota" },
        { NGX_HTTP_URLSTORE_N_UNREADY, "requests while not ready" }
    };

    ngx_http_urlstore_page_text(p, "<table>");

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ngx_http_urlstore_page_text(p, "<tr><td>");
        ngx_http_urlstore_page_text(p, rows[i].name);
        ngx_http_urlstore_page_text(p, "</td><td class=\"n\">");
        ngx_http_urlstore_page_number(p, ngx_http_urlstore_sum(p->zone,
                                                        rows[i].counter));
        ngx_http_urlstore_page_text(p, "</td></tr>");
    }

    ngx_http_urlstore_page_text(p, "</table>");
}


static void
ngx_http_urlstore_page_version(ngx_http_urlstore_page_t *p)
{
    ngx_http_urlstore_page_text(p, NGINX_VER);
}


static void
ngx_http_urlstore_page_text(ngx_http_urlstore_page_t *p, const char *text)
{
    ngx_http_urlstore_page_bytes(p, (u_char *) text, ngx_strlen(text));
}


static void
ngx_http_urlstore_page_bytes(ngx_http_urlstore_page_t *p, const u_char *text,
    size_t len)
{
    size_t  n;

    for ( /* void */ ; len && p->rc == NGX_OK; text += n, len -= n) {
        n = ngx_min(len, 4096);

        p->rc = ngx_http_urlstore_out_room(p->out, n);

        if (p->rc == NGX_OK) {
            p->out->pos = ngx_cpymem(p->out->pos, text, n);
        }
    }
}


/* what HTML would take for its own is escaped, as in text so in attributes */

static void
ngx_http_urlstore_page_escaped(ngx_http_urlstore_page_t *p,
    const u_char *text, size_t len)
{
    size_t  n;

    for ( /* void */ ; len && p->rc == NGX_OK; text += n, len -= n) {
        n = ngx_min(len, 512);

        p->rc = ngx_http_urlstore_out_room(p->out,
                                           n * (sizeof("&quot;") - 1));

        if (p->rc == NGX_OK) {
            p->out->pos = (u_char *) ngx_escape_html(p->out->pos,
                                                     (u_char *) text, n);
        }
    }
}


/* 2,189,827 */

static void
ngx_http_urlstore_page_number(ngx_http_urlstore_page_t *p, uint64_t n)
{
    u_char  *s, buf[NGX_INT64_LEN + NGX_INT64_LEN / 3];
    size_t   digits;

    s = buf + sizeof(buf);
    digits = 0;

    do {
        if (digits && digits % 3 == 0) {
            *--s = ',';
        }

        *--s = '0' + n % 10;
        n /= 10;
        digits++;
    } while (n);

    ngx_http_urlstore_page_bytes(p, s, buf + sizeof(buf) - s);
}


/* three digits and more, with a prefix of thousands: 51.2 MB */

static void
ngx_http_urlstore_page_short(ngx_http_urlstore_page_t *p, uint64_t n,
    const char *unit)
{
    double       v;
    ngx_uint_t   i;

    static const char  *prefixes[] = { "", "k", "M", "G", "T" };

    v = n;

    for (i = 0; v >= 999.5 && i < 4; i++) {
        v /= 1000;
    }

    p->rc |= ngx_http_urlstore_out_printf(p->out, 64,
                                          i == 0 || v >= 99.95 ? "%.0f %s%s"
                                          : "%.1f %s%s", v, prefixes[i], unit);
}
