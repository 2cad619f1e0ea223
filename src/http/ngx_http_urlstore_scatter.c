
/*
 * /add and /seen of a router: a batch divided among shards.
 *
 *     groups of entries --> us_scatter_t                   while the body comes
 *                              |
 *                           round: a call for each lane    the body has ended
 *                              |    and then for its next part
 *                           round ...
 *                              |
 *                           records of the answers --> ngx_http_urlstore_batch
 *
 * What the router refuses itself, and the refs of all items, are notes beside
 * the scatter.
 *
 * A batch keeps to the map that it began with.  If a shard does not own a URL
 * (`moved`) the map is older than the shard's: it is read again, and those URLs
 * are tried again, twice at most.
 */


#include "ngx_http_urlstore_batch.h"
#include "ngx_http_urlstore_route.h"
#include "../cluster/us_scatter.h"


/* how often a batch reads the map again */
#define NGX_HTTP_URLSTORE_REMAPS   2

#define NGX_HTTP_URLSTORE_PATH                                                \
    (sizeof("/seen?summary=1&sites=1") - 1)


/* of an item that has a ref, or that the router refuses */

typedef struct {
    uint32_t                        index;
    us_answer_t                     answer;
    us_refusal_t                    refusal;
    us_str_t                        why;
    us_str_t                        ref;
} ngx_http_urlstore_note_t;


/* a lane of a round, and the call of its part */

typedef struct {
    us_lane_t                      *lane;
    ngx_http_urlstore_call_t        call;
    ngx_http_urlstore_out_t         body;
} ngx_http_urlstore_lane_t;


struct ngx_http_urlstore_scatter_s {
    us_scatter_t                    s;
    size_t                          size;     /* of the texts */
    ngx_array_t                     notes;    /* ngx_http_urlstore_note_t */

    ngx_http_urlstore_lane_t       *lanes;    /* of this round */
    ngx_uint_t                      nlanes;
    ngx_uint_t                      under_way; /* of these */
    ngx_uint_t                      remaps;

    /* the end */
    ngx_http_urlstore_batch_pt      end;
    ngx_uint_t                      noted;
};


static ngx_int_t ngx_http_urlstore_scatter_entry(
    ngx_http_urlstore_batch_t *batch, ngx_http_urlstore_entry_t *e);
static ngx_int_t ngx_http_urlstore_scatter_note(
    ngx_http_urlstore_batch_t *batch, ngx_http_urlstore_entry_t *e);
static ngx_int_t ngx_http_urlstore_scatter_rounds(
    ngx_http_urlstore_batch_t *batch);
static ngx_int_t ngx_http_urlstore_scatter_round(
    ngx_http_urlstore_batch_t *batch);
static void ngx_http_urlstore_scatter_part(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l);
static ngx_int_t ngx_http_urlstore_scatter_body(
    ngx_http_urlstore_batch_t *batch, ngx_http_urlstore_lane_t *l,
    size_t size);
static ngx_int_t ngx_http_urlstore_scatter_path(
    ngx_http_urlstore_batch_t *batch, ngx_http_urlstore_lane_t *l);
static ngx_int_t ngx_http_urlstore_scatter_gather(ngx_http_request_t *r);
static void ngx_http_urlstore_scatter_ended(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l);
static ngx_int_t ngx_http_urlstore_scatter_done(
    ngx_http_urlstore_batch_t *batch);
static ngx_int_t ngx_http_urlstore_scatter_shards(
    ngx_http_urlstore_batch_t *batch);
static ngx_int_t ngx_http_urlstore_scatter_record(
    ngx_http_urlstore_batch_t *batch, ngx_uint_t i);
static void ngx_http_urlstore_scatter_refused(us_refusal_t *refusal,
    us_str_t text);
static us_answer_t ngx_http_urlstore_scatter_answer(
    us_scatter_item_t *item);
static ngx_int_t ngx_http_urlstore_scatter_none(
    ngx_http_urlstore_batch_t *batch);
static void ngx_http_urlstore_scatter_cleanup(void *data);


