
/*
 * The figures of a zone in both formats, numbers as text, counters.
 */


#include "store_zone.h"
#include "us_clock.h"
#include "us_text.h"
#include "api/us_figures.h"

#include <math.h>


static us_figures_t  f;
static us_share_t    shared;
static char          all[65536];


/* all pieces, each in memory that ends where its room does */

static const char *
format(uint8_t *(*piece)(uint8_t *p, const us_figures_t *f, unsigned n))
{
    size_t    len;
    uint8_t  *p, *end;
    unsigned  n;

    len = 0;

    for (n = 0; n < 1000; n++) {
        p = malloc(US_FIGURES_PIECE);
        end = piece(p, &f, n);

        if (end) {
            assert_true(len + (end - p) < sizeof(all));
            memcpy(&all[len], p, end - p);
            len += end - p;
        }

        free(p);

        if (end == NULL) {
            break;
        }
    }

    all[len] = '\0';

    return all;
}


static void
has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        print_error("no \"%s\" in\n%s\n", part, text);
        fail();
    }
}


static void
has_not(const char *text, const char *part)
{
    if (strstr(text, part)) {
        print_error("\"%s\" in\n%s\n", part, text);
        fail();
    }
}


static void
look(us_figures_kind_t kind)
{
    memset(&f, 0, sizeof(f));
    f.kind = kind;
    f.zone = us_string("pages");
    f.conf = &zone_conf;
    f.uuid = zone_conf.uuid;
    f.sync = "1s";
    f.share = &shared;
    f.state = US_LIFE_READY;
    f.endpoints[0] = "add";
    f.endpoints[1] = "page";
    f.n[US_N_REQUESTS] = 11;
    f.n[US_N_REQUESTS + 1] = 12;
    f.n[us_counter_of(US_ANSWER_NEW)] = 3;
    f.n[us_counter_of(US_ANSWER_FULL)] = 4;
    f.n[US_N_HOT] = 5;
}


/* of a shard: beside those of its store */

static void
shard(void **state)
{
    zone_t                *z;
    const char            *s;
    static const uint8_t   cluster[16] = { 0xab, 0xcd };

    z = zone_create(4 << 20, 0);

    look(US_FIGURES_MEMORY);
    us_figures_store(&f, z->store);
    f.is_shard = 1;
    f.shard = 3;
    f.n[US_N_UNAVAILABLE] = 7;

    has_not(format(us_figures_stats), "\"cluster\"");

    f.cluster = cluster;
    f.map_version = 9;
    s = format(us_figures_stats);

    has(s, ",\"cluster\":\"abcd0000-0000-0000-0000-000000000000\","
           "\"persistent\":false,");
    has(s, ",\"shard\":3,\"map_version\":9,\"unavailable\":7,");

    s = format(us_figures_metrics);
    has(s, "urlstore_shard{zone=\"pages\",shard=\"3\"} 3\n");
    has(s, "urlstore_map_version{zone=\"pages\",shard=\"3\"} 9\n");
    has(s, "urlstore_unavailable_total{zone=\"pages\",shard=\"3\"} 7\n");

    zone_destroy(z);
}


