
/*
 * Lists of ids and URLs: their formats, and which URLs of a store are wanted.
 */


#include "store_zone.h"
#include "api/us_list.h"


static us_list_t  list;


static void
is(uint8_t *p, uint8_t *end, const char *expected)
{
    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);
    free(p);
}


static void
id_is(const char *id, us_answer_t answer, const char *expected)
{
    uint8_t  *p;

    p = malloc(US_LIST_LINE);
    is(p, us_list_id(p, &list, (us_str_t) { strlen(id), (uint8_t *) id },
                     us_string("http://a/\""), answer), expected);
}


static void
url_is(uint64_t id, const us_str_t *url, const char *expected)
{
    uint8_t  *p;

    p = malloc(US_LIST_LINE);
    is(p, us_list_url(p, &list, id, url), expected);
}


static void
ends_are(const char *begin, const char *end, const char *next)
{
    uint8_t  *p;

    p = malloc(US_LIST_END);
    is(p, us_list_begin(p, &list), begin);
    p = malloc(US_LIST_END);
    is(p, us_list_end(p, &list), end);
    p = malloc(US_LIST_END);
    is(p, us_list_next(p, &list, 12, 1), next);
}


/* a line of an erasure is read as it was written, and no other is */

static void
erasures(void **state)
{
    size_t              i, len;
    unsigned            left, was;
    uint8_t             p[US_LIST_ERASURE], *end;
    us_str_t            text;
    us_erasure_info_t   e, read;

    static const char  line[] = "0.3_2.7\tsite\tlifted\t1\t12\t7\t-\t9\t-\t\n";
    static const char  object[] = "{\"erasure\":\"0.3_2.7\",\"kind\":\"site\"";

    static const char *const  bad[] = {
        "3\turls\tdone\t2\t1\t9\t9\t-\tfiles\n",
        "3\turl\tdone\t2\t1\t9\t9\t-\tfiles\tr\n",
        "3\turls\tunknown\t2\t1\t9\t9\t-\tfiles\tr\n",
        "-\turls\tdone\t2\t1\t9\t9\t-\tfiles\tr\n",
        "3\turls\tdone\t-\t1\t9\t9\t-\tfiles\tr\n",
        "3\turls\tdone\t2\t1\t9\t9\t-\tfiles\tr\tr\n",
        "3\turls\tdone\t2\t1\t9\t9\tx\tfiles\tr\n",
        "3\turls\tdone\t2\t1\t9\t9\t-\tfiles\t\xff\n", "\n", ""
    };

    memset(&e, 0, sizeof(e));
    e.number = 70;
    e.kind = US_ERASURE_SITE;
    e.state = US_ERASURE_LIFTED;
    e.created = 7;
    e.lifted = 9;
    e.listed = 1;
    e.deleted = 12;
    memset(e.text, 'r', US_ERASURE_REASON);
    e.reason = (us_str_t) { US_ERASURE_REASON, e.text };

    for (left = 0; left < 8; left++) {
        end = us_list_erasure(p, US_FORMAT_TEXT, &e, left, us_string(""));

        for (len = 0; len < (size_t) (end - p); len++) {
            text = (us_str_t) { len, p };
            assert_false(us_list_erasure_read(&text, &read, &was));
        }

        text = (us_str_t) { end - p, p };
        assert_true(us_list_erasure_read(&text, &read, &was));
        assert_int_equal(was, left);
        assert_int_equal(text.len, 0);
        assert_int_equal(read.reason.len, US_ERASURE_REASON);
        assert_memory_equal(read.text, e.text, US_ERASURE_REASON);
        read.reason = e.reason;
        assert_memory_equal(&read, &e, sizeof(e));
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        text = (us_str_t) { strlen(bad[i]), (const uint8_t *) bad[i] };
        assert_false(us_list_erasure_read(&text, &read, &left));
    }

    text = us_string("3\turls\tdone\t2\t1\t9\t9\t-\tmoon\t\n");
    assert_true(us_list_erasure_read(&text, &read, &left));
    assert_int_equal(left, -1u);

    /* its name at a router */

    e.reason.len = 0;
    end = us_list_erasure(p, US_FORMAT_TEXT, &e, 0, us_string("0.3_2.7"));
    assert_int_equal(end - p, strlen(line));
    assert_memory_equal(p, line, strlen(line));
    end = us_list_erasure(p, US_FORMAT_JSON, &e, -1u, us_string("0.3_2.7"));
    assert_memory_equal(p, object, strlen(object));
    assert_memory_equal(end - 13, ",\"reason\":\"\"}", 13);
}


