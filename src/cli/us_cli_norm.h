
/*
 * The normalizer of a store or a cluster, by the signature that it keeps.
 */


#ifndef _US_CLI_NORM_H_INCLUDED_
#define _US_CLI_NORM_H_INCLUDED_


#include "../url/us_normalize.h"


/*
 * By "PROFILE/VERSION unicode=V www=HOW"; an empty signature is a new store's,
 * with the defaults.  NULL: this program has no such normalizer, or no memory.
 * The user's rules are no part of it.
 */
us_norm_t *us_cli_norm(us_str_t signature);


#endif /* _US_CLI_NORM_H_INCLUDED_ */