static void
store(void **state)
{
    zone_t      *z;
    const char  *s;

    z = zone_create(4 << 20, 0);
    add(z->store, "http://a/");
    add(z->store, "http://b/");

    /* LSNs that were read at different times: no lag is less than 0 */

    us_store_set_written(z->store, us_store_published(z->store) + 5);
    us_store_set_durable(z->store, us_store_published(z->store) + 7);
    us_figures_store(&f, z->store);
    assert_int_equal(f.write_lag, 0);
    assert_int_equal(f.sync_lag, 0);
    assert_int_equal(f.unsynced, 0);
    us_store_set_written(z->store, us_store_published(z->store));
    us_store_set_durable(z->store, us_store_published(z->store));

    look(US_FIGURES_MEMORY);
    us_figures_store(&f, z->store);
    f.next_id = US_STORE_NO_ID;
    f.ready = 1;

    s = format(us_figures_stats);

    assert_ptr_equal(strstr(s, "{\"zone\":\"pages\",\"normalization\":"
                            "\"test\",\"state\":\"ready\",\"uuid\":"
                            "\"30313233-3435-3637-3839-616263646500\","
                            "\"persistent\":false,\"ready\":true,"
                            "\"writable\":false,\"full\":false,\"epoch\":0,"
                            "\"uptime\":0,\"urls\":2,\"next_id\":null,"
                            "\"deleted\":0,"), s);
    f.uuid = NULL;
    s = format(us_figures_stats);
    has(s, ",\"uuid\":null,\"persistent\"");
    has(s, ",\"hot_hits\":5,");
    has(s, ",\"parts\":{\"header\":");
    has(s, "},\"marks\":[\"visited\",\"todo\"],\"answers\":{\"new\":3,"
           "\"seen\":0,\"unseen\":0,\"invalid\":0,\"rejected\":0,"
           "\"full\":4,\"due\":0,\"refused\":0}}\n");
    has_not(s, "segment");
    has_not(s, "capacity");

    s = format(us_figures_metrics);

    has(s, "# HELP urlstore_ready 1 if look-ups are answered, 0 in any state "
           "but \"ready\".\n# TYPE urlstore_ready gauge\n"
           "urlstore_ready{zone=\"pages\"} 1\n");
    has(s, "# TYPE urlstore_hot_hits_total counter\n"
           "urlstore_hot_hits_total{zone=\"pages\"} 5\n");
    has(s, "urlstore_state{zone=\"pages\",state=\"ready\"} 1\n# HELP");
    has(s, "urlstore_requests_total{zone=\"pages\",endpoint=\"add\"} 11\n"
           "urlstore_requests_total{zone=\"pages\",endpoint=\"page\"} 12\n"
           "# HELP");
    has(s, "urlstore_answers_total{zone=\"pages\",status=\"full\"} 4\n");
    has(s, "urlstore_zone_used_bytes{zone=\"pages\",part=\"header\"} ");
    has_not(s, "next_id");
    has_not(s, "state=\"loading\"");

    zone_destroy(z);
}


static void
disk(void **state)
{
    const char  *s;

    look(US_FIGURES_DISK);
    f.state = US_LIFE_LOADING;
    shared.load_ms = 1063;
    f.bytes_per_url = 20.125;

    s = format(us_figures_stats);

    has(s, "\"state\":\"loading\",");
    has(s, ",\"persistent\":true,\"sync\":\"1s\",\"ready\":");
    has(s, ",\"replay_seconds\":1.063,");
    has(s, ",\"bytes_per_url\":20.13,");

    s = format(us_figures_metrics);

    has(s, "urlstore_state{zone=\"pages\",state=\"loading\"} 1\n");
    has(s, "urlstore_state{zone=\"pages\",state=\"ready\"} 0\n");
    has(s, "urlstore_replay_seconds{zone=\"pages\"} 1.063000000\n");
}


static uint64_t
now(void *data)
{
    return 5432;
}


/* a replicated store: of its directory it has nothing */

