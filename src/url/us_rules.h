
/*
 * User rules, by PCRE2 with JIT: rewrite, reject, accept.
 *
 * Patterns are compiled while the configuration is read and are read-only
 * afterwards.  What a match needs (match data, limits, JIT stack) belongs to
 * one caller, us_rules_ws_t.  Every match has limits, so that neither a
 * pattern nor a URL can stall a worker; a match that meets one refuses the
 * URL, naming the rule.
 *
 * A caller with many URLs also has a budget of CPU time for all of them.
 * Nearly every match ends within a first, low limit, and is free.  A match that
 * does not is begun again with the full limit, and its CPU time is taken from
 * the budget.  When the budget is spent, such a match refuses its URL
 * (US_URL_BUDGET); URLs whose matches are free are not affected.
 *
 * Clients see a rule's name, never its expression: the name that it was given,
 * or its number among the rules of the normalizer, from 1.
 */


#ifndef _US_RULES_H_INCLUDED_
#define _US_RULES_H_INCLUDED_


#include "us_url.h"


typedef struct us_rules_s     us_rules_t;
typedef struct us_rules_ws_s  us_rules_ws_t;


typedef enum {
    US_RULE_REWRITE = 0,
    US_RULE_REJECT,
    US_RULE_ACCEPT
} us_rule_kind_t;


us_rules_t *us_rules_create(void);
void us_rules_destroy(us_rules_t *r);

/*
 * name may be empty: the number.  host, a glob or empty, and replacement are
 * those of a rewrite.  0, or -1: err says why.
 */
int us_rules_add(us_rules_t *r, us_rule_kind_t kind, us_str_t name,
    us_str_t host, us_str_t regex, us_str_t replacement, us_rule_error_t *err);

int us_rules_any(const us_rules_t *r);

us_rules_ws_t *us_rules_ws_create(const us_rules_t *r);
void us_rules_ws_destroy(us_rules_ws_t *ws);
void us_rules_ws_wipe(us_rules_ws_t *ws);

/* *ns is what is left of the budget, CPU time; NULL: there is none */
void us_rules_ws_budget(us_rules_ws_t *ws, uint64_t *ns);

/*
 * Applies all rewrites in order, once.  If one changed the URL, *changed is
 * 1 and text is the result, in ws until the next call.  explain may be NULL.
 */
us_verdict_t us_rules_apply(const us_rules_t *r, us_rules_ws_t *ws,
    const us_url_t *url, us_str_t *text, int *changed, us_str_t *rule,
    us_explain_pt explain, void *data);

/* the first filter that matches decides; none: accepted */
us_verdict_t us_rules_decide(const us_rules_t *r, us_rules_ws_t *ws,
    us_str_t href, us_str_t *rule);


#endif /* _US_RULES_H_INCLUDED_ */
