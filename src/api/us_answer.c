
/*
 * See us_answer.h.
 */


#include "us_answer.h"
#include "../us_text.h"
#include "../zone/us_conf.h"


us_answer_t
us_answer_of(us_store_status_t status)
{
    static const uint8_t  answers[] = {
        [US_NEW] = US_ANSWER_NEW,
        [US_SEEN] = US_ANSWER_SEEN,
        [US_UNSEEN] = US_ANSWER_UNSEEN,
        [US_FULL] = US_ANSWER_FULL,
        [US_BUSY] = US_ANSWER_FULL,
        [US_DELETED] = US_ANSWER_DELETED,
        [US_UNKNOWN] = US_ANSWER_UNKNOWN,
        [US_OK] = US_ANSWER_SEEN,
        [US_DAMAGED] = US_ANSWER_DAMAGED,
        [US_DUE] = US_ANSWER_DUE,
        [US_MOVED] = US_ANSWER_UNAVAILABLE,
        [US_FENCED] = US_ANSWER_FULL,
        [US_GONE] = US_ANSWER_FULL,
        [US_ERASED] = US_ANSWER_REFUSED
    };

    return answers[status];
}


uint8_t *
us_answer_line(uint8_t *p, const us_answers_t *a,
    const us_answer_record_t *rec, us_str_t text)
{
    p = us_put_known(p, a->format, rec->id, US_STORE_NO_ID);
    *p++ = '\t';
    p = us_put_str(p, us_answer_words[rec->answer]);

    if (!a->brief) {
        *p++ = '\t';

        if (rec->text == US_ANSWER_NO_TEXT) {
            *p++ = '-';

        } else if (rec->text == US_ANSWER_SAME) {
            *p++ = '=';

        } else {
            p = us_put_str(p, text);
        }
    }

    if (a->sites) {
        if (us_answer_known(rec->answer)
            || (a->unseen_sites && rec->answer == US_ANSWER_UNSEEN))
        {
            p = us_put(p, rec->new_site ? "\tsite-new" : "\tsite-known");

        } else {
            p = us_put(p, "\t-");
        }
    }

    if (a->times) {
        *p++ = '\t';
        p = us_put_known(p, a->format, rec->claimed, 0);
    }

    if (a->stored) {
        *p++ = '\t';
        p = rec->stored ? us_put_str(p, us_answer_words[rec->stored])
                        : us_put(p, "-");
    }

    if (a->only_new && !a->single) {
        *p++ = '\t';
        p = us_put_u64(p, rec->index);
    }

    *p++ = '\n';

    return p;
}


/* canonical URLs hardly ever need an escape: a backslash, or a quote */

static uint8_t *
us_answer_quote(uint8_t *p, us_str_t text)
{
    if (memchr(text.data, '\\', text.len) || memchr(text.data, '"', text.len))
    {
        return us_json_quote(p, text);
    }

    *p++ = '"';
    p = us_put_str(p, text);
    *p++ = '"';

    return p;
}


/* " erasure=N", or a member with a comma before it; none: - or null */

static uint8_t *
us_answer_erasure(uint8_t *p, const us_answers_t *a)
{
    if (a->erased.len) {
        return us_json_printf(p, a->format == US_FORMAT_TEXT
                                 ? " erasure=%V" : ",\"erasure\":\"%V\"",
                              a->erased);
    }

    p = us_put(p, a->format == US_FORMAT_TEXT ? " erasure="
                                              : ",\"erasure\":");

    return us_put_known(p, a->format, a->erasure, 0);
}


uint8_t *
us_answer_object(uint8_t *p, us_answers_t *a, const us_answer_record_t *rec,
    us_str_t text, us_str_t ref)
{
    if (a->shown++ && a->format == US_FORMAT_JSON) {
        *p++ = ',';
    }

    p = us_put(p, "{\"id\":");
    p = us_put_known(p, a->format, rec->id, US_STORE_NO_ID);

    p = us_put(p, ",\"status\":\"");
    p = us_put_str(p, us_answer_words[rec->answer]);
    *p++ = '"';

    if (rec->text != US_ANSWER_NO_TEXT) {
        p = us_put(p, rec->text == US_ANSWER_WHY ? ",\"reason\":"
                                                 : ",\"url\":");
        p = us_answer_quote(p, text);

    } else if (!a->brief) {
        p = us_put(p, ",\"url\":null");
    }

    if (a->sites && us_answer_known(rec->answer)) {
        p = us_put(p, rec->new_site ? ",\"new_site\":true"
                                    : ",\"new_site\":false");
    }

    if (a->times && us_answer_known(rec->answer)) {
        p = us_put(p, ",\"time\":");
        p = us_put_known(p, a->format, rec->claimed, 0);
    }

    if (a->set && rec->stored) {
        p = us_put(p, ",\"stored\":\"");
        p = us_put_str(p, us_answer_words[rec->stored]);
        *p++ = '"';
    }

    if (a->only_new && !a->single) {
        p = us_put(p, ",\"index\":");
        p = us_put_u64(p, rec->index);
    }

    if (ref.len) {
        p = us_put(p, ",\"ref\":");
        p = us_put_str(p, ref);
    }

    if (a->single && a->erases) {
        p = us_answer_erasure(p, a);
    }

    if (a->single) {
        p = us_put(p, ",\"next_id\":");
        p = us_put_known(p, a->format, a->next_id, US_STORE_NO_ID);
        p = us_put(p, ",\"epoch\":");
        p = us_put_u64(p, a->epoch);
    }

    *p++ = '}';

    if (a->format != US_FORMAT_JSON || a->single) {
        *p++ = '\n';
    }

    return p;
}