static void
replicated(void **state)
{
    zone_t       *z;
    const char   *s;
    us_share_t   *sh;
    us_life_t     l;

    static const us_replicate_conf_t  conf = { .node = "us_\"b" };

    z = zone_create(4 << 20, 0);
    sh = calloc(1, sizeof(us_share_t));
    memset(&l, 0, sizeof(l));
    l.sh = sh;
    l.store = z->store;
    l.env.now = now;
    l.conf.replicate = &conf;

    /* a standby, of a log that was never reached */

    us_share_set_state(sh, US_LIFE_LOADING, NULL);
    look(US_FIGURES_REPLICATED);
    f.uptime = 77;
    f.state = US_LIFE_LOADING;
    us_figures_store(&f, z->store);
    us_figures_life(&f, &l);
    s = format(us_figures_stats);
    has(s, "\"persistent\":true,\"node\":\"us_\\\"b\",\"holder\":\"\"");
    has(s, ",\"log_age\":77.000,");

    /* one that has the log up to 1000 of 1234 */

    us_share_set_state(sh, US_LIFE_STANDBY, NULL);
    sh->replicate.term = 5;
    (void) strcpy(sh->replicate.holder, "us_a");
    sh->replicate.acked = 1200;
    sh->replicate.end = 1234;
    sh->replicate.base = 400;
    sh->replicate.rebases = 2;
    sh->load_placed = 1;
    sh->replicate.seen = us_clock_boottime() - 2000;
    sh->replicate.deposed = 3;
    sh->load_lsn = 1000;
    f.state = US_LIFE_STANDBY;
    us_figures_life(&f, &l);
    assert_true(f.log.age >= 2000 && f.log.age < 60000);
    f.log.age = 2000;

    s = format(us_figures_stats);
    has(s, ",\"holder\":\"us_a\"");
    has(s, ",\"stalled\":false,");
    has(s, ",\"is_primary\":false,\"term\":5,\"confirmed\":1200,"
           "\"log_end\":1234,\"log_base\":400,\"lag_bytes\":234,"
           "\"log_age\":2.000,\"log_rows\":0,\"log_read_bytes\":0,"
           "\"failures\":0,\"rebases\":2,\"promotions\":0,\"deposed\":3,"
           "\"cached\":0,\"cache_off\":false,\"cache_failures\":0,"
           "\"cache_restarts\":0");
    has_not(s, "sync");

    s = format(us_figures_metrics);
    has(s, "urlstore_state{zone=\"pages\",state=\"standby\"} 1\n");
    has(s, "urlstore_state{zone=\"pages\",state=\"stalled\"} 0\n");
    has(s, "urlstore_state{zone=\"pages\",state=\"ready\"} 0\n");
    has_not(s, "state=\"damaged\"");
    has(s, "urlstore_primary{zone=\"pages\"} 0\n");
    has(s, "urlstore_log_lag_bytes{zone=\"pages\"} 234\n");
    has(s, "urlstore_log_base_lsn{zone=\"pages\"} 400\n");
    has(s, "urlstore_log_age_seconds{zone=\"pages\"} 2.000000000\n");

    /* the primary: one byte of what it has published is confirmed */

    assert_int_equal(us_store_set_lsn(z->store, 1001), 0);
    us_share_set_state(sh, US_LIFE_READY, NULL);
    sh->replicate.place.ends[0].sure.term = 6;
    sh->replicate.place.ends[0].sure.next = 1;
    sh->replicate.place.ends[0].last.next = 1;
    f.state = US_LIFE_STALLED;
    us_figures_life(&f, &l);
    assert_int_equal(f.log.lag, 1000);

    s = format(us_figures_stats);
    has(s, ",\"holder\":\"us_\\\"b\"");
    has(s, ",\"stalled\":true,");
    has(s, ",\"is_primary\":false,\"term\":6,\"confirmed\":1,");

    f.state = US_LIFE_READY;
    us_figures_life(&f, &l);
    has(format(us_figures_metrics), "urlstore_primary{zone=\"pages\"} 1\n");
    look(US_FIGURES_DISK);
    has_not(format(us_figures_metrics), "standby");

    free(sh);
    zone_destroy(z);
}


static void
filter(void **state)
{
    const char        *s;
    us_filter_t       *set;
    us_filter_plan_t   plan;

    assert_int_equal(us_filter_plan(1000, .01, 1 << 20, &plan), 0);
    set = aligned_alloc(4096, (plan.size + 4095) & ~(size_t) 4095);
    memset(set, 0, plan.size);
    (void) us_filter_format(set, &plan, zone_conf.hash_key, zone_conf.norm);

    look(US_FIGURES_FILTER);
    us_figures_filter(&f, set);

    s = format(us_figures_stats);

    has(s, "\"state\":\"ready\",\"filter\":true,\"ready\":");
    has(s, ",\"capacity\":1000,");
    has(s, ",\"error\":0.010000000,");
    has_not(s, "uuid");
    has_not(s, "marks");
    has_not(s, "parts");

    s = format(us_figures_metrics);

    has(s, "urlstore_filter_stated_error_ratio{zone=\"pages\"} "
           "0.010000000\n");
    has_not(s, "zone_used_bytes");

    free(set);
}


/* a zone with the longest name, and all numbers as long as they can be */

