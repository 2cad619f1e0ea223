
/*
 * Kept answers: the same key gets the same answer until its time or its
 * dropping; nothing else is ever returned, whichever instruction a process is
 * killed at.  And the 128 bit hash that names keys and requests.
 */


#include "us_base.h"
#include "idempotency/us_idem.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>


#define AREA  US_IDEM_MIN


/* the lock of an area that processes share: opens when its holder dies */

typedef struct {
    pthread_mutex_t  mutex;
    uint64_t         area[];
} shared_t;


static const uint8_t  secret[16] = "0123456789abcdef";

static uint64_t       seed = 1;


static uint64_t
rnd(uint64_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;

    return (seed >> 33) % n;
}


static void
nothing(void *data)
{
    /* void */
}


static void
enter(void *data)
{
    if (pthread_mutex_lock(data) == EOWNERDEAD) {
        pthread_mutex_consistent(data);
    }
}


static void
leave(void *data)
{
    pthread_mutex_unlock(data);
}


static const us_idem_lock_t  no_lock = { nothing, nothing, NULL };


static us_idem_t
area(size_t size)
{
    void       *mem;
    us_idem_t   t;

    mem = calloc(1, size);
    assert_non_null(mem);
    assert_int_equal(us_idem_format(mem, size, secret), 0);
    assert_int_equal(us_idem_open(&t, mem, &no_lock), 0);

    return t;
}


static us_idem_name_t
name(const us_idem_t *t, uint64_t n)
{
    us_hash128_t    h;
    us_idem_name_t  out;

    us_idem_name_init(t, &h);
    us_hash128_add(&h, (uint8_t *) &n, sizeof(n));
    us_hash128_end(&h, out.w);

    return out;
}


/* what the request n is answered: bytes that follow from n, as is its length */

static size_t
answer_of(uint64_t n, uint8_t *p)
{
    size_t  i, len;

    len = (n * 37) % 700;

    for (i = 0; i < len; i++) {
        p[i] = (uint8_t) (n * 31 + i * 7);
    }

    return len;
}


static us_idem_status_t
begin(us_idem_t *t, uint64_t n, uint64_t print, uint64_t now,
    us_idem_ticket_t *ticket, us_idem_answer_t *answer)
{
    us_idem_name_t  key, pr;

    key = name(t, n);
    pr = name(t, ~print);

    return us_idem_begin(t, &key, &pr, now, ticket, answer);
}


/* keeps the answer of n, in two parts */

static int
keep(us_idem_t *t, const us_idem_ticket_t *ticket, uint64_t n, uint64_t now,
    uint64_t until)
{
    size_t    len;
    uint8_t   buf[700];
    us_str_t  parts[2];

    len = answer_of(n, buf);

    parts[0].data = buf;
    parts[0].len = len / 3;
    parts[1].data = buf + len / 3;
    parts[1].len = len - len / 3;

    return us_idem_keep(t, ticket, parts, 2, now, until);
}


/* whether the kept answer of n is; 1 as well if it has just been dropped */

static int
whole(us_idem_t *t, uint64_t n, const us_idem_answer_t *answer, int *dropped)
{
    size_t   len;
    uint8_t  want[700], got[700];

    len = answer_of(n, want);

    if (answer->len != len) {
        return 0;
    }

    *dropped = (us_idem_copy(t, answer, got) != 0);

    return *dropped || memcmp(got, want, len) == 0;
}


/* one whole request */

static us_idem_status_t
request(us_idem_t *t, uint64_t n, uint64_t now, uint64_t until)
{
    int               dropped;
    us_idem_answer_t  answer;
    us_idem_status_t  status;
    us_idem_ticket_t  ticket;

    status = begin(t, n, n, now, &ticket, &answer);

    if (status == US_IDEM_NEW) {
        assert_int_equal(keep(t, &ticket, n, now, until), 0);

    } else if (status == US_IDEM_KEPT) {
        assert_true(whole(t, n, &answer, &dropped));
        assert_false(dropped);
    }

    return status;
}


