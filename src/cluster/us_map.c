
/*
 * Maps: their text to a us_map_t, what only the whole map shows, the canonical
 * text, look-ups, and which map may follow which.  See us_map.h for the format.
 *
 * A reader of a value is called at its first event.  What a member must be is
 * in a table, whose row the message about any other value has.
 *
 * Slots hold the numbers of shards until all members were read, since "slots"
 * may come before "shards"; us_map_check() makes them indexes.
 */


#include "us_map.h"
#include "../input/us_json.h"
#include "../url/us_normalize.h"
#include "../us_hash.h"
#include "../us_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>


#define US_MAP_STRING    256              /* bytes of the longest string */
#define US_MAP_SHOWN     48               /* of a value in a message */
#define US_MAP_QUOTED    (us_json_quoted_max(US_MAP_SHOWN) + 4)

/* bytes of the canonical text: the longest lines, without norm */

#define US_MAP_HEAD      256
#define US_MAP_SHARD     (80 + US_MAP_NODES * (US_MAP_NODE_LEN + 4))
#define US_MAP_RANGE     (24 + 6 * (1 + US_MAP_FORMER))


typedef struct {
    us_map_t         *map;
    us_shard_t       *shard;              /* NULL: between shards */
    uint8_t          *name;               /* the free rest of map->names */

    us_json_t         json;
    us_json_event_t   event;              /* the last one */
    const uint8_t    *counted;            /* newlines before it are in line */
    unsigned          line;               /* 0: the text as a whole */

    char             *err;                /* "": nothing is wrong so far */
    size_t            errlen;
} us_map_reader_t;


/* read: 0; 1: the value is not what it must be; -1: there is a message */

typedef struct {
    const char       *name;
    us_json_event_t   event;
    int             (*read)(us_map_reader_t *r);
    const char       *must;
} us_map_member_t;


/* writes a message; returns -1 */

__attribute__((format(printf, 3, 4)))
static int
us_map_refuse(char *err, size_t errlen, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(err, errlen, fmt, args);
    va_end(args);

    return -1;
}


/* digits without leading zeros; 0, or -1: no number, or greater than max */

static int
us_map_number(us_str_t text, uint64_t max, uint64_t *n)
{
    size_t  i;

    i = 0;

    return (text.len > 1 && text.data[0] == '0')
           || us_read_u64(text, &i, max, n) == -1 || i < text.len ? -1 : 0;
}


/* 32 hex digits, or 8-4-4-4-12 of them; 0, or -1 */

static int
us_map_uuid(us_str_t text, uint8_t uuid[16])
{
    int       digit;
    size_t    i;
    unsigned  n;

    if (text.len != 32 && text.len != 36) {
        return -1;
    }

    for (i = 0, n = 0; i < text.len; i++) {
        if (text.len == 36 && (i == 8 || i == 13 || i == 18 || i == 23)) {
            if (text.data[i] != '-') {
                return -1;
            }

            continue;
        }

        digit = us_hex_value(text.data[i]);

        if (digit == -1) {
            return -1;
        }

        uuid[n / 2] = (uint8_t) (n % 2 ? uuid[n / 2] | digit : digit << 4);
        n++;
    }

    return 0;
}


/* whether it is the name of an upstream, which nginx compares without case */

static int
us_map_is_node(us_str_t text)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if ((c >= 'a' && c <= 'z')
            || (i && ((c >= '0' && c <= '9') || c == '_' || c == '-'
                      || c == '.')))
        {
            continue;
        }

        return 0;
    }

    return text.len > 0 && text.len <= US_MAP_NODE_LEN;
}


static int
us_map_by_number(const void *a, const void *b)
{
    const us_shard_t *x = a;
    const us_shard_t *y = b;

    return (x->number > y->number) - (x->number < y->number);
}


/*
 * Puts map->shards in the order of their numbers.  Returns 0, or -1 with a
 * message in err: a number is there twice.
 */

static int
us_map_sort(us_map_t *map, char *err, size_t errlen)
{
    uint32_t  i;

    qsort(map->shards, map->nshards, sizeof(us_shard_t), us_map_by_number);

    for (i = 1; i < map->nshards; i++) {
        if (map->shards[i].number == map->shards[i - 1].number) {
            return us_map_refuse(err, errlen, "shard %u is there twice",
                                 map->shards[i].number);
        }
    }

    return 0;
}


/*
 * Makes map->text and map->digest from the rest.  Returns 0, or -1: out of
 * memory.  The text can be longer than US_MAP_TEXT_MAX.
 */