static void
formats(void **state)
{
    us_str_t  url;

    url = us_string("http://a/");
    memset(&list, 0, sizeof(list));

    list.format = US_FORMAT_TEXT;
    ends_are("", "", "# next=12\n");
    id_is("7", US_ANSWER_SEEN, "7\thttp://a/\"\n");
    id_is("8", US_ANSWER_DELETED, "8\t-\tdeleted\n");
    id_is("9", US_ANSWER_UNKNOWN, "9\t-\tunknown\n");
    id_is("10", US_ANSWER_DAMAGED, "10\t-\tdamaged\n");
    url_is(7, &url, "7\thttp://a/\n");
    url_is(8, NULL, "8\t-\n");
    assert_int_equal(list.shown, 2);

    list.shown = 0;
    list.format = US_FORMAT_JSON;
    ends_are("{\"results\":[", "]}\n", "],\"next\":12}\n");
    id_is("7", US_ANSWER_SEEN,
          "{\"id\":7,\"url\":\"http://a/\\\"\",\"status\":\"ok\"}");
    id_is("8", US_ANSWER_DELETED,
          ",{\"id\":8,\"url\":null,\"status\":\"deleted\"}");
    url_is(9, &url, ",{\"id\":9,\"url\":\"http://a/\"}");
    url_is(10, NULL, ",{\"id\":10,\"url\":null,\"status\":\"deleted\"}");

    list.format = US_FORMAT_NDJSON;
    ends_are("", "", "{\"next\":12}\n");
    id_is("7", US_ANSWER_UNKNOWN,
          "{\"id\":7,\"url\":null,\"status\":\"unknown\"}\n");
    url_is(9, &url, "{\"id\":9,\"url\":\"http://a/\"}\n");

    list.format = US_FORMAT_TEXT;
    assert_int_equal(us_list_next((uint8_t *) "", &list, 12, 0) - (uint8_t *)
                     "", 0);
}


/* the time of the last claim: a column, a member; none where there is no URL */

static void
times(void **state)
{
    us_str_t  url;

    url = us_string("http://a/");
    memset(&list, 0, sizeof(list));
    list.times = 1;

    list.format = US_FORMAT_TEXT;
    id_is("7", US_ANSWER_SEEN, "7\thttp://a/\"\t-\n");
    id_is("8", US_ANSWER_DELETED, "8\t-\tdeleted\n");
    list.claimed = 1795336098;
    url_is(7, &url, "7\thttp://a/\t1795336098\n");
    url_is(8, NULL, "8\t-\t-\n");

    list.claimed = 1795336098;
    list.format = US_FORMAT_NDJSON;
    id_is("7", US_ANSWER_SEEN, "{\"id\":7,\"url\":\"http://a/\\\"\","
          "\"time\":1795336098,\"status\":\"ok\"}\n");
    id_is("8", US_ANSWER_DELETED,
          "{\"id\":8,\"url\":null,\"status\":\"deleted\"}\n");
    list.claimed = 0;
    url_is(7, &url, "{\"id\":7,\"url\":\"http://a/\",\"time\":null}\n");
}


