
/*
 * Durations and times in requests.
 *
 *     90s  15m  12h  30d  1y  1d12h  3600     durations, as nginx writes them
 *     1763800098  2026-11-22T08:28:18Z        times: seconds since 1970, or
 *     2026-11-22T09:28:18.25+01:00            RFC 3339
 */


#ifndef _US_TIME_H_INCLUDED_
#define _US_TIME_H_INCLUDED_


#include "../us_base.h"


/*
 * Units y (365 days), M (30 days), w, d, h, m and s, each once and the larger
 * ones first; the last number may have none and is seconds.  *s: at most 2^40.
 * 0, or -1: it is no duration.
 */
int us_time_duration(us_str_t text, uint64_t *s);

/* *s: seconds since 1970, fractions left out.  0, or -1: it is no time */
int us_time_point(us_str_t text, uint64_t *s);

/* so many seconds in their largest whole unit of d, h, m, s */
#define US_TIME_TEXT  21
uint8_t *us_time_put(uint8_t *p, uint64_t s);


#endif /* _US_TIME_H_INCLUDED_ */