static int
us_map_write(us_map_t *map)
{
    unsigned             first, last;
    uint8_t             *text, *p;
    uint64_t             h[2];
    uint32_t             i, n;
    us_hash128_t         hash;
    const us_shard_t    *s;
    const us_owners_t   *o;

    static const uint8_t  key[16];

    text = malloc(US_MAP_HEAD + map->norm.len + map->nshards * US_MAP_SHARD
                  + US_SLOTS * US_MAP_RANGE);

    if (text == NULL) {
        return -1;
    }

    p = us_put(text, "{\n  \"cluster\": \"");
    p = us_put_hex(p, map->cluster, 16);
    p = us_put(p, "\",\n  \"version\": ");
    p = us_put_u64(p, map->version);
    p = us_put(p, ",\n  \"norm\": \"");
    p = us_put_str(p, map->norm);
    p = us_put(p, "\",\n  \"key\": \"");
    p = us_put(p, map->key == US_KEY_URL ? "url" : "site");
    p = us_put(p, "\",\n  \"shards\": {\n");

    for (i = 0; i < map->nshards; i++) {
        s = &map->shards[i];
        p = us_put(p, i ? ",\n    \"" : "    \"");
        p = us_put_u64(p, s->number);
        p = us_put(p, "\": {\"uuid\": \"");
        p = us_put_hex(p, s->uuid, 16);
        p = us_put(p, "\", \"nodes\": [");

        for (n = 0; n < s->nnodes; n++) {
            p = us_put(p, n ? ", \"" : "\"");
            p = us_put_str(p, s->nodes[n]);
            *p++ = '"';
        }

        p = us_put(p, "]}");
    }

    p = us_put(p, "\n  },\n  \"slots\": [\n");

    for (first = 0; first < US_SLOTS; first = last + 1) {
        o = &map->slots[first];
        last = first;

        while (last + 1 < US_SLOTS
               && o->n == map->slots[last + 1].n
               && memcmp(o->shards, map->slots[last + 1].shards,
                         o->n * sizeof(o->shards[0])) == 0)
        {
            last++;
        }

        p = us_put(p, first ? ",\n    [\"" : "    [\"");
        p = us_put_u64(p, first);

        if (last > first) {
            *p++ = '-';
            p = us_put_u64(p, last);
        }

        *p++ = '"';

        for (n = 0; n < o->n; n++) {
            p = us_put(p, ", ");
            p = us_put_u64(p, map->shards[o->shards[n]].number);
        }

        *p++ = ']';
    }

    p = us_put(p, "\n  ]\n}\n");
    map->text = (us_str_t) { p - text, text };

    /*
     * SipHash without a secret: it tells maps apart that people made, and
     * protects from no forger, who could post a map of a higher version.
     */

    us_hash128_init(&hash, key);
    us_hash128_add(&hash, map->text.data, map->text.len);
    us_hash128_end(&hash, h);

    for (i = 0; i < 16; i++) {
        map->digest[i] = (uint8_t) (h[i / 8] >> (56 - i % 8 * 8));
    }

    return 0;
}


/* the first message stays: after US_JSON_ERROR nothing is what it must be */

static int
us_map_fail(us_map_reader_t *r, const char *fmt, ...)
{
    size_t   n;
    va_list  args;

    if (r->err[0]) {
        return -1;
    }

    n = 0;

    if (r->line) {
        n = (size_t) snprintf(r->err, r->errlen, "line %u: ", r->line);
    }

    if (n < r->errlen) {
        va_start(args, fmt);
        (void) vsnprintf(r->err + n, r->errlen - n, fmt, args);
        va_end(args);
    }

    return -1;
}


/* US_JSON_ERROR: there is a message */

static us_json_event_t
us_map_next(us_map_reader_t *r)
{
    r->event = us_json_next(&r->json);

    for ( /* void */ ; r->counted < r->json.p; r->counted++) {
        r->line += (*r->counted == '\n');
    }

    if (r->event == US_JSON_ERROR) {
        us_map_fail(r, "%s", r->json.error);

    } else if (r->event != US_JSON_END && r->json.cut) {
        us_map_fail(r, "a string has more than %d bytes", US_MAP_STRING);
        r->event = US_JSON_ERROR;
    }

    return r->event;
}


/*
 * The last value as a message shows it: a string in quotes and escaped,
 * shortened.  buf has US_MAP_QUOTED bytes.
 */

static const char *
us_map_show(us_map_reader_t *r, char *buf)
{
    uint8_t   *p;
    us_str_t   value;

    static const char  *const words[] = {
        [US_JSON_OBJECT] = "an object", [US_JSON_ARRAY] = "an array",
        [US_JSON_ARRAY_END] = "nothing", [US_JSON_TRUE] = "true",
        [US_JSON_FALSE] = "false", [US_JSON_NULL] = "null",
        [US_JSON_ERROR] = ""
    };

    if (r->event != US_JSON_KEY && r->event != US_JSON_STRING
        && r->event != US_JSON_NUM)
    {
        return words[r->event];
    }

    value = r->json.text;
    value.len = value.len > US_MAP_SHOWN ? US_MAP_SHOWN : value.len;

    p = r->event == US_JSON_NUM ? us_put_str((uint8_t *) buf, value)
                                : us_json_quote_bytes((uint8_t *) buf, value);
    p = us_put(p, value.len < r->json.text.len ? "..." : "");
    *p = '\0';

    return buf;
}


