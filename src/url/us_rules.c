
/*
 * User rules.  See us_rules.h.
 */


#include "us_rules.h"
#include "us_profile.h"

#define PCRE2_CODE_UNIT_WIDTH  8

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


/*
 * Limits of one match.  PCRE2 counts anew for each place where it tries to
 * begin a match, so the work is bounded by the length of the URL times the
 * limit.  The worst case in t/unit/url_rules.c, a pattern made to be bad and a
 * URL of 8,192 bytes made for it, takes 32 ms with 10,000 (5.7 with 2,000, 134
 * with 50,000); the rules that Nutch ships never come near that on real URLs.
 *  Without JIT a unit costs twenty times more.
 */

#define US_MATCH_LIMIT   10000
#define US_SLOW_LIMIT    500           /* of a pattern that has no JIT code */

/*
 * A match is tried with this limit first, which is free: it is not taken from
 * the caller's budget (us_rules.h).  It is a hundredth of US_MATCH_LIMIT: .3 ms
 * at the worst, and a microsecond or two for URLs of usual length.
 */

#define US_FREE_LIMIT    100
#define US_FREE_SLOW     5

#define US_DEPTH_LIMIT   250
#define US_HEAP_LIMIT    1024          /* KiB */

#define US_JIT_STACK     (64 * 1024)

/* a rewrite may not make a URL longer than this; it is normalized after */
#define US_REWRITE_MAX   (2 * US_URL_MAX)


typedef struct {
    pcre2_code       *code;
    us_str_t          name;
    us_str_t          regex;
    us_str_t          replacement;    /* of a rewrite */
    us_str_t          host;           /* glob, or empty */
    us_rule_kind_t    kind;
    uint32_t          limit;
    uint32_t          free_limit;
} us_rule_t;


struct us_rules_s {
    us_rule_t        *rule;
    unsigned          n;
    uint32_t          groups;         /* most of any rule, with group 0 */
};


struct us_rules_ws_s {
    pcre2_match_data     *data;
    pcre2_match_context  *context;
    pcre2_jit_stack      *stack;
    uint64_t             *budget;     /* ns; may be NULL */
    uint8_t               text[2][US_REWRITE_MAX];
    char                  step[200];  /* its name, for explain */
};


us_rules_t *
us_rules_create(void)
{
    us_rules_t  *r;

    r = calloc(1, sizeof(us_rules_t));

    if (r) {
        r->groups = 1;
    }

    return r;
}


static void
us_rule_free(us_rule_t *rule)
{
    pcre2_code_free(rule->code);
    free((void *) rule->name.data);
    free((void *) rule->regex.data);
    free((void *) rule->replacement.data);
    free((void *) rule->host.data);
}


void
us_rules_destroy(us_rules_t *r)
{
    if (r) {
        while (r->n) {
            us_rule_free(&r->rule[--r->n]);
        }

        free(r->rule);
        free(r);
    }
}


/* an empty string becomes an empty string that may be freed */

static int
us_str_copy(us_str_t *to, us_str_t from)
{
    uint8_t  *p;

    p = malloc(from.len + 1);

    if (p == NULL) {
        return -1;
    }

    if (from.len) {
        memcpy(p, from.data, from.len);
    }

    p[from.len] = '\0';

    to->data = p;
    to->len = from.len;

    return 0;
}


static int
us_rule_compile(us_rule_t *rule, us_rule_error_t *err)
{
    int          code;
    size_t       n, jit;
    PCRE2_SIZE   offset;

    rule->code = pcre2_compile(rule->regex.data, rule->regex.len,
                               PCRE2_NEVER_UTF | PCRE2_NEVER_UCP
                               | PCRE2_NEVER_BACKSLASH_C,
                               &code, &offset, NULL);

    if (rule->code == NULL) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *) err->text,
                                sizeof(err->text) - 40);
        n = strlen(err->text);
        snprintf(err->text + n, sizeof(err->text) - n, " at offset %zu",
                 (size_t) offset);
        err->offset = offset;

        return -1;
    }

    /* some platforms, and patterns with (*NO_JIT), have none */

    (void) pcre2_jit_compile(rule->code, PCRE2_JIT_COMPLETE);

    jit = 0;
    pcre2_pattern_info(rule->code, PCRE2_INFO_JITSIZE, &jit);
    rule->limit = jit ? US_MATCH_LIMIT : US_SLOW_LIMIT;
    rule->free_limit = jit ? US_FREE_LIMIT : US_FREE_SLOW;

    return 0;
}


