
/*
 * A map's JSON text to a us_map_t.  See us_map.h for the format.
 *
 * r->line is that of the last event, for messages.  r->place says what the
 * next event may be:
 *
 *     TEXT   { "version": 3, "shards": { "0": { "uuid": "..",
 *     MAP      `-----------------------'
 *     SHARDS                             `----'
 *     SHARD                                    `-------------
 *              "nodes": ["us_0a", "us_0b"] } }, "slots": [
 *     NODES             `-------'
 *              ["0-1023", 0], ["1024-4095", 1, 0]
 *     SLOTS    `            ' `
 *     SLOT      `---------'    `---------------'
 *
 * Slots hold the numbers of shards until all members were read, since "slots"
 * may come before "shards"; us_map_check() makes them indexes.
 */


#include "us_map_private.h"
#include "../input/us_json.h"
#include "../input/us_json_quote.h"
#include "../us_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define US_MAP_STRING    256              /* bytes of the longest string */
#define US_MAP_SHOWN     48               /* of a value in a message */
#define US_MAP_QUOTED    (us_json_quoted_max(US_MAP_SHOWN) + 4)


typedef enum {
    US_MAP_TEXT = 0,
    US_MAP_MAP,
    US_MAP_IN_SHARDS,
    US_MAP_IN_SHARD,
    US_MAP_IN_NODES,
    US_MAP_IN_SLOTS,
    US_MAP_IN_SLOT,
    US_MAP_DONE
} us_map_place_t;


/* members of the map, in the order of us_map_members_of[] */

typedef enum {
    US_MAP_CLUSTER = 0,
    US_MAP_VERSION,
    US_MAP_NORM,
    US_MAP_KEY,
    US_MAP_SHARDS,
    US_MAP_SLOTS
} us_map_member_t;


/* members of a shard, in the order of us_shard_members_of[] */

typedef enum {
    US_SHARD_UUID = 0,
    US_SHARD_NODES
} us_shard_member_t;


typedef struct {
    us_map_t         *map;
    us_map_place_t    place;
    unsigned          line;               /* 0: the text as a whole */

    unsigned          member;
    unsigned          have;               /* a bit for each member */
    unsigned          shard_member;
    unsigned          shard_have;
    us_shard_t       *shard;

    uint32_t          size;               /* of map->shards */
    uint8_t          *name;               /* the free rest of map->names */

    unsigned          first;              /* of the range being read */
    unsigned          last;
    unsigned          nowners;
    us_owners_t       owners;

    char             *err;
    size_t            errlen;
} us_map_reader_t;


typedef int (*us_map_place_pt)(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);