/* the members of an object: each once */

static int
us_map_object(us_map_reader_t *r, const us_map_member_t *members)
{
    int                     rc;
    char                    shown[US_MAP_QUOTED], of[32];
    unsigned                have;
    const us_map_member_t  *m;

    have = 0;
    of[0] = '\0';

    if (r->shard) {
        (void) snprintf(of, sizeof(of), " of shard %u", r->shard->number);
    }

    while (us_map_next(r) == US_JSON_KEY) {

        for (m = members; m->name; m++) {
            if (us_str_compare(r->json.text, us_str_of(m->name)) == 0) {
                break;
            }
        }

        if (m->name == NULL) {
            return us_map_fail(r, "unknown member %s%s; %s",
                               us_map_show(r, shown), of, m->must);
        }

        if (have & 1u << (m - members)) {
            return us_map_fail(r, "\"%s\"%s is there twice", m->name, of);
        }

        have |= 1u << (m - members);
        rc = us_map_next(r) == m->event ? m->read(r) : 1;

        if (rc) {
            return rc == -1 ? -1
                   : us_map_fail(r, "\"%s\"%s is %s, but must be %s", m->name,
                                 of, us_map_show(r, shown), m->must);
        }
    }

    for (m = members; m->name; m++) {
        if (!(have & 1u << (m - members))) {
            return us_map_fail(r, "%s has no \"%s\"",
                               r->shard ? of + sizeof(" of ") - 1 : "the map",
                               m->name);
        }
    }

    return r->event == US_JSON_OBJECT_END ? 0 : -1;
}


static int
us_map_cluster(us_map_reader_t *r)
{
    return us_map_uuid(r->json.text, r->map->cluster) == -1;
}


static int
us_map_version(us_map_reader_t *r)
{
    return us_map_number(r->json.text, US_MAP_VERSION_MAX, &r->map->version)
           == -1 || r->map->version == 0;
}


static us_str_t
us_map_name(us_map_reader_t *r)
{
    us_str_t  name;

    name.data = r->name;
    name.len = r->json.text.len;
    r->name = mempcpy(r->name, r->json.text.data, name.len);

    return name;
}


/* what needs no escapes in JSON */

static int
us_map_norm(us_map_reader_t *r)
{
    size_t    i;
    us_str_t  text;

    text = r->json.text;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~' || text.data[i] == '"'
            || text.data[i] == '\\')
        {
            return 1;
        }
    }

    r->map->norm = us_map_name(r);

    return text.len == 0 || text.len > US_MAP_NORM_LEN;
}


static int
us_map_key(us_map_reader_t *r)
{
    int  site;

    site = us_str_compare(r->json.text, us_string("site")) == 0;
    r->map->key = site ? US_KEY_SITE : US_KEY_URL;

    return !site && us_str_compare(r->json.text, us_string("url")) != 0;
}


static int
us_map_shard_uuid(us_map_reader_t *r)
{
    return us_map_uuid(r->json.text, r->shard->uuid) == -1;
}


static int
us_map_nodes(us_map_reader_t *r)
{
    char         shown[US_MAP_QUOTED];
    us_shard_t  *s;

    s = r->shard;

    while (us_map_next(r) != US_JSON_ARRAY_END) {

        if (r->event != US_JSON_STRING || !us_map_is_node(r->json.text)) {
            return us_map_fail(r, "%s is no name of a node: a string of 1 to "
                               "%d characters a-z, 0-9, \"_\", \"-\" and "
                               "\".\", the first a letter",
                               us_map_show(r, shown), US_MAP_NODE_LEN);
        }

        if (s->nnodes == US_MAP_NODES) {
            return us_map_fail(r, "shard %u has more than %d nodes", s->number,
                               US_MAP_NODES);
        }

        s->nodes[s->nnodes++] = us_map_name(r);
    }

    return s->nnodes ? 0 : us_map_fail(r, "shard %u has no node", s->number);
}


static const us_map_member_t  us_map_shard_members[] = {
    { "uuid", US_JSON_STRING, us_map_shard_uuid, "a string of 32 hex digits" },
    { "nodes", US_JSON_ARRAY, us_map_nodes, "an array" },
    { NULL, US_JSON_END, NULL, "a shard has uuid and nodes" }
};


