
/*
 * GET /health, for balancers: JSON, or the word alone as text.
 *
 *     {"status": S, "writable": B, "full": B, "epoch": N [, of its kind]}
 */


#ifndef _US_HEALTH_H_INCLUDED_
#define _US_HEALTH_H_INCLUDED_


#include "us_media.h"
#include "../life/us_life.h"
#include "../input/us_json.h"


#define US_HEALTH_TEXT  (512 + us_json_quoted_max(US_SHARE_REASON)            \
                         + 2 * us_json_quoted_max(US_REPLOG_HOLDER))

/* status: a word; life: of a zone with path=, follow= or replicate=, or NULL */

uint8_t *us_health(uint8_t *p, us_format_t format, const char *status,
    int writable, int full, uint64_t epoch, const us_life_t *life);


#endif /* _US_HEALTH_H_INCLUDED_ */