/* SipHash in the words of its paper, for any number of rounds */

static void
sip_rounds(uint64_t v[4], unsigned n)
{
#define ROTL(x, b)  (((x) << (b)) | ((x) >> (64 - (b))))

    while (n--) {
        v[0] += v[1]; v[1] = ROTL(v[1], 13); v[1] ^= v[0];
        v[0] = ROTL(v[0], 32);
        v[2] += v[3]; v[3] = ROTL(v[3], 16); v[3] ^= v[2];
        v[0] += v[3]; v[3] = ROTL(v[3], 21); v[3] ^= v[0];
        v[2] += v[1]; v[1] = ROTL(v[1], 17); v[1] ^= v[2];
        v[2] = ROTL(v[2], 32);
    }
}


static void
sip128(unsigned c, unsigned d, const uint8_t *p, size_t len, uint64_t out[2])
{
    size_t    i, k;
    uint64_t  m, v[4];

    static const uint64_t  key[2] = { 0x0706050403020100,
                                      0x0f0e0d0c0b0a0908 };

    v[0] = key[0] ^ 0x736f6d6570736575;
    v[1] = key[1] ^ 0x646f72616e646f6d ^ 0xee;
    v[2] = key[0] ^ 0x6c7967656e657261;
    v[3] = key[1] ^ 0x7465646279746573;

    for (i = 0; i <= len / 8; i++) {
        m = (i == len / 8) ? (uint64_t) len << 56 : 0;

        for (k = 0; k < 8 && i * 8 + k < len; k++) {
            m |= (uint64_t) p[i * 8 + k] << (8 * k);
        }

        v[3] ^= m;
        sip_rounds(v, c);
        v[0] ^= m;
    }

    v[2] ^= 0xee;
    sip_rounds(v, d);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];

    v[1] ^= 0xdd;
    sip_rounds(v, d);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}


static void
test_hash(void **state)
{
    size_t        i, len, a, b;
    uint8_t       key[16], text[64];
    uint64_t      want[2], out[2];
    us_hash128_t  h;

    /* vectors_sip128 of the authors' code: SipHash-2-4-128 */

    static const uint64_t  known[][2] = {
        { 0xe6a825ba047f81a3, 0x930255c71472f66d },
        { 0x44af996bd8c187da, 0x45fc229b11597634 },
        { 0xc75da4a48d227781, 0xe4ff0af6de8ba3fc }
    };

    for (i = 0; i < sizeof(text); i++) {
        text[i] = i;
        key[i & 15] = i & 15;
    }

    for (len = 0; len < 3; len++) {
        sip128(2, 4, text, len, out);
        assert_true(out[0] == known[len][0] && out[1] == known[len][1]);
    }

    for (len = 0; len < 40; len++) {
        sip128(1, 3, text, len, want);

        for (a = 0; a <= len; a++) {
            for (b = a; b <= len; b++) {
                us_hash128_init(&h, key);
                us_hash128_add(&h, text, a);
                us_hash128_add(&h, text + a, b - a);
                us_hash128_add(&h, text + b, len - b);
                us_hash128_end(&h, out);
                assert_true(out[0] == want[0] && out[1] == want[1]);
            }
        }
    }
}