static int us_map_fail(us_map_reader_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *us_map_show(us_json_event_t event, us_str_t value,
    char *buf);
static int us_map_events(us_map_reader_t *r, us_str_t text);
static int us_map_text(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_members(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_value(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_shards(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_shard_members(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_nodes(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_slots(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_slot(us_map_reader_t *r, us_json_event_t event,
    us_str_t text);
static int us_map_assign(us_map_reader_t *r);
static int us_map_find(const char *const *names, us_str_t name);
static int us_map_range(us_map_reader_t *r, us_str_t text);
static int us_map_is_norm(us_str_t text);
static us_str_t us_map_name(us_map_reader_t *r, us_str_t text);
static int us_map_end(us_map_reader_t *r);


static const char  *const us_map_members_of[] = {
    "cluster", "version", "norm", "key", "shards", "slots", NULL
};

static const char  *const us_shard_members_of[] = { "uuid", "nodes", NULL };

static const us_map_place_pt  us_map_places[] = {
    us_map_text,
    us_map_members,
    us_map_shards,
    us_map_shard_members,
    us_map_nodes,
    us_map_slots,
    us_map_slot
};


us_map_t *
us_map_read(us_str_t text, char *err, size_t errlen)
{
    unsigned         slot;
    us_map_reader_t  r;

    memset(&r, 0, sizeof(us_map_reader_t));
    r.err = err;
    r.errlen = errlen;
    err[0] = '\0';

    if (text.len > US_MAP_TEXT_MAX) {
        us_map_fail(&r, "the map has %zu bytes, at most %d are allowed",
                    text.len, US_MAP_TEXT_MAX);
        return NULL;
    }

    r.map = calloc(1, sizeof(us_map_t));

    if (r.map == NULL) {
        us_map_fail(&r, "out of memory");
        return NULL;
    }

    /* no string gets longer when it is decoded */

    r.map->names = malloc(text.len + 1);
    r.name = r.map->names;

    for (slot = 0; slot < US_SLOTS; slot++) {
        r.map->slots[slot].owner = US_MAP_NOBODY;
    }

    if (r.name == NULL) {
        us_map_fail(&r, "out of memory");

    } else if (us_map_events(&r, text) == 0 && us_map_end(&r) == 0) {
        return r.map;
    }

    us_map_free(r.map);

    return NULL;
}


static int
us_map_fail(us_map_reader_t *r, const char *fmt, ...)
{
    size_t   n;
    va_list  args;

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


/*
 * A value as a message shows it: a string in quotes and escaped, shortened.
 * buf has US_MAP_QUOTED bytes.
 */

static const char *
us_map_show(us_json_event_t event, us_str_t value, char *buf)
{
    int       more;
    uint8_t  *p;

    static const char  *const words[] = {
        [US_JSON_OBJECT] = "an object", [US_JSON_ARRAY] = "an array",
        [US_JSON_TRUE] = "true", [US_JSON_FALSE] = "false",
        [US_JSON_NULL] = "null"
    };

    if (event != US_JSON_KEY && event != US_JSON_STRING
        && event != US_JSON_NUM)
    {
        return words[event];
    }

    more = value.len > US_MAP_SHOWN;
    value.len = more ? US_MAP_SHOWN : value.len;

    p = event == US_JSON_NUM ? us_put_str((uint8_t *) buf, value)
                             : us_json_quote_bytes((uint8_t *) buf, value);
    p = us_put(p, more ? "..." : "");
    *p = '\0';

    return buf;
}


static int
us_map_events(us_map_reader_t *r, us_str_t text)
{
    int               rc;
    us_json_t         json;
    const uint8_t    *p;
    us_json_event_t   event;

    us_json_init(&json, US_MAP_STRING);
    us_json_text(&json, text);

    rc = 0;
    r->line = (text.len > 0);
    p = text.data;

    do {
        event = us_json_next(&json);

        for ( /* void */ ; p < json.p; p++) {
            r->line += (*p == '\n');
        }

        if (event == US_JSON_END) {
            break;
        }

        if (event == US_JSON_ERROR) {
            rc = us_map_fail(r, "%s", json.error);

        } else if (json.cut) {
            rc = us_map_fail(r, "a string has more than %d bytes",
                             US_MAP_STRING);

        } else {
            rc = us_map_places[r->place](r, event, json.text);
        }

    } while (rc == 0);

    us_json_free(&json);

    return rc;
}


static int
us_map_text(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    if (event != US_JSON_OBJECT) {
        return us_map_fail(r, "a map is an object");
    }

    r->place = US_MAP_MAP;

    return 0;
}


static int
us_map_members(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    int   member;
    char  shown[US_MAP_QUOTED];

    if (event == US_JSON_OBJECT_END) {
        r->place = US_MAP_DONE;
        return 0;
    }

    if (event != US_JSON_KEY) {
        return us_map_value(r, event, text);
    }

    member = us_map_find(us_map_members_of, text);

    if (member == -1) {
        return us_map_fail(r, "unknown member %s; a map has cluster, version, "
                           "norm, key, shards and slots",
                           us_map_show(event, text, shown));
    }

    if (r->have & 1u << member) {
        return us_map_fail(r, "\"%s\" is there twice",
                           us_map_members_of[member]);
    }

    r->member = (unsigned) member;
    r->have |= 1u << member;

    return 0;
}


/* of a member of the map */

static int
us_map_value(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    char         shown[US_MAP_QUOTED];
    us_map_t    *map;
    const char  *value;

    map = r->map;
    value = us_map_show(event, text, shown);

    switch (r->member) {

    case US_MAP_CLUSTER:
        if (event != US_JSON_STRING || us_map_uuid(text, map->cluster) == -1) {
            return us_map_fail(r, "\"cluster\" is %s, but must be a string of "
                               "32 hex digits", value);
        }

        break;

    case US_MAP_VERSION:
        if (event != US_JSON_NUM
            || us_map_number(text, US_MAP_VERSION_MAX, &map->version) == -1
            || map->version == 0)
        {
            return us_map_fail(r, "\"version\" is %s, but must be a number "
                               "from 1 to %" PRIu64, value,
                               US_MAP_VERSION_MAX);
        }

        break;

    case US_MAP_NORM:
        if (event != US_JSON_STRING || !us_map_is_norm(text)) {
            return us_map_fail(r, "\"norm\" is %s, but must be the "
                               "\"normalization\" that GET /stats reports: "
                               "visible ASCII without quotes, at most %d "
                               "bytes", value,
                               US_MAP_NORM_LEN);
        }

        map->norm = us_map_name(r, text);
        break;

    case US_MAP_KEY:
        if (event == US_JSON_STRING
            && us_str_compare(text, us_string("url")) == 0)
        {
            map->key = US_KEY_URL;

        } else if (event == US_JSON_STRING
                   && us_str_compare(text, us_string("site")) == 0)
        {
            map->key = US_KEY_SITE;

        } else {
            return us_map_fail(r, "\"key\" is %s, but must be \"url\" or "
                               "\"site\"", value);
        }

        break;

    case US_MAP_SHARDS:
        if (event != US_JSON_OBJECT) {
            return us_map_fail(r, "\"shards\" must be an object");
        }

        r->place = US_MAP_IN_SHARDS;
        break;

    default: /* US_MAP_SLOTS */
        if (event != US_JSON_ARRAY) {
            return us_map_fail(r, "\"slots\" must be an array");
        }

        r->place = US_MAP_IN_SLOTS;
    }

    return 0;
}


static int
us_map_shards(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    char         shown[US_MAP_QUOTED];
    uint32_t     size;
    uint64_t     number;
    us_map_t    *map;
    us_shard_t  *shards;

    map = r->map;

    if (event == US_JSON_OBJECT_END) {
        r->place = US_MAP_MAP;
        return 0;
    }

    if (event == US_JSON_OBJECT) {
        r->place = US_MAP_IN_SHARD;
        r->shard_have = 0;
        return 0;
    }

    if (event != US_JSON_KEY) {
        return us_map_fail(r, "shard %u must be an object", r->shard->number);
    }

    if (us_map_number(text, US_SHARDS - 1, &number) == -1) {
        return us_map_fail(r, "%s is no number of a shard: 0 to %d",
                           us_map_show(event, text, shown), US_SHARDS - 1);
    }

    /* more numbers than there are must have one twice: found at the end */

    if (map->nshards == US_SHARDS) {
        return us_map_fail(r, "more than %d shards", US_SHARDS);
    }

    if (map->nshards == r->size) {
        size = r->size ? r->size * 2 : 4;
        shards = realloc(map->shards, size * sizeof(us_shard_t));

        if (shards == NULL) {
            return us_map_fail(r, "out of memory");
        }

        map->shards = shards;
        r->size = size;
    }

    r->shard = &map->shards[map->nshards++];
    memset(r->shard, 0, sizeof(us_shard_t));
    r->shard->number = (uint32_t) number;

    return 0;
}


static int
us_map_shard_members(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    int          member;
    char         shown[US_MAP_QUOTED];
    const char  *value;

    value = us_map_show(event, text, shown);

    if (event == US_JSON_OBJECT_END) {
        if (r->shard_have != (1u << US_SHARD_UUID | 1u << US_SHARD_NODES)) {
            return us_map_fail(r, "shard %u has no \"%s\"", r->shard->number,
                               r->shard_have & 1u << US_SHARD_UUID
                               ? "nodes" : "uuid");
        }

        r->place = US_MAP_IN_SHARDS;
        return 0;
    }

    if (event == US_JSON_KEY) {
        member = us_map_find(us_shard_members_of, text);

        if (member == -1) {
            return us_map_fail(r, "unknown member %s of shard %u; a shard has "
                               "uuid and nodes", value, r->shard->number);
        }

        if (r->shard_have & 1u << member) {
            return us_map_fail(r, "\"%s\" of shard %u is there twice",
                               us_shard_members_of[member], r->shard->number);
        }

        r->shard_member = (unsigned) member;
        r->shard_have |= 1u << member;
        return 0;
    }

    if (r->shard_member == US_SHARD_UUID) {
        if (event != US_JSON_STRING
            || us_map_uuid(text, r->shard->uuid) == -1)
        {
            return us_map_fail(r, "\"uuid\" of shard %u is %s, but must be a "
                               "string of 32 hex digits", r->shard->number,
                               value);
        }

        return 0;
    }

    if (event != US_JSON_ARRAY) {
        return us_map_fail(r, "\"nodes\" of shard %u must be an array",
                           r->shard->number);
    }

    r->place = US_MAP_IN_NODES;

    return 0;
}


static int
us_map_nodes(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    char  shown[US_MAP_QUOTED];

    if (event == US_JSON_ARRAY_END) {
        if (r->shard->nnodes == 0) {
            return us_map_fail(r, "shard %u has no node", r->shard->number);
        }

        r->place = US_MAP_IN_SHARD;
        return 0;
    }

    if (event != US_JSON_STRING || !us_map_is_node(text)) {
        return us_map_fail(r, "%s is no name of a node: a string of 1 to %d "
                           "characters a-z, 0-9, \"_\", \"-\" and \".\", the "
                           "first a letter", us_map_show(event, text, shown),
                           US_MAP_NODE_LEN);
    }

    if (r->shard->nnodes == US_MAP_NODES) {
        return us_map_fail(r, "shard %u has more than %d nodes",
                           r->shard->number, US_MAP_NODES);
    }

    r->shard->nodes[r->shard->nnodes++] = us_map_name(r, text);

    return 0;
}


static int
us_map_slots(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    if (event == US_JSON_ARRAY_END) {
        r->place = US_MAP_MAP;
        return 0;
    }

    if (event != US_JSON_ARRAY) {
        return us_map_fail(r, "an element of \"slots\" must be an array, such "
                           "as [\"0-1023\", 0]");
    }

    memset(&r->owners, 0, sizeof(us_owners_t));
    r->owners.owner = US_MAP_NOBODY;
    r->nowners = 0;
    r->first = US_SLOTS;
    r->place = US_MAP_IN_SLOT;

    return 0;
}


static int
us_map_slot(us_map_reader_t *r, us_json_event_t event, us_str_t text)
{
    char         shown[US_MAP_QUOTED];
    uint64_t     number;
    unsigned     n;
    const char  *value;

    if (event == US_JSON_ARRAY_END) {
        r->place = US_MAP_IN_SLOTS;
        return us_map_assign(r);
    }

    value = us_map_show(event, text, shown);

    if (r->first == US_SLOTS) {
        if (event != US_JSON_STRING || us_map_range(r, text) == -1) {
            return us_map_fail(r, "%s is no slot and no range of slots: a "
                               "string such as \"17\" or \"0-%d\"", value,
                               US_SLOTS - 1);
        }

        return 0;
    }

    if (event != US_JSON_NUM
        || us_map_number(text, US_SHARDS - 1, &number) == -1)
    {
        return us_map_fail(r, "%s is no number of a shard: 0 to %d", value,
                           US_SHARDS - 1);
    }

    if (r->nowners++ == 0) {
        r->owners.owner = (uint16_t) number;
        return 0;
    }

    if (r->owners.nformer == US_MAP_FORMER) {
        return us_map_fail(r, "slot %u has more than %d former owners",
                           r->first, US_MAP_FORMER);
    }

    for (n = 0; n < r->owners.nformer; n++) {
        if (r->owners.former[n] == number) {
            break;
        }
    }

    if (number == r->owners.owner || n < r->owners.nformer) {
        return us_map_fail(r, "slot %u has shard %u twice", r->first,
                           (unsigned) number);
    }

    r->owners.former[r->owners.nformer++] = (uint16_t) number;

    return 0;
}


static int
us_map_assign(us_map_reader_t *r)
{
    unsigned  slot;

    if (r->nowners == 0) {
        return us_map_fail(r, "a range of slots has no owner; an element is "
                           "such as [\"0-1023\", 0]");
    }

    for (slot = r->first; slot <= r->last; slot++) {

        if (r->map->slots[slot].owner != US_MAP_NOBODY) {
            return us_map_fail(r, "slot %u is there twice", slot);
        }

        r->map->slots[slot] = r->owners;
    }

    return 0;
}


/* the index of a name, or -1 */

static int
us_map_find(const char *const *names, us_str_t name)
{
    int  i;

    for (i = 0; names[i]; i++) {
        if (name.len == strlen(names[i])
            && memcmp(name.data, names[i], name.len) == 0)
        {
            return i;
        }
    }

    return -1;
}


/* "17" or "0-1023" */

static int
us_map_range(us_map_reader_t *r, us_str_t text)
{
    us_str_t        from, to;
    uint64_t        first, last;
    const uint8_t  *hyphen;

    from = text;
    to = text;
    hyphen = memchr(text.data, '-', text.len);

    if (hyphen) {
        from.len = hyphen - text.data;
        to.data = hyphen + 1;
        to.len = text.len - from.len - 1;
    }

    if (us_map_number(from, US_SLOTS - 1, &first) == -1
        || us_map_number(to, US_SLOTS - 1, &last) == -1
        || first > last)
    {
        return -1;
    }

    r->first = (unsigned) first;
    r->last = (unsigned) last;

    return 0;
}


/* what needs no escapes in JSON */

static int
us_map_is_norm(us_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~' || text.data[i] == '"'
            || text.data[i] == '\\')
        {
            return 0;
        }
    }

    return text.len > 0 && text.len <= US_MAP_NORM_LEN;
}


static us_str_t
us_map_name(us_map_reader_t *r, us_str_t text)
{
    us_str_t  name;

    name.data = r->name;
    name.len = text.len;
    r->name = mempcpy(r->name, text.data, text.len);

    return name;
}


/* what only the whole text shows; then its canonical form */

static int
us_map_end(us_map_reader_t *r)
{
    unsigned  i;

    r->line = 0;

    for (i = 0; us_map_members_of[i]; i++) {
        if (!(r->have & 1u << i)) {
            return us_map_fail(r, "the map has no \"%s\"",
                               us_map_members_of[i]);
        }
    }

    if (us_map_check(r->map, r->err, r->errlen) == -1) {
        return -1;
    }

    if (us_map_write(r->map) == -1) {
        return us_map_fail(r, "out of memory");
    }

    if (r->map->text.len > US_MAP_TEXT_MAX) {
        return us_map_fail(r, "the map in its canonical form has %zu bytes, "
                           "at most %d are allowed", r->map->text.len,
                           US_MAP_TEXT_MAX);
    }

    return 0;
}
