
/*
 * User rules: what they do, what is refused while they are read, and that no
 * pattern and no URL stalls a worker.
 */


#include "url_norm.h"

#include <time.h>


#define ANY  us_string("")

/* CPU time that a hostile URL may take, with sanitizers on a busy machine */
#define STALL_MS  500


static int
setup(void **state)
{
    create(US_PROFILE_CRAWLER);

    return 0;
}


static void
rewrite(const char *host, const char *regex, const char *replacement)
{
    us_rule_error_t  err;

    if (us_norm_add_rewrite(norm, ANY, str(host), str(regex), str(replacement),
                            &err) != 0)
    {
        fail_msg("%s: %s", regex, err.text);
    }
}


static void
reject(const char *regex)
{
    us_rule_error_t  err;

    assert_int_equal(us_norm_add_reject(norm, ANY, str(regex), &err), 0);
}


static void
accept(const char *regex)
{
    us_rule_error_t  err;

    assert_int_equal(us_norm_add_accept(norm, ANY, str(regex), &err), 0);
}


static void
refused(const char *in, us_verdict_t want, const char *rule)
{
    us_canon_t    out;
    us_verdict_t  rc;

    rc = us_normalize(norm, ws, str(in), NULL, &out);

    assert_string_equal(us_verdict_name(rc), us_verdict_name(want));
    assert_int_equal(us_verdict_rejected(rc), want >= US_URL_RULE);

    if (rule) {
        assert_int_equal(out.rule.len, strlen(rule));
        assert_memory_equal(out.rule.data, rule, strlen(rule));
    }
}


static void
rewrites_in_order(void **state)
{
    rewrite("", "/index\\.html$", "/");
    rewrite("", "^http://([^/]+)/old/(?<rest>.*)", "http://$1/new/${rest}");
    rewrite("", "/new/a", "/new/b");
    seal();

    becomes("http://x.org/index.html", "http://x.org/");
    becomes("http://x.org/old/a/index.html", "http://x.org/new/b/");
    becomes("http://x.org/c", "http://x.org/c");
}


/* all of them, as a session id may stand in a URL twice */

static void
rewrites_everywhere(void **state)
{
    rewrite("", "[?&]s=[0-9]+", "&");
    seal();

    becomes("http://x.org/a&s=1&s=2", "http://x.org/a&&");
    becomes("http://x.org/?s=1&a=1&s=2", "http://x.org/&&a=1&");
}


/* the result is normalized again, and then is what rules see */

static void
rewritten_is_normalized(void **state)
{
    rewrite("", "/up/", "/x/../");
    rewrite("", "/tilde/", "/%7e/");
    rewrite("", "^http:", "HTTPS:");
    seal();

    becomes("http://x.org/up/a", "https://x.org/a");
    becomes("http://x.org/tilde/a", "https://x.org/~/a");
}


static void
rewritten_may_be_invalid(void **state)
{
    rewrite("", "^http://a/", "ftp://a/");
    rewrite("", "^http://b/", "b");
    rewrite("", "^http://c/", "http://c:99999/");
    rewrite("", "^http://d/", "http://a b/");
    seal();

    refused("http://a/", US_URL_SCHEME, NULL);
    refused("http://b/", US_URL_NO_BASE, NULL);
    refused("http://c/", US_URL_PORT, NULL);
    refused("http://d/", US_URL_HOST, NULL);
}


static void
host_guard(void **state)
{
    rewrite("*.example.com", "/a/", "/b/");
    rewrite("one.org", "/a/", "/c/");
    seal();

    becomes("http://www.example.com/a/", "http://www.example.com/b/");
    becomes("http://example.com/a/", "http://example.com/a/");
    becomes("http://one.org:8080/a/", "http://one.org:8080/c/");
    becomes("http://two.org/one.org/a/", "http://two.org/one.org/a/");
}


static void
loop_a_b(void **state)
{
    rewrite("", "/a$", "/b");
    rewrite("", "/b$", "/a");
    seal();

    /* each round leads back: normalized, nothing has changed */

    becomes("http://x.org/a", "http://x.org/a");
    refused("http://x.org/b", US_URL_OK, NULL);
}


