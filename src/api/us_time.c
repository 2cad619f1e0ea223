
/*
 * See us_time.h.
 */


#include "us_time.h"
#include "../us_text.h"

#include <time.h>


#define US_TIME_MAX  ((uint64_t) 1 << 40)


typedef struct {
    char      name;
    uint32_t  seconds;
} us_time_unit_t;


static const us_time_unit_t  us_time_units[] = {
    { 'y', 365 * 86400 },
    { 'M', 30 * 86400 },
    { 'w', 7 * 86400 },
    { 'd', 86400 },
    { 'h', 3600 },
    { 'm', 60 },
    { 's', 1 },
    { '\0', 0 }
};


int
us_time_duration(us_str_t text, uint64_t *s)
{
    size_t                 i;
    uint64_t               n;
    const us_time_unit_t  *u;

    *s = 0;
    u = us_time_units;

    for (i = 0; i < text.len; /* void */ ) {

        if (us_read_u64(text, &i, US_TIME_MAX, &n) == -1) {
            return -1;
        }

        /* seconds without their unit end it */

        while (u->name && (i < text.len ? u->name != text.data[i]
                                        : u->seconds != 1))
        {
            u++;
        }

        if (u->name == '\0' || n > US_TIME_MAX / u->seconds) {
            return -1;
        }

        *s += n * u->seconds;
        u++;
        i++;
    }

    return i && *s <= US_TIME_MAX ? 0 : -1;
}


/* whether it begins so: d is a digit, T is T, t or a blank, + is a sign */

static int
us_time_is(us_str_t text, const char *shape)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; shape[i]; i++) {
        c = i < text.len ? text.data[i] : '\0';

        if (shape[i] == 'd' ? c < '0' || c > '9'
            : shape[i] == 'T' ? c != 'T' && c != 't' && c != ' '
            : shape[i] == '+' ? c != '+' && c != '-' : c != shape[i])
        {
            return 0;
        }
    }

    return 1;
}


static int
us_time_digits(const uint8_t *p)
{
    return (p[0] - '0') * 10 + (p[1] - '0');
}


int
us_time_point(us_str_t text, uint64_t *s)
{
    int             day, hour, minute, second;
    size_t          i;
    int64_t         t, ahead;
    struct tm       tm;
    const uint8_t  *p;

    i = 0;

    if (us_read_u64(text, &i, US_TIME_MAX, s) == 0 && i == text.len) {
        return 0;
    }

    if (!us_time_is(text, "dddd-dd-ddTdd:dd:dd")) {
        return -1;
    }

    memset(&tm, 0, sizeof(struct tm));
    p = text.data;

    tm.tm_year = us_time_digits(p) * 100 + us_time_digits(p + 2) - 1900;
    tm.tm_mon = us_time_digits(p + 5) - 1;
    day = us_time_digits(p + 8);
    tm.tm_mday = day;
    hour = us_time_digits(p + 11);
    minute = us_time_digits(p + 14);
    second = us_time_digits(p + 17);

    if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || hour > 23
        || minute > 59 || second > 60)
    {
        return -1;
    }

    t = timegm(&tm) + hour * 3600 + minute * 60 + second;

    /* 30 February is another day */

    if (tm.tm_mday != day) {
        return -1;
    }

    i = sizeof("dddd-dd-ddTdd:dd:dd") - 1;

    if (i < text.len && p[i] == '.') {

        do {
            i++;
        } while (i < text.len && p[i] >= '0' && p[i] <= '9');

        if (p[i - 1] == '.') {
            return -1;
        }
    }

    text = (us_str_t) { text.len - i, p + i };

    if (text.len == 6 && us_time_is(text, "+dd:dd")) {
        hour = us_time_digits(text.data + 1);
        minute = us_time_digits(text.data + 4);

        if (hour > 23 || minute > 59) {
            return -1;
        }

        ahead = hour * 3600 + minute * 60;
        t -= text.data[0] == '+' ? ahead : -ahead;

    } else if (text.len != 1 || (text.data[0] != 'Z' && text.data[0] != 'z')) {
        return -1;
    }

    *s = (uint64_t) t;

    return t < 0 ? -1 : 0;
}


uint8_t *
us_time_put(uint8_t *p, uint64_t s)
{
    const us_time_unit_t  *u;

    /* days, hours, minutes, seconds */

    for (u = &us_time_units[3]; u->seconds > 1 && (s % u->seconds || s == 0);
         u++)
    {
        /* void */
    }

    p = us_put_u64(p, s / u->seconds);
    *p++ = (uint8_t) u->name;

    return p;
}