static void
longest(void **state)
{
    char              name[255];
    size_t            i;
    us_figures_t      saved;
    const char       *s;
    us_store_conf_t   conf;

    memset(name, 'z', sizeof(name));
    conf = zone_conf;

    look(US_FIGURES_DISK);
    saved = f;
    memset(&f, 0xff, sizeof(f));
    memset(&shared, 0xff, sizeof(shared));

    f.share = &shared;
    f.kind = saved.kind;
    f.cluster = conf.uuid;
    f.uuid = conf.uuid;
    f.zone = (us_str_t) { sizeof(name), (uint8_t *) name };
    f.conf = &conf;
    f.sync = saved.sync;
    f.state = saved.state;
    f.bytes_per_url = 1e15;
    f.uptime = (uint64_t) 1e15;
    f.filter.error = f.filter.expected = f.filter.filling = 1;

    for (i = 0; i < US_N_ENDPOINTS; i++) {
        f.endpoints[i] = "an endpoint's name";
    }

    conf.nmarks = US_STORE_MARKS;

    for (i = 0; i < US_STORE_MARKS; i++) {
        conf.marks[i].data = (uint8_t *) name;
        conf.marks[i].len = US_STORE_MARK_LEN;
    }

    s = format(us_figures_stats);
    assert_int_equal(s[strlen(s) - 2], '}');
    s = format(us_figures_metrics);
    assert_int_equal(s[strlen(s) - 1], '\n');
}


static void
batches(void **state)
{
    us_tally_t   *tallies;
    const char   *s;

    tallies = calloc(US_TALLIES, sizeof(us_tally_t));

    us_tally_batch(&tallies[0], 0);
    us_tally_batch(&tallies[1], 50);
    us_tally_batch(&tallies[2], 51);
    us_tally_batch(&tallies[3], 1000000);
    us_tally_batch(&tallies[US_TALLIES - 1], 1000001);
    us_tally_add(&tallies[5], US_N_BYTES, 70);
    us_tally_add(&tallies[6], US_N_BYTES, 7);

    look(US_FIGURES_MEMORY);
    us_tally_sums(tallies, f.n);
    assert_int_equal(f.n[US_N_BYTES], 77);

    s = format(us_figures_metrics);

    has(s, "# TYPE urlstore_batch_seconds histogram\n"
           "urlstore_batch_seconds_bucket{zone=\"pages\",le=\"0.00005\"} 2\n"
           "urlstore_batch_seconds_bucket{zone=\"pages\",le=\"0.0001\"} 3\n");
    has(s, "le=\"0.1\"} 3\n"
           "urlstore_batch_seconds_bucket{zone=\"pages\",le=\"1.0\"} 4\n"
           "urlstore_batch_seconds_bucket{zone=\"pages\",le=\"+Inf\"} 5\n"
           "urlstore_batch_seconds_sum{zone=\"pages\"} 2.000102000\n"
           "urlstore_batch_seconds_count{zone=\"pages\"} 5\n");

    free(tallies);
}


static const char *
u64(uint64_t n)
{
    static char  buf[US_U64_LEN + 1];

    *us_put_u64((uint8_t *) buf, n) = '\0';

    return buf;
}


static const char *
decimal(double n, unsigned places)
{
    static char  buf[US_DECIMAL_LEN + 1];

    *us_put_decimal((uint8_t *) buf, n, places) = '\0';

    return buf;
}


static void
numbers(void **state)
{
    char      buf[64];
    uint64_t  n;

    for (n = 1; n < UINT64_MAX / 10; n *= 10) {
        snprintf(buf, sizeof(buf), "%llu", (unsigned long long) n);
        assert_string_equal(u64(n), buf);
        snprintf(buf, sizeof(buf), "%llu", (unsigned long long) n - 1);
        assert_string_equal(u64(n - 1), buf);
        snprintf(buf, sizeof(buf), "%llu", (unsigned long long) n * 7 + 3);
        assert_string_equal(u64(n * 7 + 3), buf);
    }

    assert_string_equal(u64(UINT64_MAX), "18446744073709551615");

    assert_string_equal(decimal(0, 1), "0.0");
    assert_string_equal(decimal(.125, 2), "0.13");
    assert_string_equal(decimal(.996, 2), "1.00");
    assert_string_equal(decimal(1.05, 9), "1.050000000");
    assert_string_equal(decimal(1e-9, 9), "0.000000001");
    assert_string_equal(decimal(123456789.5, 3), "123456789.500");
    assert_string_equal(decimal(nextafter(8, 0), 9), "8.000000000");

    assert_string_equal(decimal(1.00005, 6), "1.000050");
    *us_put_hex((uint8_t *) buf, (const uint8_t *) "\x0a\xf0\x7f", 3) = '\0';
    assert_string_equal(buf, "0af07f");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(store),
        cmocka_unit_test(shard),
        cmocka_unit_test(disk),
        cmocka_unit_test(replicated),
        cmocka_unit_test(filter),
        cmocka_unit_test(longest),
        cmocka_unit_test(batches),
        cmocka_unit_test(numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