static void
test_key(void **state)
{
    size_t    i, len;
    uint8_t   buf[US_IDEM_KEY_MAX];
    us_str_t  s;
    char      text[2 * US_IDEM_KEY_MAX + 8];

    static const struct {
        const char  *value;
        const char  *key;             /* NULL: refused */
    } cases[] = {
        { "a", "a" },
        { "\"a\"", "a" },
        { "\"a b, c; d\"", "a b, c; d" },
        { "\"a\\\"b\\\\c\"", "a\"b\\c" },
        { "8e03978e-40d5-43e8-bc93-6894a57f9324",
          "8e03978e-40d5-43e8-bc93-6894a57f9324" },
        { "", NULL },
        { "\"", NULL },
        { "\"\"", NULL },
        { "\"a", NULL },
        { "a\"", NULL },
        { "a\"b", NULL },
        { "\"a\"b\"", NULL },
        { "\"a\\\"", NULL },
        { "\"a\\b\"", NULL },
        { "a\\b", NULL },
        { "\"a\";p=1", NULL },
        { "a;p=1", NULL },
        { "a, b", NULL },
        { "a b", NULL },
        { "a\tb", NULL },
        { "\"a\tb\"", NULL },
        { "\"\177\"", NULL },
        { "\303\251", NULL },
        { "\"\303\251\"", NULL }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.data = (const uint8_t *) cases[i].value;
        s.len = strlen(cases[i].value);
        len = us_idem_key(s, buf);

        if (cases[i].key == NULL) {
            assert_int_equal(len, 0);

        } else {
            assert_int_equal(len, strlen(cases[i].key));
            assert_memory_equal(buf, cases[i].key, len);
        }
    }

    /* the longest, and one more; an escape counts as what it stands for */

    memset(text, 'x', sizeof(text));
    s.data = (const uint8_t *) text;
    s.len = US_IDEM_KEY_MAX;
    assert_int_equal(us_idem_key(s, buf), US_IDEM_KEY_MAX);
    s.len++;
    assert_int_equal(us_idem_key(s, buf), 0);

    text[0] = text[2 * US_IDEM_KEY_MAX + 1] = '"';
    memset(text + 1, '\\', 2 * US_IDEM_KEY_MAX);
    s.len = 2 * US_IDEM_KEY_MAX + 2;
    assert_int_equal(us_idem_key(s, buf), US_IDEM_KEY_MAX);

    text[2 * US_IDEM_KEY_MAX + 1] = 'x';
    text[2 * US_IDEM_KEY_MAX + 2] = '"';
    s.len++;
    assert_int_equal(us_idem_key(s, buf), 0);
}


static void
test_way(void **state)
{
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket, other;

    t = area(AREA);

    /* new, under way, kept; with another print it is another request */

    assert_int_equal(begin(&t, 1, 1, 100, &ticket, &answer), US_IDEM_NEW);
    assert_int_equal(begin(&t, 1, 1, 100, &other, &answer),
                     US_IDEM_UNDER_WAY);
    assert_int_equal(begin(&t, 1, 2, 100, &other, &answer), US_IDEM_OTHER);

    assert_int_equal(keep(&t, &ticket, 1, 100, 200), 0);

    assert_int_equal(begin(&t, 1, 2, 199, &other, &answer), US_IDEM_OTHER);
    assert_int_equal(request(&t, 1, 199, 0), US_IDEM_KEPT);
    assert_int_equal(request(&t, 1, 199, 0), US_IDEM_KEPT);

    /* its time has come; the next answer has a time of its own */

    assert_int_equal(begin(&t, 1, 2, 200, &ticket, &answer), US_IDEM_NEW);
    us_idem_release(&t, &ticket);
    assert_int_equal(request(&t, 1, 200, 300), US_IDEM_NEW);
    assert_int_equal(request(&t, 1, 299, 0), US_IDEM_KEPT);

    /* released: as if it had not been */

    assert_int_equal(begin(&t, 5, 5, 300, &ticket, &answer), US_IDEM_NEW);
    us_idem_release(&t, &ticket);
    assert_int_equal(begin(&t, 5, 6, 300, &ticket, &answer), US_IDEM_NEW);
    us_idem_release(&t, &ticket);

    assert_null(us_idem_check(&t));
    free(t.head);
}


/* names that differ in one of their words are different names */

