
/*
 * See us_policy.h.
 */


#include "us_policy.h"


/* at least `least`, and an eighth of what is written again */

int
us_policy_due(const us_policy_t *p)
{
    return p->journal >= p->least && p->journal * 8 >= p->size;
}