static void
loop_grows(void **state)
{
    rewrite("", "/a", "/a/a");
    seal();

    refused("http://x.org/a", US_URL_REWRITE_LOOP, NULL);
}


/*
 * Found by fuzz/url_rules: the fast path left the URL in the rules' own text,
 * which the next round wrote over while it was read.
 */

static void
rounds_do_not_share_text(void **state)
{
    rewrite("", "/two/(.*)$", "/three-is-longer/$1/$1");
    rewrite("", "/one/", "/two/");
    seal();

    becomes("http://www.example.com/one/abcdefgh",
            "http://www.example.com/three-is-longer/abcdefgh/abcdefgh");
}


static void
loop_grows_long(void **state)
{
    rewrite("", "/aaaa", "/aaaa!/aaaa");
    seal();

    refused("http://www.example.com/aaaa", US_URL_REWRITE_LOOP, NULL);
}


static void
loop_of_four_rounds_ends(void **state)
{
    rewrite("", "/9$", "/10");
    rewrite("", "/8$", "/9");
    rewrite("", "/7$", "/8");
    rewrite("", "/6$", "/7");
    rewrite("", "/5$", "/6");
    seal();

    becomes("http://x.org/6", "http://x.org/10");
    refused("http://x.org/5", US_URL_REWRITE_LOOP, NULL);
}


static void
first_filter_decides(void **state)
{
    accept("/keep/");
    reject("\\.exe$");
    reject("/private/");
    accept("\\.exe$");
    seal();

    becomes("http://x.org/keep/a.exe", "http://x.org/keep/a.exe");
    refused("http://x.org/a.exe", US_URL_RULE, "2");
    refused("http://x.org/private/", US_URL_RULE, "3");
    becomes("http://x.org/", "http://x.org/");
}


static void
only_what_is_accepted(void **state)
{
    accept("^http://one\\.org/");
    reject("");
    seal();

    becomes("http://ONE.org", "http://one.org/");
    refused("http://two.org/", US_URL_RULE, "2");
}


static void
a_hundred_rules(void **state)
{
    int         i;
    char        regex[40], replacement[40];
    us_canon_t  out;

    for (i = 0; i < 100; i++) {
        snprintf(regex, sizeof(regex), "/number-%d/", i);
        snprintf(replacement, sizeof(replacement), "/n/%d/", i);
        rewrite("", regex, replacement);
        snprintf(regex, sizeof(regex), "\\.ext%d$", i);
        reject(regex);
    }

    seal();

    becomes("http://x.org/number-99/number-0/", "http://x.org/n/99/n/0/");
    refused("http://x.org/a.ext99", US_URL_RULE, "200");
    assert_int_equal(us_normalize(norm, ws, us_string("http://x.org/"), NULL,
                                  &out), US_URL_OK);
}


static void
bad(const char *regex, size_t offset, const char *text)
{
    us_rule_error_t  err;

    assert_int_equal(us_norm_add_reject(norm, ANY, str(regex), &err), -1);
    assert_int_equal(err.offset, offset);
    assert_non_null(strstr(err.text, text));
    assert_non_null(strstr(err.text, "at offset"));

    assert_int_equal(us_norm_add_accept(norm, ANY, str(regex), &err), -1);
    assert_int_equal(us_norm_add_rewrite(norm, ANY, ANY, str(regex), ANY, &err),
                     -1);
    assert_int_equal(err.offset, offset);
}


static void
invalid_patterns(void **state)
{
    bad("a(b", 3, "missing closing parenthesis");
    bad("abc[", 4, "missing terminating ]");
    bad("*a", 0, "quantifier");
    bad("ab\\", 3, "\\ at end of pattern");
    bad("(?<n>a)(?<n>b)", 12, "same name");
    bad("(*UTF)a", 6, "using UTF is disabled");
    seal();

    /* what was refused left nothing behind */

    becomes("http://x.org/ab", "http://x.org/ab");
}


