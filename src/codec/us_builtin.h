
/*
 * The model of the first records, before any can be learnt.
 */


#ifndef _US_BUILTIN_H_INCLUDED_
#define _US_BUILTIN_H_INCLUDED_


#include "us_model.h"


/* allocated with malloc(); NULL: no memory */
us_model_t *us_builtin_create(void);


#endif /* _US_BUILTIN_H_INCLUDED_ */
