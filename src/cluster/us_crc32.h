
/*
 * CRC-32 of IEEE 802.3, as crc32() of zlib, for short texts.
 */


#ifndef _US_CRC32_H_INCLUDED_
#define _US_CRC32_H_INCLUDED_


#include "../us_base.h"


/* p may be NULL if len is 0 */
uint32_t us_crc32(const uint8_t *p, size_t len);


#endif /* _US_CRC32_H_INCLUDED_ */