static void
bad_replacement(const char *replacement, size_t offset)
{
    us_rule_error_t  err;

    assert_int_equal(us_norm_add_rewrite(norm, ANY, ANY,
                                         us_string("(a)(?<n>b)"),
                                         str(replacement), &err), -1);
    assert_int_equal(err.offset, offset);
    assert_non_null(strstr(err.text, "replacement"));
}


static void
invalid_replacements(void **state)
{
    bad_replacement("x$", 1);
    bad_replacement("$1$2$3", 4);
    bad_replacement("${1", 0);
    bad_replacement("ab${}", 2);
    bad_replacement("$m", 0);
    bad_replacement("$99999999999999999999", 0);

    rewrite("", "(a)(?<n>b)", "$2${1}-$n-${n}$$");
    seal();

    becomes("http://x.org/-ab-", "http://x.org/-ba-b-b$-");
}


static double
cpu_ms(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}


/*
 * Patterns made to be bad against URLs made for them, as long as can be: runs
 * of one byte, each of which costs nearly as much as the limit allows.
 */

static void
catastrophic(void **state)
{
    size_t         i, n, run;
    double         from, ms, worst;
    us_canon_t     out;
    us_verdict_t   rc;

    static char  url[US_URL_MAX + 1];

    static const char *const  patterns[] = {
        "(a+)+$", "(x+x+)+y", "(a|aa)+$", "(a|a?)+$", "^(.*a){20}$",
        "(.*)(.*)(.*)(.*)(.*)z", ".*(/[^/]+)/[^/]+\\1/[^/]+\\1/",
        "((a*)*)*b", "(?=(a+))a*b\\1", "([a-z/]+)*[0-9]",
        "(?:a?){20}a{20}b", "(?:aa|a)+?b", "(a*)*(a*)*b$", "(.+)+z",
        "(*NO_JIT)(a|aa)+$", "(*NO_JIT)(?:a?){20}a{20}b"
    };

    worst = 0;

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        teardown(NULL);
        setup(NULL);
        rewrite("", patterns[i], "q");
        reject(patterns[i]);
        seal();

        for (run = 1; run < 80; run += 1 + run / 10) {
            n = sprintf(url, "http://x.org/");

            while (n + run + 5 < US_URL_MAX) {
                memset(url + n, run & 1 ? 'a' : 'x', run);
                n += run;
                url[n++] = run % 3 ? '!' : '/';
            }

            strcpy(url + n, "byz9");

            from = cpu_ms();
            rc = us_normalize(norm, ws, str(url), NULL, &out);
            ms = cpu_ms() - from;

            /* whatever the answer is, it is one, and it comes in time */

            assert_in_range(rc, US_URL_OK, US_URL_REWRITE_LOOP);

            if (ms > worst) {
                worst = ms;
                printf("%-40s %3zu %-8s %8.2f ms\n", patterns[i], run,
                       us_verdict_name(rc), ms);
            }

            if (ms > STALL_MS) {
                fail_msg("%s on runs of %zu takes %.0f ms", patterns[i], run,
                         ms);
            }
        }
    }
}


/* the limit refuses and names the rule, it does not let pass */

static void
limit_refuses(void **state)
{
    static char  url[2000];

    reject("(a|aa)+$");
    seal();

    strcpy(url, "http://x.org/");
    memset(url + strlen(url), 'a', 1000);
    strcat(url, "!");

    refused(url, US_URL_RULE, "1");
    becomes("http://x.org/!", "http://x.org/!");
}


/* names are the given ones, or numbers; a rule that is refused has none */

static void
names(void **state)
{
    us_rule_error_t  err;

    rewrite("", "/x/", "/y/");
    assert_int_equal(us_norm_add_reject(norm, us_string("traps"),
                                        us_string("/trap/"), &err), 0);
    assert_int_equal(us_norm_add_reject(norm, ANY, us_string("("), &err), -1);
    reject("/third/");
    seal();

    refused("http://x.org/trap/", US_URL_RULE, "traps");
    refused("http://x.org/third/", US_URL_RULE, "3");
}