static void
test_names(void **state)
{
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    static const us_idem_name_t  a = { { 1, 1 } }, b = { { 1, 2 } },
                                 c = { { 2, 1 } };

    t = area(AREA);

    assert_int_equal(us_idem_begin(&t, &a, &a, 1, &ticket, &answer),
                     US_IDEM_NEW);
    assert_int_equal(us_idem_begin(&t, &a, &b, 1, &ticket, &answer),
                     US_IDEM_OTHER);
    assert_int_equal(us_idem_begin(&t, &a, &c, 1, &ticket, &answer),
                     US_IDEM_OTHER);
    assert_int_equal(us_idem_begin(&t, &b, &a, 1, &ticket, &answer),
                     US_IDEM_NEW);
    assert_int_equal(us_idem_begin(&t, &c, &a, 1, &ticket, &answer),
                     US_IDEM_NEW);

    assert_int_equal(keep(&t, &ticket, 1, 1, 2), 0);

    assert_int_equal(us_idem_begin(&t, &c, &b, 1, &ticket, &answer),
                     US_IDEM_OTHER);
    assert_int_equal(us_idem_begin(&t, &b, &a, 1, &ticket, &answer),
                     US_IDEM_UNDER_WAY);

    free(t.head);
}


static void
test_sizes(void **state)
{
    size_t            max, len;
    uint8_t          *p, *got;
    us_str_t          part;
    us_idem_t         t;
    us_idem_info_t    info;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    p = calloc(1, US_IDEM_MIN);
    assert_int_equal(us_idem_format(p, US_IDEM_MIN - 1, secret), -1);
    assert_int_equal(us_idem_open(&t, p, &no_lock), -1);
    free(p);

    t = area(AREA);
    max = us_idem_answer_max(&t);
    assert_true(max > AREA / 10 && max < AREA / 8);

    p = malloc(max + 1);
    got = malloc(max + 1);
    memset(p, 'x', max + 1);
    part.data = p;

    for (len = max; len <= max + 1; len++) {
        part.len = len;

        assert_int_equal(begin(&t, len, 0, 1, &ticket, &answer), US_IDEM_NEW);
        assert_int_equal(us_idem_keep(&t, &ticket, &part, 1, 1, 2),
                         len == max ? 0 : -1);

        /* what is too long is forgotten, and not under way */

        assert_int_equal(begin(&t, len, 0, 1, &ticket, &answer),
                         len == max ? US_IDEM_KEPT : US_IDEM_NEW);
    }

    answer.at = 0;
    answer.len = max;
    assert_int_equal(us_idem_copy(&t, &answer, got), 0);
    assert_memory_equal(got, p, max);

    us_idem_info(&t, &info);
    assert_int_equal(info.size, AREA);
    assert_true(info.used >= max && info.used < max + 100);
    assert_int_equal(info.dropped, 0);

    free(got);
    free(p);
    free(t.head);

    /* of a great area the longest answer is a constant */

    t = area(64 * 1024 * 1024);
    assert_int_equal(us_idem_answer_max(&t), US_IDEM_ANSWER_MAX);
    free(t.head);
}


/* the oldest go first; each that is left is whole, wherever the ring ends */

static void
test_oldest(void **state)
{
    uint64_t          n, first, gone;
    us_idem_t         t;
    us_idem_info_t    info;
    us_idem_answer_t  answer, old;
    us_idem_ticket_t  ticket;

    t = area(AREA);

    assert_int_equal(request(&t, 0, 1, 9), US_IDEM_NEW);
    assert_int_equal(begin(&t, 0, 0, 1, &ticket, &old), US_IDEM_KEPT);

    first = 0;

    for (n = 1; n < 2000; n++) {
        assert_int_equal(request(&t, n, 1, 9), US_IDEM_NEW);

        if (n % 50) {
            continue;
        }

        /* first .. n are there, and no other */

        for (gone = 0; gone <= n; gone++) {
            if (begin(&t, gone, gone, 1, &ticket, &answer) == US_IDEM_KEPT) {
                break;
            }

            us_idem_release(&t, &ticket);
        }

        assert_true(gone >= first);
        first = gone;

        us_idem_info(&t, &info);
        assert_int_equal(info.dropped, first);
        assert_true(info.used <= AREA);

        for ( /* void */ ; gone <= n; gone++) {
            assert_int_equal(request(&t, gone, 1, 9), US_IDEM_KEPT);
        }
    }

    assert_true(first > 1500 && first < 1950);
    assert_int_equal(us_idem_copy(&t, &old, (uint8_t *) &ticket), -1);
    assert_null(us_idem_check(&t));

    free(t.head);
}