static int
us_map_shards(us_map_reader_t *r)
{
    char       shown[US_MAP_QUOTED];
    uint64_t   number;
    us_map_t  *map;

    map = r->map;

    while (us_map_next(r) == US_JSON_KEY) {

        if (us_map_number(r->json.text, US_SHARDS - 1, &number) == -1) {
            return us_map_fail(r, "%s is no number of a shard: 0 to %d",
                               us_map_show(r, shown), US_SHARDS - 1);
        }

        /* more numbers than there are must have one twice */

        if (map->nshards == US_SHARDS) {
            return us_map_fail(r, "more than %d shards", US_SHARDS);
        }

        r->shard = &map->shards[map->nshards++];
        r->shard->number = (uint32_t) number;

        if (us_map_next(r) != US_JSON_OBJECT) {
            return us_map_fail(r, "shard %u must be an object",
                               r->shard->number);
        }

        if (us_map_object(r, us_map_shard_members) == -1) {
            return -1;
        }
    }

    r->shard = NULL;

    return r->event == US_JSON_OBJECT_END ? 0 : -1;
}


static int
us_map_slots(us_map_reader_t *r)
{
    char            shown[US_MAP_QUOTED];
    unsigned        i;
    us_str_t        from, to;
    uint64_t        number, slot, first, last;
    us_owners_t     o;

    while (us_map_next(r) != US_JSON_ARRAY_END) {

        if (r->event != US_JSON_ARRAY) {
            return us_map_fail(r, "an element of \"slots\" must be an array, "
                               "such as [\"0-1023\", 0]");
        }

        /* an element of "slots": "17" or "0-1023", and owners */

        us_map_next(r);
        to = r->json.text;

        if (r->event == US_JSON_STRING && !us_str_cut(&to, '-', &from)) {
            to = from;
        }

        if (r->event != US_JSON_STRING
            || us_map_number(from, US_SLOTS - 1, &first) == -1
            || us_map_number(to, US_SLOTS - 1, &last) == -1 || first > last)
        {
            return us_map_fail(r, "%s is no slot and no range of slots: a "
                               "string such as \"17\" or \"0-%d\"",
                               us_map_show(r, shown), US_SLOTS - 1);
        }

        memset(&o, 0, sizeof(us_owners_t));
        slot = first;

        for (o.n = 0; us_map_next(r) != US_JSON_ARRAY_END; o.n++) {

            if (r->event != US_JSON_NUM
                || us_map_number(r->json.text, US_SHARDS - 1, &number) == -1)
            {
                return us_map_fail(r, "%s is no number of a shard: 0 to %d",
                                   us_map_show(r, shown), US_SHARDS - 1);
            }

            if (o.n > US_MAP_FORMER) {
                return us_map_fail(r, "slot %u has more than %d former owners",
                                   (unsigned) slot, US_MAP_FORMER);
            }

            for (i = 0; i < o.n; i++) {
                if (number == o.shards[i]) {
                    return us_map_fail(r, "slot %u has shard %u twice",
                                       (unsigned) slot, (unsigned) number);
                }
            }

            o.shards[o.n] = (uint16_t) number;
        }

        if (o.n == 0) {
            return us_map_fail(r, "a range of slots has no owner; an element "
                               "is such as [\"0-1023\", 0]");
        }

        for ( /* void */ ; slot <= last; slot++) {

            if (r->map->slots[slot].n) {
                return us_map_fail(r, "slot %u is there twice",
                                   (unsigned) slot);
            }

            r->map->slots[slot] = o;
        }
    }

    return 0;
}


static const us_map_member_t  us_map_members[] = {
    { "cluster", US_JSON_STRING, us_map_cluster, "a string of 32 hex digits" },
    { "version", US_JSON_NUM, us_map_version,
      "a number from 1 to 9007199254740991" },
    { "norm", US_JSON_STRING, us_map_norm, "the \"normalization\" that GET "
      "/stats reports: visible ASCII without quotes, at most 127 bytes" },
    { "key", US_JSON_STRING, us_map_key, "\"url\" or \"site\"" },
    { "shards", US_JSON_OBJECT, us_map_shards, "an object" },
    { "slots", US_JSON_ARRAY, us_map_slots, "an array" },
    { NULL, US_JSON_END, NULL, "a map has cluster, version, norm, key, shards "
      "and slots" }
};


/* what is the same, by its address: the order of the shards */

static int
us_map_by_text(const void *a, const void *b)
{
    int              rc;
    const us_str_t  *x = a;
    const us_str_t  *y = b;

    rc = us_str_compare(*x, *y);

    return rc ? rc : (x->data > y->data) - (x->data < y->data);
}


/* sorts them; the first of two that are the same, or NULL */

static const us_str_t *
us_map_twice(us_str_t *s, size_t n)
{
    size_t  i;

    qsort(s, n, sizeof(us_str_t), us_map_by_text);

    for (i = 1; i < n; i++) {
        if (us_str_compare(s[i - 1], s[i]) == 0) {
            return &s[i - 1];
        }
    }

    return NULL;
}


/*
 * What only the whole map shows: no shard, store or node is there twice, and
 * each slot has owners that are there.  Sorts map->shards, and makes indexes of
 * the numbers in map->slots.  Returns 0, or -1 with a message in err.
 */

