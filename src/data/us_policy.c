
/*
 * See us_policy.h.
 */


#include "us_policy.h"


/* at least `least`, and a twelfth of what is written again */

int
us_policy_due(const us_policy_t *p)
{
    return p->journal >= p->least && p->journal * US_POLICY_SHARE >= p->size;
}