/* against a list of what was kept: each request, at random, as it must be */

static void
test_model(void **state)
{
    uint64_t   i, n, now, until[64];
    us_idem_t  t;

    t = area(AREA);
    memset(until, 0, sizeof(until));
    now = 1;

    /* 64 answers always fit: nothing is dropped before its time */

    for (i = 0; i < 20000; i++) {
        n = rnd(64);
        now += rnd(3);

        if (until[n] > now) {
            assert_int_equal(request(&t, n, now, 0), US_IDEM_KEPT);

        } else {
            until[n] = now + 1 + rnd(40);
            assert_int_equal(request(&t, n, now, until[n]), US_IDEM_NEW);
        }
    }

    assert_null(us_idem_check(&t));
    free(t.head);
}


/* expired entries leave by themselves, some with each request */

static void
test_expired(void **state)
{
    uint64_t        n;
    us_idem_t       t;
    us_idem_info_t  info;

    t = area(AREA);

    for (n = 1; n <= 60; n++) {
        (void) request(&t, n, 1, 2);
    }

    for (n = 101; n <= 104; n++) {
        (void) request(&t, n, 2, 9);
    }

    us_idem_info(&t, &info);
    assert_int_equal(info.dropped, 0);
    assert_true(info.used > 0 && info.used < 5 * 800);

    free(t.head);
}


static void
test_busy(void **state)
{
    uint64_t          n, i;
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  tickets[64], ticket;

    t = area(AREA);

    for (n = 0; n < 64; n++) {
        if (begin(&t, n, n, 1, &tickets[n], &answer) != US_IDEM_NEW) {
            break;
        }
    }

    assert_int_equal(n, 32);
    assert_int_equal(begin(&t, n, n, 1, &ticket, &answer), US_IDEM_BUSY);

    for (i = 0; i < n; i++) {
        assert_int_equal(begin(&t, i, i, 1, &ticket, &answer),
                         US_IDEM_UNDER_WAY);
    }

    us_idem_release(&t, &tickets[7]);
    assert_int_equal(begin(&t, n, n, 1, &ticket, &answer), US_IDEM_NEW);
    assert_int_equal(begin(&t, 7, 7, 1, &ticket, &answer), US_IDEM_BUSY);

    free(t.head);
}


static us_idem_t
shared(void)
{
    shared_t             *sh;
    us_idem_t             t;
    us_idem_lock_t        lock;
    pthread_mutexattr_t   attr;

    sh = mmap(NULL, sizeof(shared_t) + AREA, PROT_READ|PROT_WRITE,
              MAP_ANONYMOUS|MAP_SHARED, -1, 0);
    assert_ptr_not_equal(sh, MAP_FAILED);

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&sh->mutex, &attr);

    lock.lock = enter;
    lock.unlock = leave;
    lock.data = &sh->mutex;

    assert_int_equal(us_idem_format(sh->area, AREA, secret), 0);
    assert_int_equal(us_idem_open(&t, sh->area, &lock), 0);

    return t;
}


/* a process that has begun n requests, key `from` first, and waits */