/*
 * PCRE2 finds a bad replacement only when the pattern has matched: look now.
 * $n, ${n}, $name, ${name}, $$.
 */

static int
us_replacement_check(const us_rule_t *rule, uint32_t groups,
    us_rule_error_t *err)
{
    char       name[40];
    size_t     i, n, from;
    uint32_t   number;
    us_str_t   t;

    t = rule->replacement;

    for (i = 0; i < t.len; i++) {

        if (t.data[i] != '$') {
            continue;
        }

        from = i++;

        if (i < t.len && t.data[i] == '$') {
            continue;
        }

        n = i < t.len && t.data[i] == '{';
        i += n;

        for (number = 0; i < t.len && number < sizeof(name) - 1; i++) {
            if ((uint8_t) ((t.data[i] | 0x20) - 'a') > 25
                && (uint8_t) (t.data[i] - '0') > 9 && t.data[i] != '_')
            {
                break;
            }

            name[number++] = t.data[i];
        }

        name[number] = '\0';

        if (number == 0 || (n && (i == t.len || t.data[i] != '}'))) {
            snprintf(err->text, sizeof(err->text),
                     "invalid \"$\" in replacement at offset %zu", from);
            err->offset = from;
            return -1;
        }

        i -= !n;

        if ((uint8_t) (name[0] - '0') <= 9
            ? strtoul(name, NULL, 10) > groups
            : pcre2_substring_number_from_name(rule->code,
                                               (PCRE2_SPTR) name) < 0)
        {
            snprintf(err->text, sizeof(err->text),
                     "no group \"%s\" for the replacement at offset %zu",
                     name, from);
            err->offset = from;
            return -1;
        }
    }

    return 0;
}


int
us_rules_add(us_rules_t *r, us_rule_kind_t kind, us_str_t name, us_str_t host,
    us_str_t regex, us_str_t replacement, us_rule_error_t *err)
{
    char        number[16];
    uint32_t    groups;
    us_rule_t  *rule;

    err->offset = 0;

    if (name.len == 0) {
        name.len = snprintf(number, sizeof(number), "%u", r->n + 1);
        name.data = (const uint8_t *) number;
    }

    rule = realloc(r->rule, (r->n + 1) * sizeof(us_rule_t));

    if (rule == NULL) {
        snprintf(err->text, sizeof(err->text), "out of memory");
        return -1;
    }

    r->rule = rule;
    rule += r->n;
    memset(rule, 0, sizeof(us_rule_t));
    rule->kind = kind;

    if (us_str_copy(&rule->name, name) != 0
        || us_str_copy(&rule->host, host) != 0
        || us_str_copy(&rule->regex, regex) != 0
        || us_str_copy(&rule->replacement, replacement) != 0)
    {
        snprintf(err->text, sizeof(err->text), "out of memory");
        goto failed;
    }

    if (us_rule_compile(rule, err) != 0) {
        goto failed;
    }

    pcre2_pattern_info(rule->code, PCRE2_INFO_CAPTURECOUNT, &groups);

    if (us_replacement_check(rule, groups, err) != 0) {
        goto failed;
    }

    if (groups + 1 > r->groups) {
        r->groups = groups + 1;
    }

    r->n++;

    return 0;

failed:

    us_rule_free(rule);

    return -1;
}


int
us_rules_any(const us_rules_t *r)
{
    return r->n != 0;
}


us_rules_ws_t *
us_rules_ws_create(const us_rules_t *r)
{
    us_rules_ws_t  *ws;

    ws = malloc(sizeof(us_rules_ws_t));

    if (ws == NULL) {
        return NULL;
    }

    ws->data = pcre2_match_data_create(r->groups, NULL);
    ws->context = pcre2_match_context_create(NULL);
    ws->stack = pcre2_jit_stack_create(US_JIT_STACK, US_JIT_STACK, NULL);

    ws->budget = NULL;

    if (ws->data == NULL || ws->context == NULL) {
        us_rules_ws_destroy(ws);
        return NULL;
    }

    pcre2_set_depth_limit(ws->context, US_DEPTH_LIMIT);
    pcre2_set_heap_limit(ws->context, US_HEAP_LIMIT);

    if (ws->stack) {
        pcre2_jit_stack_assign(ws->context, NULL, ws->stack);
    }

    return ws;
}


void
us_rules_ws_wipe(us_rules_ws_t *ws)
{
    explicit_bzero(ws->text, sizeof(ws->text));
}


void
us_rules_ws_destroy(us_rules_ws_t *ws)
{
    if (ws) {
        pcre2_match_data_free(ws->data);
        pcre2_match_context_free(ws->context);
        pcre2_jit_stack_free(ws->stack);
        free(ws);
    }
}


