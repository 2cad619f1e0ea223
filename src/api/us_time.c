
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


/* a number of n digits, from least to most, and what follows it */

static int
us_time_field(us_str_t *text, size_t n, uint64_t least, uint64_t most,
    const char *follow, uint64_t *value)
{
    size_t  i, len;

    len = strlen(follow);

    if (text->len < n + (len != 0)) {
        return -1;
    }

    for (i = 0, *value = 0; i < n; i++) {

        if (text->data[i] < '0' || text->data[i] > '9') {
            return -1;
        }

        *value = *value * 10 + (text->data[i] - '0');
    }

    if (*value < least || *value > most
        || (len && memchr(follow, text->data[n], len) == NULL))
    {
        return -1;
    }

    text->data += n + (len != 0);
    text->len -= n + (len != 0);

    return 0;
}


/* what follows the seconds: a fraction, and Z or how far ahead of UTC it is */

static int
us_time_zone(us_str_t text, int64_t *ahead)
{
    size_t    i;
    int64_t   sign;
    uint64_t  hours, minutes;

    if (text.len && text.data[0] == '.') {

        for (i = 1; i < text.len && text.data[i] >= '0'
             && text.data[i] <= '9'; i++)
        {
            /* void */
        }

        if (i == 1) {
            return -1;
        }

        text.data += i;
        text.len -= i;
    }

    *ahead = 0;

    if (text.len == 1 && (text.data[0] == 'Z' || text.data[0] == 'z')) {
        return 0;
    }

    if (text.len != 6 || (text.data[0] != '+' && text.data[0] != '-')) {
        return -1;
    }

    sign = text.data[0] == '-' ? -1 : 1;
    text.data++;
    text.len--;

    if (us_time_field(&text, 2, 0, 23, ":", &hours) == -1
        || us_time_field(&text, 2, 0, 59, "", &minutes) == -1)
    {
        return -1;
    }

    *ahead = sign * (int64_t) (hours * 3600 + minutes * 60);

    return 0;
}


int
us_time_point(us_str_t text, uint64_t *s)
{
    size_t     i;
    int64_t    t, ahead;
    uint64_t   year, month, day, hour, minute, second;
    struct tm  tm;

    memset(&tm, 0, sizeof(struct tm));
    i = 0;

    if (us_read_u64(text, &i, US_TIME_MAX, s) == 0 && i == text.len) {
        return 0;
    }

    if (us_time_field(&text, 4, 1970, 9999, "-", &year) == -1
        || us_time_field(&text, 2, 1, 12, "-", &month) == -1
        || us_time_field(&text, 2, 1, 31, "Tt ", &day) == -1
        || us_time_field(&text, 2, 0, 23, ":", &hour) == -1
        || us_time_field(&text, 2, 0, 59, ":", &minute) == -1
        || us_time_field(&text, 2, 0, 60, "", &second) == -1
        || us_time_zone(text, &ahead) == -1)
    {
        return -1;
    }

    tm.tm_year = (int) year - 1900;
    tm.tm_mon = (int) month - 1;
    tm.tm_mday = (int) day;

    t = timegm(&tm) + (int64_t) (hour * 3600 + minute * 60 + second) - ahead;

    /* 30 February is another day */

    if (t < 0 || tm.tm_mday != (int) day) {
        return -1;
    }

    *s = (uint64_t) t;

    return 0;
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