static pid_t
holder(us_idem_t *t, uint64_t from, uint64_t n)
{
    int               fd[2];
    char              c;
    pid_t             pid;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    assert_int_equal(pipe(fd), 0);
    pid = fork();

    if (pid == 0) {
        t->self = us_process_self();

        for ( /* void */ ; n; n--, from++) {
            (void) begin(t, from, from, 1, &ticket, &answer);
        }

        (void) !write(fd[1], "x", 1);
        pause();
        _exit(0);
    }

    assert_int_equal(read(fd[0], &c, 1), 1);

    close(fd[0]);
    close(fd[1]);

    return pid;
}


static void
reap(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}


/* keys and places of a dead process are free, those of a live one are not */

static void
test_dead(void **state)
{
    pid_t             pid;
    uint64_t          n;
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    t = shared();
    pid = holder(&t, 0, 32);

    assert_int_equal(begin(&t, 3, 3, 1, &ticket, &answer), US_IDEM_UNDER_WAY);
    assert_int_equal(begin(&t, 3, 4, 1, &ticket, &answer), US_IDEM_OTHER);
    assert_int_equal(begin(&t, 99, 99, 1, &ticket, &answer), US_IDEM_BUSY);

    reap(pid);

    assert_int_equal(begin(&t, 99, 99, 1, &ticket, &answer), US_IDEM_NEW);
    assert_int_equal(begin(&t, 3, 4, 1, &ticket, &answer), US_IDEM_NEW);
    assert_int_equal(begin(&t, 3, 4, 1, &ticket, &answer), US_IDEM_UNDER_WAY);

    for (n = 10; n < 30; n++) {
        assert_int_equal(request(&t, n, 1, 2), US_IDEM_NEW);
        assert_int_equal(request(&t, n, 1, 2), US_IDEM_KEPT);
    }

    munmap((shared_t *) t.lock.data, sizeof(shared_t) + AREA);
}


/* two processes die one after the other, with the same key under way */

static void
test_dead_twice(void **state)
{
    pid_t             a, b;
    uint64_t          n;
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  tickets[31], ticket;

    t = shared();

    /* a has the last place, and b could have an earlier one */

    for (n = 0; n < 31; n++) {
        assert_int_equal(begin(&t, n, n, 1, &tickets[n], &answer),
                         US_IDEM_NEW);
    }

    a = holder(&t, 99, 1);

    for (n = 0; n < 31; n++) {
        us_idem_release(&t, &tickets[n]);
    }

    reap(a);

    b = holder(&t, 99, 1);
    reap(b);

    assert_int_equal(begin(&t, 99, 99, 1, &ticket, &answer), US_IDEM_NEW);

    munmap((shared_t *) t.lock.data, sizeof(shared_t) + AREA);
}


/* what the process that is stepped does: new keys, drops, wraps, releases */

static void
script(us_idem_t *t)
{
    uint64_t          n;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    for (n = 1000; n < 1004; n++) {
        (void) begin(t, n, n, 1, &ticket, &answer);
        (void) keep(t, &ticket, n, 1, 9);
    }

    (void) begin(t, 2000, 2000, 1, &ticket, &answer);
    us_idem_release(t, &ticket);
    _exit(0);
}


/* the area as a killed process has left it, in the eyes of the others */

static void
look(const us_idem_t *shared_area, void *copy)
{
    uint64_t          n, kept;
    us_idem_t         t;
    us_idem_answer_t  answer;
    us_idem_ticket_t  ticket;

    memcpy(copy, shared_area->head, AREA);
    assert_int_equal(us_idem_open(&t, copy, &no_lock), 0);
    assert_null(us_idem_check(&t));

    /* each is whole, or new and can be kept; of old ones the last are left */

    kept = 0;

    for (n = 900; n < 1000; n++) {
        if (begin(&t, n, n, 1, &ticket, &answer) == US_IDEM_KEPT) {
            assert_int_equal(request(&t, n, 1, 9), US_IDEM_KEPT);
            kept++;

        } else {
            assert_int_equal(kept, 0);
            us_idem_release(&t, &ticket);
        }
    }

    assert_true(kept > 50);

    for (n = 1000; n < 1005; n++) {
        (void) request(&t, n, 1, 9);
        assert_int_equal(request(&t, n, 1, 9), US_IDEM_KEPT);
    }

    assert_int_equal(begin(&t, 2000, 2000, 1, &ticket, &answer), US_IDEM_NEW);
    assert_null(us_idem_check(&t));
}


