
/*
 * See us_policy.h.
 */


#include "us_policy.h"


/* at least `least`, and a twelfth of what is written again */

int
us_policy_due(const us_policy_t *p)
{
    uint64_t  weight;

    weight = p->journal + p->deletes * US_POLICY_DELETE;

    return weight >= p->least && weight * US_POLICY_SHARE >= p->size;
}