static int
us_map_check(us_map_t *map, char *err, size_t errlen)
{
    int              rc, index;
    unsigned         slot, n;
    uint32_t         i;
    us_str_t        *names;
    us_owners_t     *o;
    us_shard_t      *s;
    const us_str_t  *twice;

    if (map->nshards == 0) {
        return us_map_refuse(err, errlen, "the map has no shard");
    }

    if (us_map_sort(map, err, errlen) == -1) {
        return -1;
    }

    names = malloc(map->nshards * US_MAP_NODES * sizeof(us_str_t));

    if (names == NULL) {
        return us_map_refuse(err, errlen, "out of memory");
    }

    for (i = 0; i < map->nshards; i++) {
        names[i] = (us_str_t) { 16, map->shards[i].uuid };
    }

    rc = 0;
    twice = us_map_twice(names, map->nshards);

    if (twice) {
        for (i = 0; map->shards[i].uuid != twice[0].data; i++) { /* void */ }
        for (n = i; map->shards[n].uuid != twice[1].data; n++) { /* void */ }

        rc = us_map_refuse(err, errlen, "shards %u and %u have one uuid; each "
                           "has a store of its own", map->shards[i].number,
                           map->shards[n].number);
    }

    for (i = 0, n = 0; i < map->nshards; i++) {
        s = &map->shards[i];
        memcpy(&names[n], s->nodes, s->nnodes * sizeof(us_str_t));
        n += s->nnodes;
    }

    twice = us_map_twice(names, n);

    if (rc == 0 && twice) {
        rc = us_map_refuse(err, errlen, "node \"%.*s\" is there twice",
                           (int) twice->len, twice->data);
    }

    free(names);

    for (slot = 0; slot < US_SLOTS && rc == 0; slot++) {
        o = &map->slots[slot];

        if (o->n == 0) {
            return us_map_refuse(err, errlen, "slot %u has no owner", slot);
        }

        for (n = 0; n < o->n; n++) {
            index = us_map_shard(map, o->shards[n]);

            if (index == -1) {
                return us_map_refuse(err, errlen, "slot %u has shard %u, which "
                                     "\"shards\" lacks", slot,
                                     (unsigned) o->shards[n]);
            }

            o->shards[n] = (uint16_t) index;
        }
    }

    return rc;
}


us_map_t *
us_map_read(us_str_t text, char *err, size_t errlen)
{
    us_map_t         *map;
    us_shard_t       *shards;
    us_map_reader_t   r;

    memset(&r, 0, sizeof(us_map_reader_t));
    r.err = err;
    r.errlen = errlen;
    err[0] = '\0';

    if (text.len > US_MAP_TEXT_MAX) {
        us_map_refuse(err, errlen, "the map has %zu bytes, at most %d are "
                      "allowed", text.len, US_MAP_TEXT_MAX);
        return NULL;
    }

    map = calloc(1, sizeof(us_map_t));

    if (map) {
        /* no string gets longer when it is decoded */

        map->names = malloc(text.len + 1);
        map->shards = calloc(US_SHARDS, sizeof(us_shard_t));
    }

    if (map == NULL || map->names == NULL || map->shards == NULL) {
        us_map_refuse(err, errlen, "out of memory");
        us_map_free(map);
        return NULL;
    }

    r.map = map;
    r.name = map->names;
    r.counted = text.data;
    r.line = (text.len > 0);
    us_json_init(&r.json, US_MAP_STRING);
    us_json_text(&r.json, text);

    if (us_map_next(&r) != US_JSON_OBJECT) {
        us_map_fail(&r, "a map is an object");
        goto failed;
    }

    if (us_map_object(&r, us_map_members) == -1
        || us_map_next(&r) != US_JSON_END
        || us_map_check(map, err, errlen) == -1)
    {
        goto failed;
    }

    shards = realloc(map->shards, map->nshards * sizeof(us_shard_t));
    map->shards = shards ? shards : map->shards;

    if (us_map_write(map) == -1) {
        us_map_refuse(err, errlen, "out of memory");
        goto failed;
    }

    if (map->text.len > US_MAP_TEXT_MAX) {
        us_map_refuse(err, errlen, "the map in its canonical form has %zu "
                      "bytes, at most %d are allowed", map->text.len,
                      US_MAP_TEXT_MAX);
        goto failed;
    }

    us_json_free(&r.json);

    return map;

failed:

    us_json_free(&r.json);
    us_map_free(map);

    return NULL;
}


void
us_map_free(us_map_t *map)
{
    if (map == NULL || map->holders-- > 0) {
        return;
    }

    free((void *) map->text.data);
    free(map->names);
    free(map->shards);
    free(map);
}