static void
ids(void **state)
{
    assert_int_equal(us_list_is_id(us_string("0")), 1);
    assert_int_equal(us_list_is_id(
                         us_string("12345678901234567890123456789012")), 1);
    assert_int_equal(us_list_is_id(
                         us_string("123456789012345678901234567890123")), 0);
    assert_int_equal(us_list_is_id(us_string("")), 0);
    assert_int_equal(us_list_is_id(us_string("01")), 0);
    assert_int_equal(us_list_is_id(us_string("7 ")), 0);
}


/* the ids that are wanted, those of deleted URLs in brackets */

static void
wanted(us_store_t *s, us_select_t select, const char *expected)
{
    char      text[128];
    size_t    len;
    uint64_t  id;
    us_str_t  url;
    uint8_t   buf[US_URL_MAX + 8];

    len = 0;

    for (id = 0; id < us_store_next_id(s); id++) {

        switch (us_select(s, &select, id, buf, &url)) {

        case US_OK:
            len += sprintf(&text[len], "%d", (int) id);
            break;

        case US_DELETED:
            len += sprintf(&text[len], "[%d]", (int) id);
            break;

        default:
            break;
        }
    }

    text[len] = '\0';
    assert_string_equal(text, expected);
}


static void
selects(void **state)
{
    int          was;
    zone_t      *z;
    uint64_t     lsn;
    us_select_t  select;

    z = zone_create(4 << 20, 0);

    add(z->store, "http://a.com/");             /* 0 */
    add(z->store, "http://b.com/x");            /* 1 */
    add(z->store, "http://a.com/x/y");          /* 2 */
    add(z->store, "http://a.com:8/");           /* 3 */
    add(z->store, "http://ba.com/");            /* 4 */
    add(z->store, "https://b.com/");            /* 5 */

    assert_int_equal(us_store_delete(z->store, 3, &was, &lsn), US_OK);
    assert_int_equal(mark_put(z->store, 1, 2, 1, &lsn), US_OK);

    memset(&select, 0, sizeof(select));
    wanted(z->store, select, "01245");
    select.deleted = 1;
    wanted(z->store, select, "012[3]45");

    select.set = mark_set(z->store, 1);
    wanted(z->store, select, "2");
    select.outside = 1;
    wanted(z->store, select, "01[3]45");

    memset(&select, 0, sizeof(select));
    select.deleted = 1;
    select.prefix = us_string("http://a.com/");
    wanted(z->store, select, "02");
    select.prefix = us_string("http://a.com/x/y");
    wanted(z->store, select, "2");

    /* of a URL that ends before it: nothing past its end counts */

    select.prefix = us_string("http://a.com/x/yz and more");
    wanted(z->store, select, "");
    select.prefix = us_string("http://b.com/x/y");
    wanted(z->store, select, "");

    memset(&select, 0, sizeof(select));
    select.deleted = 1;
    select.site = us_string("b.com");
    wanted(z->store, select, "15");
    select.site = us_string("b.co");
    wanted(z->store, select, "");

    memset(&select, 0, sizeof(select));
    select.new_sites = 1;
    wanted(z->store, select, "014");

    zone_destroy(z);
}


/* lists, in a path or a body */

static void
checks(void **state)
{
    us_str_t  ids, id;

    /* the comma after the last one is of a body's list */

    ids = us_string("12,3,");

    assert_int_equal(us_str_cut(&ids, ',', &id), 1);
    assert_int_equal(id.len, 2);
    assert_memory_equal(id.data, "12", 2);
    assert_int_equal(us_str_cut(&ids, ',', &id), 1);
    assert_int_equal(id.len, 1);
    assert_memory_equal(id.data, "3", 1);
    assert_int_equal(ids.len, 0);
    assert_int_equal(us_str_cut(&ids, ',', &id), 0);
    assert_int_equal(id.len, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(erasures),
        cmocka_unit_test(times),
        cmocka_unit_test(ids),
        cmocka_unit_test(checks),
        cmocka_unit_test(selects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
