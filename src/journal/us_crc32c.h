
/*
 * CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in RFC 3720
 * appendix B.4: the processor's instruction where there is one, decided at
 * run time, a table otherwise.
 */


#ifndef _US_CRC32C_H_INCLUDED_
#define _US_CRC32C_H_INCLUDED_


#include "../us_base.h"


/* crc: 0, or the value of the bytes before */
uint32_t us_crc32c(uint32_t crc, const void *p, size_t len);

/* the table only: what the other is checked against */
uint32_t us_crc32c_table(uint32_t crc, const void *p, size_t len);


#endif /* _US_CRC32C_H_INCLUDED_ */