void
us_rules_ws_budget(us_rules_ws_t *ws, uint64_t *ns)
{
    ws->budget = ns;
}


static int
us_rule_run(const us_rule_t *rule, us_rules_ws_t *ws, us_str_t text,
    uint8_t *to, PCRE2_SIZE *len, uint32_t limit)
{
    pcre2_set_match_limit(ws->context, limit);

    if (to == NULL) {
        return pcre2_match(rule->code, text.data, text.len, 0, 0, ws->data,
                           ws->context);
    }

    *len = US_REWRITE_MAX;

    return pcre2_substitute(rule->code, text.data, text.len, 0,
                            PCRE2_SUBSTITUTE_GLOBAL, ws->data, ws->context,
                            rule->replacement.data, rule->replacement.len,
                            to, len);
}


/* of this thread: other work on the machine does not count */

static uint64_t
us_rules_cpu(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


/*
 * pcre2_match(), or with `to` pcre2_substitute(), within the budget.  A result
 * of PCRE2_ERROR_CALLOUT means that it is spent.
 */

static int
us_rule_match(const us_rule_t *rule, us_rules_ws_t *ws, us_str_t text,
    uint8_t *to, PCRE2_SIZE *len)
{
    int       rc;
    uint64_t  ns;

    if (ws->budget == NULL) {
        return us_rule_run(rule, ws, text, to, len, rule->limit);
    }

    rc = us_rule_run(rule, ws, text, to, len, rule->free_limit);

    if (rc != PCRE2_ERROR_MATCHLIMIT) {
        return rc;
    }

    if (*ws->budget == 0) {
        return PCRE2_ERROR_CALLOUT;
    }

    ns = us_rules_cpu();
    rc = us_rule_run(rule, ws, text, to, len, rule->limit);
    ns = us_rules_cpu() - ns;

    *ws->budget -= ns < *ws->budget ? ns : *ws->budget;

    return rc;
}


/* a match that refuses, or that met a limit */

static us_verdict_t
us_rule_failed(const us_rule_t *rule, int rc, us_str_t *name)
{
    if (rc == PCRE2_ERROR_CALLOUT) {
        return US_URL_BUDGET;
    }

    *name = rule->name;

    return rc == PCRE2_ERROR_NOMEMORY ? US_URL_LENGTH : US_URL_RULE;
}


us_verdict_t
us_rules_apply(const us_rules_t *r, us_rules_ws_t *ws, const us_url_t *url,
    us_str_t *text, int *changed, us_str_t *name, us_explain_pt explain,
    void *data)
{
    int                rc;
    size_t             i;
    unsigned           turn;
    us_str_t           host, before;
    PCRE2_SIZE         len;
    const us_rule_t   *rule;

    *text = url->href;
    *changed = 0;
    host = us_url_hostname(url);
    turn = 0;

    for (i = 0; i < r->n; i++) {
        rule = &r->rule[i];

        if (rule->kind != US_RULE_REWRITE
            || (rule->host.len && !us_glob(rule->host, host)))
        {
            continue;
        }

        rc = us_rule_match(rule, ws, *text, ws->text[turn], &len);

        if (rc == 0) {
            continue;
        }

        if (rc < 0) {
            return us_rule_failed(rule, rc, name);
        }

        if (len == text->len && memcmp(text->data, ws->text[turn], len) == 0) {
            continue;
        }

        before = *text;
        text->data = ws->text[turn];
        text->len = len;
        turn ^= 1;
        *changed = 1;

        if (explain) {
            snprintf(ws->step, sizeof(ws->step), "rewrite %s",
                     (const char *) rule->name.data);
            explain(data, ws->step, before, *text);
        }
    }

    return US_URL_OK;
}


us_verdict_t
us_rules_decide(const us_rules_t *r, us_rules_ws_t *ws, us_str_t href,
    us_str_t *name)
{
    int               rc;
    size_t            i;
    const us_rule_t  *rule;

    for (i = 0; i < r->n; i++) {
        rule = &r->rule[i];

        if (rule->kind == US_RULE_REWRITE) {
            continue;
        }

        rc = us_rule_match(rule, ws, href, NULL, NULL);

        if (rc == PCRE2_ERROR_NOMATCH) {
            continue;
        }

        if (rc >= 0 && rule->kind == US_RULE_ACCEPT) {
            return US_URL_OK;
        }

        return us_rule_failed(rule, rc, name);
    }

    return US_URL_OK;
}