static void
name_of(void *data, const char *step, us_str_t before, us_str_t after)
{
    strcpy(data, step);
}


/* explain does not show the expression either */

static void
name_of_a_step(void **state)
{
    char             step[100];
    us_canon_t       out;
    us_rule_error_t  err;

    assert_int_equal(us_norm_add_rewrite(norm, us_string("no-x"), ANY,
                                         us_string("/secret/x"),
                                         us_string("/"), &err), 0);
    seal();

    assert_int_equal(us_normalize_explain(norm, ws,
                                          us_string("http://a/secret/x"),
                                          NULL, &out, name_of, step),
                     US_URL_OK);
    assert_string_equal(step, "rewrite no-x");
}


/*
 * A budget ends what is slow, and nothing else: once it is spent, a match that
 * needs more than the first limit is refused at once, and others go on.
 */

static void
budget(void **state)
{
    size_t        i;
    double        from, ms;
    uint64_t      ns;
    us_canon_t    out;
    us_verdict_t  rc;

    static char  url[2000];

    reject("(a+)+$");
    rewrite("", "(b+)+c$", "q");
    seal();

    strcpy(url, "http://x.org/");
    memset(url + strlen(url), 'a', 1000);
    memset(url + strlen(url), 'b', 500);
    strcat(url, "!");

    ns = 20 * 1000 * 1000;
    us_norm_ws_budget(ws, &ns);

    becomes("http://x.org/bbbbc", "http://x.org/q");
    refused("http://x.org/a", US_URL_RULE, "1");
    assert_int_equal(ns, 20 * 1000 * 1000);

    from = cpu_ms();

    for (i = 0; i < 5000; i++) {
        rc = us_normalize(norm, ws, str(url), NULL, &out);

        assert_true(rc == US_URL_RULE || rc == US_URL_BUDGET);
        assert_true((ns == 0) >= (rc == US_URL_BUDGET));
    }

    ms = cpu_ms() - from;

    assert_int_equal(ns, 0);
    assert_int_equal(rc, US_URL_BUDGET);

    /* the free part of 5,000 URLs, sanitized, and no more */

    if (ms > 5000) {
        fail_msg("%.0f ms", ms);
    }

    becomes("http://x.org/bbbbc", "http://x.org/q");
    refused("http://x.org/a", US_URL_RULE, "1");

    /* without it all is as before */

    us_norm_ws_budget(ws, NULL);
    refused(url, US_URL_RULE, NULL);
}


/* what ends within its limit, but not within what is free, costs the budget */

static void
budget_of_a_match(void **state)
{
    int       i;
    uint64_t  ns;

    static char  url[4000];

    reject("(x+x+)+y");
    seal();

    strcpy(url, "http://x.org/");

    for (i = 0; i < 200; i++) {
        strcat(url, "xxxxxxxxxxxx/");
    }

    /* PCRE2 knows that a text without y does not match */

    strcat(url, "by");

    becomes(url, url);

    ns = (uint64_t) 1 << 40;
    us_norm_ws_budget(ws, &ns);
    becomes(url, url);
    assert_true(ns < (uint64_t) 1 << 40);

    ns = 0;
    refused(url, US_URL_BUDGET, NULL);

    us_norm_ws_budget(ws, NULL);
    becomes(url, url);

    /* what the rules have of a text goes, and they go on */

    us_norm_ws_wipe(ws);
    becomes(url, url);
}


int
main(void)
{
#define T(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)

    const struct CMUnitTest  tests[] = {
        T(rewrites_in_order), T(rewrites_everywhere),
        T(rewritten_is_normalized), T(rewritten_may_be_invalid),
        T(host_guard), T(loop_a_b), T(loop_grows), T(loop_grows_long),
        T(rounds_do_not_share_text),
        T(loop_of_four_rounds_ends), T(first_filter_decides),
        T(only_what_is_accepted), T(a_hundred_rules), T(invalid_patterns),
        T(invalid_replacements), T(catastrophic), T(limit_refuses),
        T(names), T(name_of_a_step), T(budget),
        T(budget_of_a_match)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