ngx_int_t
ngx_http_urlstore_scatter_begin(ngx_http_urlstore_batch_t *batch)
{
    ngx_int_t                     rc;
    const us_map_t               *map;
    ngx_http_request_t           *r;
    ngx_pool_cleanup_t           *cln;
    ngx_http_urlstore_scatter_t  *sc;

    r = batch->r;

    map = ngx_http_urlstore_route_map(r, &rc);

    if (map == NULL) {
        return rc;
    }

    if (batch->answers.sites && map->key != US_KEY_SITE) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST,
                                         "\"reason\":\"key\"",
                                         "\"sites\" is not allowed: the "
                                         "cluster divides URLs and not sites "
                                         "(its key is \"url\")");
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_scatter_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    sc = cln->data;
    ngx_memzero(sc, sizeof(ngx_http_urlstore_scatter_t));

    if (us_scatter_init(&sc->s, map, batch->action == NGX_HTTP_URLSTORE_ADD
                                     ? US_SCATTER_ADD : US_SCATTER_SEEN)
        != 0)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_scatter_cleanup;
    sc->s.columns.sites = batch->answers.sites;
    batch->scatter = sc;

    if (ngx_array_init(&sc->notes, r->pool, 1,
                       sizeof(ngx_http_urlstore_note_t))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DECLINED;
}


static void
ngx_http_urlstore_scatter_cleanup(void *data)
{
    ngx_http_urlstore_scatter_t *sc = data;

    us_scatter_free(&sc->s);
}