/*
 * A process is stepped instruction by instruction, and each state of the area
 * that it goes through is looked at.
 */

static void
test_steps(void **state)
{
    int           status;
    void         *copy, *last;
    pid_t         pid;
    uint64_t      n, states;
    us_idem_t     t;
    us_process_t  dead;

    t = shared();

    for (n = 700; n < 1000; n++) {
        assert_int_equal(request(&t, n, 1, 9), US_IDEM_NEW);
    }

    /* the identity of a process that is gone */

    pid = fork();

    if (pid == 0) {
        _exit(0);
    }

    dead = (us_process_t) 1 << US_PROCESS_PID_BITS | (us_process_t) pid;
    waitpid(pid, NULL, 0);

    pid = fork();

    if (pid == 0) {
        t.self = dead;
        t.lock = no_lock;
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        script(&t);
    }

    copy = malloc(AREA);
    last = malloc(AREA);
    memcpy(last, t.head, AREA);
    states = 0;

    for ( ;; ) {
        assert_int_equal(waitpid(pid, &status, 0), pid);

        if (!WIFSTOPPED(status)) {
            break;
        }

        if (memcmp(last, t.head, AREA) != 0) {
            memcpy(last, t.head, AREA);
            look(&t, copy);
            states++;
        }

        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    }

    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(states > 60);
    assert_int_equal(request(&t, 1003, 1, 9), US_IDEM_KEPT);

    free(last);
    free(copy);
    munmap((shared_t *) t.lock.data, sizeof(shared_t) + AREA);
}


/* keeps and reads until it is killed; ends if an answer is not whole */

static void
worker(us_idem_t *t, uint64_t now)
{
    int               dropped;
    uint64_t          n;
    us_idem_answer_t  answer;
    us_idem_status_t  status;
    us_idem_ticket_t  ticket;

    for ( ;; ) {
        n = rnd(200);
        status = begin(t, n, n, now, &ticket, &answer);

        if ((status == US_IDEM_NEW
             && keep(t, &ticket, n, now, now + 1 + rnd(2)) != 0)
            || (status == US_IDEM_KEPT && !whole(t, n, &answer, &dropped))
            || status >= US_IDEM_OTHER)
        {
            _exit(1);
        }
    }
}


/* two processes, each killed after a moment; US_KILLS: how often */

static void
test_kills(void **state)
{
    int          status;
    pid_t        pid[2];
    unsigned     i, k, kills;
    uint64_t     n;
    us_idem_t    t;
    const char  *env;

    env = getenv("US_KILLS");
    kills = env ? atoi(env) : 30;
    t = shared();

    for (i = 0; i < kills; i++) {

        for (k = 0; k < 2; k++) {
            pid[k] = fork();

            if (pid[k] == 0) {
                t.self = us_process_self();
                seed = i * 2 + k;
                worker(&t, i);
            }
        }

        usleep(2000 + rnd(3000));

        for (k = 0; k < 2; k++) {
            kill(pid[k], SIGKILL);
            waitpid(pid[k], &status, 0);
            assert_true(WIFSIGNALED(status));
        }

        assert_null(us_idem_check(&t));

        /* an answer each for all keys, until they are dropped in order */

        for (n = 0; n < 200; n++) {
            (void) request(&t, n, i, i + 1);
            assert_int_equal(request(&t, n, i, i + 1), US_IDEM_KEPT);
        }
    }

    munmap((shared_t *) t.lock.data, sizeof(shared_t) + AREA);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_way),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_oldest),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_expired),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_dead),
        cmocka_unit_test(test_dead_twice),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_kills)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