int
us_map_shard(const us_map_t *map, uint64_t number)
{
    uint32_t  low, high, mid;

    low = 0;
    high = map->nshards;

    while (low < high) {
        mid = (low + high) / 2;

        if (map->shards[mid].number < number) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low < map->nshards && map->shards[low].number == number
           ? (int) low : -1;
}


int
us_map_node(const us_map_t *map, us_str_t node)
{
    uint32_t  i, n;

    for (i = 0; i < map->nshards; i++) {
        for (n = 0; n < map->shards[i].nnodes; n++) {
            if (us_str_compare(map->shards[i].nodes[n], node) == 0) {
                return (int) i;
            }
        }
    }

    return -1;
}


int
us_map_has_owner(const us_map_t *map, unsigned slot, uint32_t number)
{
    unsigned            n;
    const us_owners_t  *o;

    o = &map->slots[slot];

    for (n = 0; n < o->n; n++) {
        if (map->shards[o->shards[n]].number == number) {
            return 1;
        }
    }

    return 0;
}


int
us_map_follows(const us_map_t *old, const us_map_t *next, char *err,
    size_t errlen)
{
    int                 i;
    uint32_t            n, number;
    unsigned            slot;
    const us_shard_t   *was;
    const us_owners_t  *o;

    if (memcmp(old->cluster, next->cluster, 16) != 0) {
        return us_map_refuse(err, errlen, "the map is one of another cluster");
    }

    if (next->version < old->version) {
        return us_map_refuse(err, errlen, "the map has version %" PRIu64
                             ", lower than the %" PRIu64 " that is there",
                             next->version, old->version);
    }

    if (next->version == old->version) {
        return memcmp(old->digest, next->digest, 16) == 0 ? 0
               : us_map_refuse(err, errlen, "the map has version %" PRIu64
                               ", as the one that is there, and another "
                               "content", next->version);
    }

    if (next->key != old->key) {
        return us_map_refuse(err, errlen, "\"key\" is \"%s\", and was \"%s\"; "
                             "it cannot change",
                             next->key == US_KEY_URL ? "url" : "site",
                             old->key == US_KEY_URL ? "url" : "site");
    }

    if (!us_norm_same(old->norm, next->norm)) {
        return us_map_refuse(err, errlen, "\"norm\" is \"%.*s\", and was "
                             "\"%.*s\"; it cannot change",
                             (int) next->norm.len, next->norm.data,
                             (int) old->norm.len, old->norm.data);
    }

    for (n = 0; n < old->nshards; n++) {
        was = &old->shards[n];
        i = us_map_shard(next, was->number);

        if (i == -1) {
            return us_map_refuse(err, errlen, "shard %u is missing; a shard "
                                 "stays in the map for ever", was->number);
        }

        if (memcmp(was->uuid, next->shards[i].uuid, 16) != 0) {
            return us_map_refuse(err, errlen, "shard %u has another uuid; the "
                                 "number of a shard is never used for another "
                                 "store", was->number);
        }
    }

    /*
     * An owner stays one of the slot's owners or former owners: it can have
     * URLs of the slot, and has to be asked.
     */

    for (slot = 0; slot < US_SLOTS; slot++) {
        o = &old->slots[slot];

        for (n = 0; n < o->n; n++) {
            number = old->shards[o->shards[n]].number;

            if (!us_map_has_owner(next, slot, number)) {
                return us_map_refuse(err, errlen, "slot %u has lost shard %u; "
                                     "an owner of a slot stays one of its "
                                     "former owners for ever", slot, number);
            }
        }
    }

    return 0;
}


static us_str_t
us_slot_after(us_str_t s, us_str_t prefix)
{
    if (s.len >= prefix.len && memcmp(s.data, prefix.data, prefix.len) == 0) {
        s.data += prefix.len;
        s.len -= prefix.len;
    }

    return s;
}


us_str_t
us_slot_key(us_key_t kind, us_str_t url)
{
    size_t    n, from;
    us_str_t  key;

    /* what ends host and port, and what ends a user */

    static const uint8_t  ends[256] = {
        ['/'] = 1, ['?'] = 1, ['#'] = 1, ['@'] = 2
    };

    key = us_slot_after(url, us_string("https://"));

    if (key.len == url.len) {
        key = us_slot_after(url, us_string("http://"));
    }

    for (n = 0, from = 0; n < key.len && ends[key.data[n]] != 1; n++) {
        from = ends[key.data[n]] ? n + 1 : from;
    }

    if (kind == US_KEY_SITE) {
        key.len = n;
    }

    if (from) {
        key.data += from;
        key.len -= from;
    }

    return us_slot_after(key, us_string("www."));
}


unsigned
us_slot(us_str_t key)
{
    return (unsigned) (crc32_z(0, key.data, key.len) >> 20);
}


us_str_t
us_slot_front(us_str_t site, uint8_t *buf)
{
    size_t  n;

    n = site.len < US_URL_MAX ? site.len : US_URL_MAX;

    memcpy(buf, "http://", 7);
    memcpy(buf + 7, site.data, n);
    buf[7 + n] = '/';

    return (us_str_t) { n + 8, buf };
}


us_map_tag_t
us_map_tag(const us_map_t *map, uint32_t shard)
{
    us_map_tag_t  tag;

    memcpy(tag.cluster, map->cluster, 16);
    memcpy(tag.digest, map->digest, 16);
    tag.shard = shard;
    tag.version = map->version;

    return tag;
}


uint8_t *
us_map_tag_put(uint8_t *p, const us_map_tag_t *tag)
{
    p = us_put_hex(p, tag->cluster, 16);
    *p++ = ' ';
    p = us_put_u64(p, tag->shard);
    *p++ = ' ';
    p = us_put_u64(p, tag->version);
    *p++ = ' ';

    return us_put_hex(p, tag->digest, 16);
}


int
us_map_tag_parse(us_map_tag_t *tag, us_str_t text)
{
    uint8_t   again[US_MAP_TAG_LEN];
    uint64_t  shard;
    us_str_t  rest, words[4];
    unsigned  n;

    rest = text;

    for (n = 0; n < 4; n++) {
        (void) us_str_cut(&rest, ' ', &words[n]);
    }

    if (us_map_uuid(words[0], tag->cluster) == -1
        || us_map_number(words[1], US_SHARDS - 1, &shard) == -1
        || us_map_number(words[2], US_MAP_VERSION_MAX, &tag->version) == -1
        || us_map_uuid(words[3], tag->digest) == -1)
    {
        return -1;
    }

    tag->shard = (uint32_t) shard;

    /* one spelling: no hyphens, no upper case, nothing after it */

    if (us_map_tag_put(again, tag) - again != (ptrdiff_t) text.len
        || memcmp(again, text.data, text.len) != 0)
    {
        return -1;
    }

    return 0;
}


/* --- how a map grows ------------------------------------------------------ */

typedef struct {
    us_map_t          map;
    uint64_t          weight[US_SLOTS];
    uint64_t          total;
    uint64_t          load[US_SHARDS];    /* by index of the shard */
} us_draft_t;


int
us_shard_parse(us_shard_t *s, us_str_t text, char *err, size_t errlen)
{
    int       more;
    uint64_t  number;
    us_str_t  rest, word;

    memset(s, 0, sizeof(us_shard_t));
    rest = text;

    if (!us_str_cut(&rest, '=', &word)
        || us_map_number(word, US_SHARDS - 1, &number) == -1
        || !us_str_cut(&rest, ',', &word)
        || us_map_uuid(word, s->uuid) == -1)
    {
        goto failed;
    }

    s->number = (uint32_t) number;

    do {
        more = us_str_cut(&rest, ',', &word);

        if (s->nnodes == US_MAP_NODES || !us_map_is_node(word)) {
            goto failed;
        }

        s->nodes[s->nnodes++] = word;

    } while (more);

    return 0;

failed:

    return us_map_refuse(err, errlen, "\"%.*s\" is no shard: NUMBER=UUID,NODE"
                         "[,NODE...], with a number from 0 to %d, 32 hex "
                         "digits, and 1 to %d names of nodes",
                         text.len < 80 ? (int) text.len : 80, text.data,
                         US_SHARDS - 1, US_MAP_NODES);
}


static void
us_draft_free(us_draft_t *d)
{
    free((void *) d->map.text.data);
    free(d->map.shards);
    free(d);
}


/* with the shards of both lists, in the order of their numbers */

static us_draft_t *
us_draft_create(const us_shard_t *old, uint32_t nold, const us_shard_t *shards,
    uint32_t n, const uint32_t *weight, char *err, size_t errlen)
{
    uint32_t     i;
    us_draft_t  *d;

    if (n == 0 || n > US_SHARDS - nold) {
        us_map_refuse(err, errlen, "%" PRIu64 " shards; a cluster has 1 to %d",
                      (uint64_t) nold + n, US_SHARDS);
        return NULL;
    }

    d = calloc(1, sizeof(us_draft_t));

    if (d) {
        d->map.shards = calloc(nold + n, sizeof(us_shard_t));
    }

    if (d == NULL || d->map.shards == NULL) {
        free(d);
        us_map_refuse(err, errlen, "out of memory");
        return NULL;
    }

    for (i = 0; i < US_SLOTS; i++) {
        d->weight[i] = weight ? weight[i] : 1;
        d->total += d->weight[i];
    }

    if (nold) {
        memcpy(d->map.shards, old, nold * sizeof(us_shard_t));
    }

    memcpy(d->map.shards + nold, shards, n * sizeof(us_shard_t));
    d->map.nshards = nold + n;

    if (us_map_sort(&d->map, err, errlen) == -1) {
        us_draft_free(d);
        return NULL;
    }

    return d;
}


static us_map_t *
us_draft_map(us_draft_t *d, char *err, size_t errlen)
{
    us_map_t  *map;

    map = NULL;

    if (us_map_write(&d->map) == -1) {
        us_map_refuse(err, errlen, "out of memory");

    } else {
        map = us_map_read(d->map.text, err, errlen);
    }

    us_draft_free(d);

    return map;
}


us_map_t *
us_map_first(const uint8_t cluster[16], us_str_t norm, us_key_t key,
    const us_shard_t *shards, uint32_t n, const uint32_t *weight, char *err,
    size_t errlen)
{
    uint32_t     i, left;
    uint64_t     load, rest;
    unsigned     slot;
    us_draft_t  *d;

    d = us_draft_create(NULL, 0, shards, n, weight, err, errlen);

    if (d == NULL) {
        return NULL;
    }

    memcpy(d->map.cluster, cluster, 16);
    d->map.version = 1;
    d->map.norm = norm;
    d->map.key = key;

    /*
     * A range for each shard: slots up to its part of what is left, at least
     * one, and one for each shard after it.
     */

    rest = d->total;
    slot = 0;

    for (i = 0; i < d->map.nshards; i++) {
        left = d->map.nshards - i;
        load = 0;

        /* the slot that crosses the part is in, if most of it is */

        while (slot + left <= US_SLOTS
               && (load == 0 || left == 1
                   || (2 * load + d->weight[slot]) * left <= 2 * rest))
        {
            load += d->weight[slot];
            d->map.slots[slot++] = (us_owners_t) { 1, { (uint16_t) i } };
        }

        rest -= load;
    }

    return us_draft_map(d, err, errlen);
}


/*
 * One slot, if the part of `to` has room for it; 0, or -1: none may move.  Of
 * the slots that may, and after which their owner has no less than `to`: one of
 * the first owner that has most, the last one with the fewest former owners.
 */

static int
us_draft_give(us_draft_t *d, uint16_t to, uint64_t part)
{
    int           slot, chosen;
    unsigned      least;
    uint64_t      load, most;
    us_owners_t  *o;

    if (d->load[to] >= part) {
        return -1;
    }

    chosen = -1;
    most = 0;
    least = 0;

    for (slot = US_SLOTS - 1; slot >= 0; slot--) {
        o = &d->map.slots[slot];
        load = d->load[o->shards[0]];

        if (o->shards[0] == to || load == 0 || load < most
            || o->n > US_MAP_FORMER
            || 2 * d->load[to] + d->weight[slot] > 2 * part
            || load < d->load[to] + 2 * d->weight[slot])
        {
            continue;
        }

        if (load > most || o->shards[0] < d->map.slots[chosen].shards[0]
            || (o->shards[0] == d->map.slots[chosen].shards[0]
                && o->n < least))
        {
            most = load;
            least = o->n;
            chosen = slot;
        }
    }

    if (chosen == -1) {
        return -1;
    }

    o = &d->map.slots[chosen];
    d->load[o->shards[0]] -= d->weight[chosen];
    d->load[to] += d->weight[chosen];
    memmove(o->shards + 1, o->shards, o->n * sizeof(o->shards[0]));
    o->shards[0] = to;
    o->n++;

    return 0;
}


us_map_t *
us_map_grow(const us_map_t *map, const us_shard_t *shards, uint32_t n,
    const uint32_t *weight, char *err, size_t errlen)
{
    uint16_t      to, index[US_SHARDS];
    uint32_t      i, k, owners;
    uint64_t      part;
    us_draft_t   *d;
    us_owners_t  *o;

    d = us_draft_create(map->shards, map->nshards, shards, n, weight, err,
                        errlen);

    if (d == NULL) {
        return NULL;
    }

    memcpy(d->map.cluster, map->cluster, 16);
    d->map.version = map->version + 1;
    d->map.norm = map->norm;
    d->map.key = map->key;

    /* the old owners, by their indexes in the draft */

    for (i = 0; i < map->nshards; i++) {
        index[i] = (uint16_t) us_map_shard(&d->map, map->shards[i].number);
    }

    for (i = 0; i < US_SLOTS; i++) {
        o = &d->map.slots[i];
        *o = map->slots[i];

        for (k = 0; k < o->n; k++) {
            o->shards[k] = index[o->shards[k]];
        }

        d->load[o->shards[0]] += d->weight[i];
    }

    /* a shard without slots was emptied by its operators, and stays so */

    for (i = 0, owners = n; i < d->map.nshards; i++) {
        owners += d->load[i] > 0;
    }

    part = d->total / owners;

    for (i = 0; i < n; i++) {
        to = (uint16_t) us_map_shard(&d->map, shards[i].number);

        while (us_draft_give(d, to, part) == 0) {
            /* void */
        }

        if (d->load[to] == 0) {
            us_draft_free(d);
            us_map_refuse(err, errlen, "no slot may move to shard %u: all "
                          "have %d former owners, or more than its part of "
                          "the URLs", shards[i].number, US_MAP_FORMER);
            return NULL;
        }
    }

    return us_draft_map(d, err, errlen);
}