ngx_int_t
ngx_http_urlstore_scatter_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g)
{
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;

    for ( /* void */ ; g->answered < g->n; g->answered++) {

        if (sc->size > batch->conf->max_reply) {
            return ngx_http_urlstore_fault(batch->r,
                                           NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                           "the answers have more than %uz "
                                           "bytes (urlstore_max_reply): send "
                                           "fewer URLs",
                                           batch->conf->max_reply);
        }

        if (ngx_http_urlstore_scatter_entry(batch, &g->entries[g->answered])
            != NGX_OK)
        {
            return ngx_http_urlstore_fault(batch->r,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR,
                                           "no memory for the batch");
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_scatter_entry(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e)
{
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;

    if ((e->item == NULL || e->ref.len)
        && ngx_http_urlstore_scatter_note(batch, e) != NGX_OK)
    {
        return NGX_ERROR;
    }

    sc->size += sizeof(us_answer_record_t) + e->ref.len
                + (e->item ? e->item->url.len : US_REFUSAL_WORD);

    return (e->item ? us_scatter_url(&sc->s, e->item->url)
                    : us_scatter_local(&sc->s))
           == 0 ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_scatter_note(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_entry_t *e)
{
    u_char                    *p;
    ngx_http_urlstore_note_t  *note;
    u_char                     word[US_REFUSAL_WORD];

    note = ngx_array_push(&batch->scatter->notes);
    if (note == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(note, sizeof(ngx_http_urlstore_note_t));

    note->index = batch->scatter->s.n;
    note->refusal = e->refusal;

    if (e->item == NULL) {
        note->answer = e->refusal.kind == US_INPUT_URL
                       && us_verdict_rejected(e->refusal.verdict)
                       ? US_ANSWER_REJECTED : US_ANSWER_INVALID;
        note->why.len = us_refusal_word(word, &e->refusal) - word;
    }

    p = ngx_pnalloc(batch->r->pool, note->why.len + e->ref.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    note->why.data = p;
    p = ngx_cpymem(p, word, note->why.len);

    note->ref.data = p;
    note->ref.len = e->ref.len;
    ngx_memcpy(p, e->ref.data, e->ref.len);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_scatter(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_batch_pt end)
{
    ngx_int_t  rc;

    batch->scatter->end = end;

    if (batch->end != NGX_DONE && batch->ctx->fault.len == 0) {

        /* nobody will have the answers */

        return end(batch);
    }

    rc = ngx_http_urlstore_scatter_rounds(batch);

    return rc == NGX_AGAIN
           ? ngx_http_urlstore_call_wait(batch->r,
                                         ngx_http_urlstore_scatter_gather)
           : rc;
}


/* rounds until one has calls under way: NGX_AGAIN; or the request's result */

static ngx_int_t
ngx_http_urlstore_scatter_rounds(ngx_http_urlstore_batch_t *batch)
{
    int                           rc;
    const us_map_t               *map;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_scatter_t  *sc;

    ctx = batch->ctx;
    sc = batch->scatter;

    for ( ;; ) {
        rc = us_scatter_round(&sc->s);

        if (rc == 1) {

            if (ngx_http_urlstore_scatter_round(batch) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (sc->under_way) {
                return NGX_AGAIN;
            }

            continue;
        }

        if (rc == -1) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (sc->remaps == NGX_HTTP_URLSTORE_REMAPS
            || us_scatter_moved(&sc->s) == 0)
        {
            return ngx_http_urlstore_scatter_done(batch);
        }

        sc->remaps++;

        /* even if the file was looked at a moment ago */

        ctx->zone->route->cluster->looked = 0;

        map = ngx_http_urlstore_cluster_hold(ctx->zone->route->cluster,
                                             batch->r->pool);

        if (map == NULL || map->version <= sc->s.map->version) {
            return ngx_http_urlstore_scatter_done(batch);
        }

        if (us_scatter_remap(&sc->s, map) != 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
}


static ngx_int_t
ngx_http_urlstore_scatter_round(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_lane_t     *l;
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;

    sc->nlanes = sc->s.nlanes;
    sc->under_way = 0;
    sc->lanes = ngx_pcalloc(batch->r->pool, sc->nlanes
                                            * sizeof(ngx_http_urlstore_lane_t));
    if (sc->lanes == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < sc->nlanes; i++) {
        l = &sc->lanes[i];
        l->lane = &sc->s.lanes[i];

        if (ngx_http_urlstore_scatter_path(batch, l) != NGX_OK
            || ngx_http_urlstore_out_init(&l->body, batch->r->pool, 0)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < sc->nlanes; i++) {
        ngx_http_urlstore_scatter_part(batch, &sc->lanes[i]);
    }

    return NGX_OK;
}


/* what the shard is asked, by the client's options */

static ngx_int_t
ngx_http_urlstore_scatter_path(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l)
{
    ngx_str_t                 *path;
    ngx_http_urlstore_call_t  *call;

    call = &l->call;
    path = &call->path;

    path->data = ngx_pnalloc(batch->r->pool, NGX_HTTP_URLSTORE_PATH);
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    path->len = ngx_sprintf(path->data, "/%s?summary=1%s",
                            l->lane->ask
                            || batch->action == NGX_HTTP_URLSTORE_SEEN
                            ? "seen" : "add",
                            batch->answers.sites ? "&sites=1" : "")
                - path->data;

    call->r = batch->r;
    call->map = batch->scatter->s.map;
    call->shard = l->lane->shard;
    call->method = NGX_HTTP_POST;
    call->reads = (path->data[1] == 's');

    return NGX_OK;
}


/* sends the next part of a lane, if there is one and a call can be made */

static void
ngx_http_urlstore_scatter_part(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l)
{
    size_t                        size;
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;

    for ( ;; ) {
        size = us_scatter_part(&sc->s, l->lane, NGX_HTTP_URLSTORE_CALL_REPLY);

        if (size == 0) {
            return;
        }

        if (ngx_http_urlstore_scatter_body(batch, l, size) == NGX_OK
            && ngx_http_urlstore_call(&l->call) == NGX_OK)
        {
            sc->under_way++;
            return;
        }

        us_scatter_failed(&sc->s, l->lane);
    }
}


static ngx_int_t
ngx_http_urlstore_scatter_body(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l, size_t size)
{
    size_t                    i;
    us_str_t                  url;
    ngx_chain_t              *cl;
    ngx_http_urlstore_out_t  *out;

    out = &l->body;

    /* the pieces of the part before, sent or not, serve this one */

    (void) ngx_http_urlstore_out_take(out, 0);

    for (cl = out->busy; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
    }

    (void) ngx_http_urlstore_out_sent(out);

    for (i = 0; i < l->lane->part; i++) {
        url = batch->scatter->s.items[l->lane->items[l->lane->at + i]].url;

        if (ngx_http_urlstore_out_room(out, url.len + 1) != NGX_OK) {
            return NGX_ERROR;
        }

        out->pos = ngx_cpymem(out->pos, url.data, url.len);
        *out->pos++ = '\n';
    }

    l->call.body = ngx_http_urlstore_out_take(out, 0);
    l->call.length = size;

    return NGX_OK;
}


/* of the request: see ngx_http_urlstore_call_wait() */

static ngx_int_t
ngx_http_urlstore_scatter_gather(ngx_http_request_t *r)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_lane_t     *l;
    ngx_http_urlstore_batch_t    *batch;
    ngx_http_urlstore_scatter_t  *sc;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    batch = ctx->data;
    sc = batch->scatter;

    for (i = 0; i < sc->nlanes; i++) {
        l = &sc->lanes[i];

        if (!ngx_http_urlstore_call_ended(&l->call)) {
            continue;
        }

        sc->under_way--;

        ngx_http_urlstore_scatter_ended(batch, l);
        ngx_http_urlstore_scatter_part(batch, l);
    }

    return sc->under_way ? NGX_AGAIN : ngx_http_urlstore_scatter_rounds(batch);
}


/*
 * The parts of a lane after one that got no reply are not sent: a shard that
 * hangs would do them all later, after their answers were given up.
 */

static void
ngx_http_urlstore_scatter_ended(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_lane_t *l)
{
    size_t                     n, part;
    ngx_http_urlstore_call_t  *call;

    call = &l->call;
    n = 0;

    if (call->status == 0 && !call->refused) {
        l->lane->part = l->lane->n - l->lane->at;
    }

    part = l->lane->part;

    if (call->status == NGX_HTTP_OK) {
        n = us_scatter_reply(&batch->scatter->s, l->lane, call->text);

    } else {
        us_scatter_failed(&batch->scatter->s, l->lane);
    }

    if (n < part) {
        ngx_http_urlstore_call_log(call, part - n);
    }
}


/* all is answered, as far as it will be */

static ngx_int_t
ngx_http_urlstore_scatter_done(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;
    sc->noted = 0;

    for (i = 0; i < sc->s.n; i++) {
        if (ngx_http_urlstore_scatter_record(batch, i) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    batch->ctx->wrote = (batch->answers.counts[US_ANSWER_NEW] != 0
                         || batch->answers.counts[US_ANSWER_DUE] != 0);

    if (batch->end == NGX_DONE && sc->s.n
        && batch->answers.counts[US_ANSWER_UNAVAILABLE] == sc->s.n)
    {
        return ngx_http_urlstore_scatter_none(batch);
    }

    return ngx_http_urlstore_scatter_shards(batch) == NGX_OK
           ? sc->end(batch)
           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_urlstore_scatter_record(ngx_http_urlstore_batch_t *batch,
    ngx_uint_t i)
{
    us_str_t                      text, ref;
    us_scatter_item_t            *item;
    us_answer_record_t            rec;
    ngx_http_urlstore_note_t     *note;
    ngx_http_urlstore_scatter_t  *sc;
    u_char                        word[sizeof("shard:") + NGX_INT32_LEN];

    sc = batch->scatter;
    item = &sc->s.items[i];
    note = sc->notes.elts;

    text.data = word;
    text.len = 0;
    ref = us_string("");

    rec.id = item->id;
    rec.claimed = item->time;
    rec.new_site = (item->site == US_WIRE_SITE_NEW);
    rec.text = US_ANSWER_WHY;
    rec.answer = ngx_http_urlstore_scatter_answer(item);

    if (sc->noted < sc->notes.nelts && note[sc->noted].index == i) {
        note = &note[sc->noted++];
        ref = note->ref;

        if (item->stage == US_STAGE_LOCAL) {
            rec.answer = note->answer;
            text = note->why;

            if (i == 0) {
                batch->refusal = note->refusal;
            }
        }
    }

    switch (rec.answer) {

    case US_ANSWER_UNAVAILABLE:
        rec.id = US_STORE_NO_ID;

        text.len = (item->moved && !item->lost
                    ? ngx_sprintf(word, "moved")
                    : ngx_sprintf(word, "shard:%ui",
                                  (ngx_uint_t) item->number))
                   - word;
        break;

    case US_ANSWER_INVALID:
    case US_ANSWER_REJECTED:

        if (item->stage != US_STAGE_LOCAL) {
            text = item->text;

            if (i == 0) {
                ngx_http_urlstore_scatter_refused(&batch->refusal, text);
            }
        }

        break;

    default:
        text = item->text;
        rec.text = US_ANSWER_URL;
        break;
    }

    if (batch->answers.brief && batch->ctx->format == US_FORMAT_TEXT && i) {
        rec.text = US_ANSWER_NO_TEXT;
        text.len = 0;
    }

    return ngx_http_urlstore_answer_put(batch, &rec, text, ref);
}


/* what a shard refuses and the router does not, by the word in its answer */

static void
ngx_http_urlstore_scatter_refused(us_refusal_t *refusal, us_str_t text)
{
    size_t        len;
    us_verdict_t  v;
    u_char        word[US_REFUSAL_WORD];

    ngx_memzero(refusal, sizeof(us_refusal_t));

    refusal->kind = US_INPUT_URL;

    for (v = US_URL_SCHEME; v <= US_URL_BUDGET; v++) {
        refusal->verdict = v;
        len = us_refusal_word(word, refusal) - word;

        if (v != US_URL_RULE && len == text.len
            && ngx_memcmp(word, text.data, len) == 0)
        {
            return;
        }
    }

    refusal->verdict = US_URL_RULE;
    refusal->rule = text;

    if (text.len > 5 && ngx_memcmp(text.data, "rule:", 5) == 0) {
        refusal->rule.data += 5;
        refusal->rule.len -= 5;
    }
}


static us_answer_t
ngx_http_urlstore_scatter_answer(us_scatter_item_t *item)
{
    switch (item->status) {

    case US_WIRE_NEW:
        return US_ANSWER_NEW;

    case US_WIRE_SEEN:
        return US_ANSWER_SEEN;

    case US_WIRE_DUE:
        return US_ANSWER_DUE;

    case US_WIRE_UNSEEN:
        return US_ANSWER_UNSEEN;

    case US_WIRE_FULL:
        return US_ANSWER_FULL;

    case US_WIRE_INVALID:
        return US_ANSWER_INVALID;

    case US_WIRE_REJECTED:
        return US_ANSWER_REJECTED;

    default:
        return US_ANSWER_UNAVAILABLE;
    }
}


/* next_ids and epochs; of a single item, those of its shard */

static ngx_int_t
ngx_http_urlstore_scatter_shards(ngx_http_urlstore_batch_t *batch)
{
    ngx_uint_t                    i;
    us_answer_shard_t            *a;
    us_scatter_shard_t           *shard;
    ngx_http_urlstore_scatter_t  *sc;

    sc = batch->scatter;

    a = ngx_palloc(batch->r->pool, sc->s.map->nshards
                                   * sizeof(us_answer_shard_t));
    if (a == NULL) {
        return NGX_ERROR;
    }

    batch->answers.shards = a;

    for (i = 0; i < sc->s.map->nshards; i++) {
        shard = &sc->s.shards[i];

        if (!shard->answered) {
            continue;
        }

        a->number = sc->s.map->shards[i].number;
        a->next_id = shard->next_id;
        a->epoch = shard->epoch;

        if (sc->s.n == 1 && a->number == sc->s.items[0].number) {
            batch->answers.next_id = a->next_id;
            batch->answers.epoch = a->epoch;
        }

        a++;
    }

    batch->answers.nshards = a - batch->answers.shards;

    return NGX_OK;
}


/* no shard has answered: the reply is the problem, and not a list of those */

static ngx_int_t
ngx_http_urlstore_scatter_none(ngx_http_urlstore_batch_t *batch)
{
    us_scatter_item_t  *item;
    u_char              members[96];

    item = &batch->scatter->s.items[0];

    if (item->moved && !item->lost) {
        return ngx_http_urlstore_route_absent(batch->r, "\"processed\":0,"
                                              "\"reason\":\"moved\"",
                                              "no shard owns these URLs by "
                                              "the map that this router has");
    }

    ngx_sprintf(members, "\"processed\":0,\"reason\":\"shard:%ui\"%Z",
                (ngx_uint_t) item->number);

    return ngx_http_urlstore_route_absent(batch->r, (char *) members,
                                          "shard %ui does not answer",
                                          (ngx_uint_t) item->number);
}
