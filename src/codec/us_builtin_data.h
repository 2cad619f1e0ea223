
/*
 * us_builtin_data.c, made by tools/builtin.c: the built-in model in base 64.
 */


#ifndef _US_BUILTIN_DATA_H_INCLUDED_
#define _US_BUILTIN_DATA_H_INCLUDED_


#include <stddef.h>


extern const char    us_builtin_data[];
extern const size_t  us_builtin_size;       /* bytes of the model */


#endif /* _US_BUILTIN_DATA_H_INCLUDED_ */