/* " NAME=N", or a member with a comma before all but the object's first */

static uint8_t *
us_answer_count(uint8_t *p, const us_answers_t *a, us_str_t name, uint64_t n)
{
    return a->format == US_FORMAT_TEXT
           ? us_json_printf(p, " %V=%u", name, n)
           : us_json_printf(p, "%s\"%V\":%u", p[-1] == '{' ? "" : ",", name, n);
}


/* " next_ids=0:7,2:9 epochs=0:1,2:1", or members by the shards' numbers */

static uint8_t *
us_answer_shards(uint8_t *p, const us_answers_t *a)
{
    int          text;
    size_t       i;
    const char  *shard;

    text = (a->format == US_FORMAT_TEXT);
    shard = text ? "%s%u:" : "%s\"%u\":";

    p = us_put(p, text ? " next_ids=" : ",\"next_ids\":{");

    for (i = 0; i < a->nshards; i++) {
        p = us_json_printf(p, shard, i ? "," : "", a->shards[i].number);
        p = us_put_known(p, a->format, a->shards[i].next_id, US_STORE_NO_ID);
    }

    p = us_put(p, text ? " epochs=" : "},\"epochs\":{");

    for (i = 0; i < a->nshards; i++) {
        p = us_json_printf(p, shard, i ? "," : "", a->shards[i].number);
        p = us_put_u64(p, a->shards[i].epoch);
    }

    return us_put(p, text ? "" : "}");
}


uint8_t *
us_answer_end(uint8_t *p, const us_answers_t *a)
{
    unsigned        i;
    uint64_t        errors;
    const uint8_t  *answers;

    static const uint8_t  urls[] = {
        US_ANSWER_NEW, US_ANSWER_SEEN, US_ANSWER_UNSEEN, US_ANSWER_DUE,
        US_ANSWER_NONE
    };

    static const uint8_t  marks[] = {
        US_ANSWER_SET, US_ANSWER_CLEAR, US_ANSWER_UNKNOWN, US_ANSWER_DELETED,
        US_ANSWER_NONE
    };

    static const uint8_t  ids[] = {
        US_ANSWER_IN, US_ANSWER_WAS, US_ANSWER_OUT, US_ANSWER_UNSEEN,
        US_ANSWER_UNKNOWN, US_ANSWER_DELETED, US_ANSWER_NONE
    };

    static const uint8_t  claims[] = {
        US_ANSWER_CLAIMED, US_ANSWER_UNKNOWN, US_ANSWER_DELETED,
        US_ANSWER_NONE
    };

    static const uint8_t  erased[] = {
        US_ANSWER_ERASED, US_ANSWER_UNKNOWN, US_ANSWER_DELETED,
        US_ANSWER_NONE
    };

    if (a->format != US_FORMAT_JSON && !a->summary) {
        return p;
    }

    p = us_put(p, a->format == US_FORMAT_TEXT ? "#"
                  : a->format == US_FORMAT_JSON ? "]" : "{");

    answers = a->erases ? erased : a->claims ? claims : a->marks ? marks
              : a->ids ? ids : urls;

    for (i = 0; answers[i] != US_ANSWER_NONE; i++) {

        if (answers[i] != US_ANSWER_DUE || a->older) {
            p = us_answer_count(p, a, us_answer_words[answers[i]],
                                a->counts[answers[i]]);
        }
    }

    errors = a->counts[US_ANSWER_INVALID] + a->counts[US_ANSWER_REJECTED]
             + a->counts[US_ANSWER_FULL] + a->counts[US_ANSWER_UNAVAILABLE]
             + a->counts[US_ANSWER_REFUSED];

    p = us_answer_count(p, a, us_string("errors"), errors);

    if (a->erases) {
        p = us_answer_erasure(p, a);
    }

    if (a->shards) {
        p = us_answer_shards(p, a);

    } else {
        p = us_put(p, a->format == US_FORMAT_TEXT ? " next_id="
                                                  : ",\"next_id\":");
        p = us_put_known(p, a->format, a->next_id, US_STORE_NO_ID);
        p = us_answer_count(p, a, us_string("epoch"), a->epoch);
    }

    return us_put(p, a->format == US_FORMAT_TEXT ? "\n" : "}\n");
}
