
/*
 * See us_quota.h.
 */


#include "us_quota.h"
#include "../us_hash.h"
#include "../us_text.h"


#define US_QUOTA_ROW    8
#define US_QUOTA_UNITS  3600000       /* a URL */


static int
us_quota_number(us_str_t text, uint64_t *n)
{
    size_t  i;

    i = 0;

    return us_read_u64(text, &i, US_QUOTA_MAX, n) == 0 && i == text.len ? 0
                                                                        : -1;
}


int
us_quota_rate(us_str_t text, uint64_t *rate)
{
    uint8_t   unit;
    uint64_t  n, seconds;

    if (text.len < 3 || text.data[text.len - 2] != '/') {
        return -1;
    }

    unit = text.data[text.len - 1];
    seconds = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;

    text.len -= 2;
    text.len -= (text.data[text.len - 1] == 'r');

    if (seconds == 0 || us_quota_number(text, &n) != 0 || n == 0) {
        return -1;
    }

    *rate = n * (US_QUOTA_UNITS / 1000 / seconds);

    return 0;
}


int
us_quota_burst(us_str_t text, uint64_t *burst)
{
    if (us_quota_number(text, burst) != 0) {
        return -1;
    }

    *burst *= US_QUOTA_UNITS;

    return 0;
}


void
us_quota_init(us_quota_t *q, void *buckets, size_t size)
{
    q->buckets = buckets;
    q->rows = size / sizeof(us_bucket_t) / US_QUOTA_ROW;
}


uint64_t
us_quota_tag(const us_quota_t *q, us_str_t key)
{
    return us_hash(q->key, 0, key.data, key.len) | 1;
}


/* the client's bucket, drained to now; NULL: it has none, and create is 0 */

static us_bucket_t *
us_quota_find_locked(us_quota_t *q, uint64_t rate, uint64_t tag, uint64_t now,
    int create)
{
    int           i;
    uint64_t      drained;
    us_bucket_t  *row, *b, *lowest;

    row = &q->buckets[(tag >> 1) % q->rows * US_QUOTA_ROW];
    lowest = row;

    for (i = 0; i < US_QUOTA_ROW; i++) {
        b = &row[i];

        /* another process's time may be later than ours */

        if (now > b->drained) {
            drained = now - b->drained > b->level / rate
                      ? b->level : (now - b->drained) * rate;
            b->level -= drained;
            b->drained = now;
        }

        if (b->tag == tag) {
            return b;
        }

        if (b->level < lowest->level) {
            lowest = b;
        }
    }

    if (!create) {
        return NULL;
    }

    lowest->level = 0;
    lowest->tag = tag;

    return lowest;
}


uint64_t
us_quota_level_locked(us_quota_t *q, uint64_t rate, uint64_t tag,
    uint64_t now)
{
    us_bucket_t  *b;

    b = us_quota_find_locked(q, rate, tag, now, 0);

    return b ? b->level : 0;
}


void
us_quota_charge_locked(us_quota_t *q, uint64_t rate, uint64_t tag,
    uint64_t now, uint64_t n)
{
    us_bucket_t  *b;

    /* 2 ^ 64 units are 5,000 times the greatest burst */

    n = n < US_QUOTA_MAX ? n : US_QUOTA_MAX;

    b = us_quota_find_locked(q, rate, tag, now, 1);

    if (b->level < (uint64_t) 1 << 63) {
        b->level += n * US_QUOTA_UNITS;
    }
}


uint64_t
us_quota_wait(uint64_t level, uint64_t burst, uint64_t rate)
{
    return (level - burst - 1) / (rate * 1000) + 1;
}


uint64_t
us_quota_urls(uint64_t level)
{
    return (level + US_QUOTA_UNITS - 1) / US_QUOTA_UNITS;
}
