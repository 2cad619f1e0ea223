
/*
 * The parts of a base.  See us_replog.h.
 */


#include "us_replog.h"
#include "../journal/us_crc32c.h"
#include "../journal/us_disk.h"

#include <stdio.h>


#define US_PART_MAGIC  "USBP"


void
us_part_seal(uint8_t *p, size_t len, const us_part_t *part)
{
    memcpy(p, US_PART_MAGIC, 4);
    us_put32(p + 8, part->number);
    us_put32(p + 12, part->last != 0);
    us_put64(p + 16, part->base);
    us_put64(p + 24, part->lsn);
    us_put64(p + 32, part->until);
    us_put32(p + 4, us_crc32c(0, p + 8, len - 8));
}


int
us_part_open(us_part_t *part, uint32_t number, const uint8_t *p, size_t len,
    char *err, size_t size)
{
    uint32_t  crc;

    if (len < US_PART_HEAD || memcmp(p, US_PART_MAGIC, 4) != 0) {
        (void) snprintf(err, size, "part %u of the base is damaged: its %zu "
                        "bytes do not begin as a part does", number, len);
        return -1;
    }

    crc = us_crc32c(0, p + 8, len - 8);

    if (crc != us_get32(p + 4)) {
        (void) snprintf(err, size, "part %u of the base is damaged: its "
                        "CRC-32C is %08x, not %08x", number, crc,
                        us_get32(p + 4));
        return -1;
    }

    part->number = us_get32(p + 8);
    part->last = us_get32(p + 12) != 0;
    part->base = us_get64(p + 16);
    part->lsn = us_get64(p + 24);
    part->until = us_get64(p + 32);

    if (part->number != number
        || (part->last && part->until < part->lsn))
    {
        (void) snprintf(err, size, "part %u of the base is another one: part "
                        "%u, LSN %llu to %llu", number, part->number,
                        (unsigned long long) part->lsn,
                        (unsigned long long) part->until);
        return -1;
    }

    return 0;
}
