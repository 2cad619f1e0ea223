
/*
 * See us_problem.h.
 */


#include "us_problem.h"
#include "../us_text.h"
#include "../us_utf8.h"

#include <stdio.h>


us_str_t
us_problem_line(unsigned status)
{
    size_t  i;

    static const struct {
        unsigned     status;
        const char  *line;
    } lines[] = {
        { 400, "400 Bad Request" },
        { 401, "401 Unauthorized" },
        { 403, "403 Forbidden" },
        { 404, "404 Not Found" },
        { 405, "405 Method Not Allowed" },
        { 408, "408 Request Timeout" },
        { 409, "409 Conflict" },
        { 410, "410 Gone" },
        { 411, "411 Length Required" },
        { 412, "412 Precondition Failed" },
        { 413, "413 Content Too Large" },
        { 414, "414 URI Too Long" },
        { 415, "415 Unsupported Media Type" },
        { 416, "416 Range Not Satisfiable" },
        { 421, "421 Misdirected Request" },
        { 422, "422 Unprocessable Content" },
        { 429, "429 Too Many Requests" },
        { 500, "500 Internal Server Error" },
        { 501, "501 Not Implemented" },
        { 503, "503 Service Unavailable" },
        { 504, "504 Gateway Timeout" },
        { 507, "507 Insufficient Storage" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (lines[i].status == status) {
            return us_str_of(lines[i].line);
        }
    }

    return us_string("");
}


uint8_t *
us_problem_begin(uint8_t *p, unsigned status, uint8_t *detail, size_t len,
    const char *members)
{
    size_t    i;
    us_str_t  line;

    /* the title is what follows the code */

    line = us_problem_line(status);

    p = us_json_printf(p, "{\"type\":\"about:blank\",\"title\":\"%s\","
                       "\"status\":%u", line.len ? (char *) line.data + 4
                       : "Error", (uint64_t) status);

    if (len) {

        if (!us_utf8_valid((us_str_t) { len, detail })) {
            for (i = 0; i < len; i++) {
                if (detail[i] >= 0x80) {
                    detail[i] = '?';
                }
            }
        }

        p = us_json_printf(p, ",\"detail\":%q", (us_str_t) { len, detail });
    }

    return members ? us_json_printf(p, ",%s", members) : p;
}


/* of a rule's name */
#define US_REFUSAL_RULE  64


static us_str_t
us_refusal_rule(const us_refusal_t *refusal)
{
    us_str_t  rule;

    rule = refusal->rule;
    rule.len = rule.len < US_REFUSAL_RULE ? rule.len : US_REFUSAL_RULE;

    return rule;
}


uint8_t *
us_refusal_word(uint8_t *p, const us_refusal_t *refusal)
{
    if (refusal->erased) {
        return us_put(p, "erased");
    }

    if (refusal->kind == US_INPUT_BAD) {
        return us_put(p, "json");
    }

    if (refusal->kind == US_INPUT_LONG) {
        return us_put(p, "length");
    }

    return refusal->verdict == US_URL_RULE
           ? us_json_printf(p, "rule:%V", us_refusal_rule(refusal))
           : us_put(p, us_verdict_name(refusal->verdict));
}


uint8_t *
us_refusal_sentence(uint8_t *p, const us_refusal_t *refusal, uint64_t max_url)
{
    us_str_t  why;

    static const char *const  sentences[] = {
        [US_URL_SCHEME] = "the scheme is neither http nor https",
        [US_URL_HOST] = "the host is empty or malformed",
        [US_URL_PORT] = "the port is not a number up to 65535",
        [US_URL_UTF8] = "the URL is not UTF-8",
        [US_URL_CONTROL] = "the URL has a control byte",
        [US_URL_NO_BASE] = "the URL is relative, and there is no base",
        [US_URL_BASE] = "the base is not an absolute URL",
        [US_URL_DEPTH] = "the path has more segments than urlstore_max_depth "
                         "allows",
        [US_URL_ARGS] = "the query has more arguments than urlstore_max_args "
                        "allows",
        [US_URL_REPEAT] = "a group of path segments is repeated more often "
                          "than urlstore_max_repeat allows",
        [US_URL_REWRITE_LOOP] = "the rewrite rules of the zone change the URL "
                                "without end",
        [US_URL_BUDGET] = "the rules of the zone have used up the time of the "
                          "request: send fewer URLs at a time"
    };

    if (refusal->erased) {
        return us_put(p, "the URL, or its site, was erased, and is not added "
                         "until the erasure is lifted");
    }

    if (refusal->kind == US_INPUT_BAD) {
        why = us_str_of(refusal->why);
        why.len = why.len < US_REFUSAL_SENTENCE ? why.len
                                                : US_REFUSAL_SENTENCE;
        return us_put_str(p, why);
    }

    if (refusal->kind == US_INPUT_LONG || refusal->verdict == US_URL_LENGTH) {
        return us_json_printf(p, "a URL, or its base, has at most %u bytes "
                              "(urlstore_max_url)", max_url);
    }

    if (refusal->verdict == US_URL_RULE) {
        return us_json_printf(p, "the rule \"%V\" of the zone refuses the URL",
                              us_refusal_rule(refusal));
    }

    return us_put(p, sentences[refusal->verdict]);
}


static void
us_unready_say(us_unready_t *u, const char *text, const char *reason)
{
    snprintf(u->detail, sizeof(u->detail), "%s%s", text, reason);
}


void
us_unready(us_unready_t *u, const us_life_t *l, int overtaken)
{
    us_life_info_t   info;
    us_life_state_t  state;

    memset(u, 0, sizeof(us_unready_t));

    us_life_info(l, &info);
    state = us_life_state(l);

    /* until an operator does something */

    switch (state) {

    case US_LIFE_DAMAGED:
        us_unready_say(u, "the directory is damaged; the zone is read-only "
                       "and has what was stored before the damage: ",
                       info.reason);
        return;

    case US_LIFE_TOO_SMALL:
        us_unready_say(u, "", info.reason);
        return;

    case US_LIFE_FAILED:
        us_unready_say(u, l->conf.replicate ? ""
                          : "the directory cannot be read: ", info.reason);
        return;

    case US_LIFE_LOOKUP:
        us_unready_say(u, "this zone answers /url and /urls only "
                       "(mode=lookup)", "");
        return;

    default:
        break;
    }

    if (info.sync_failed) {
        us_unready_say(u, "read-only until a restart: ", info.reason);
        return;
    }

    u->passes = 1;

    if (state <= US_LIFE_LOADING) {
        u->loading = 1;
        u->progress = info.progress;

        snprintf(u->detail, sizeof(u->detail), "loading: %u%%%s%s",
                 u->progress, info.reason[0] ? ", " : "", info.reason);

    } else if (state == US_LIFE_FOLLOWING) {
        us_unready_say(u, "another server owns the directory", "");

    } else if (!us_life_current(l)) {
        us_unready_say(u, "this node has heard nothing of its log for longer "
                       "than stale=", "");

    } else if (state == US_LIFE_STANDBY) {
        us_unready_say(u, "this node is a standby: another one is the "
                       "primary, or this one is about to be", "");

    } else if (state == US_LIFE_STALLED) {
        us_unready_say(u, "the log does not confirm: ",
                       info.stalled ? info.reason
                                    : "another node may be the primary");

    } else if (state == US_LIFE_REPLICA) {
        u->primary = 1;
        us_unready_say(u, "this replica does not have it, or not yet", "");

    } else if (l->ending) {
        us_unready_say(u, "this process is ending", "");

    } else if (overtaken) {
        us_unready_say(u, "the directory was loaded meanwhile", "");

    } else {
        us_unready_say(u, "the disk is late: ",
                       info.stalled ? info.reason
                                    : "no write or sync has returned in time");
    }
}
