
/*
 * See us_cli_norm.h.
 */


#include "us_cli_norm.h"


us_norm_t *
us_cli_norm(us_str_t signature)
{
    int         profile, www;
    us_str_t    same, name;
    us_norm_t  *norm;

    profile = US_PROFILE_CRAWLER;
    name = signature;

    if (signature.len) {
        for (name.len = 0;
             name.len < signature.len && name.data[name.len] != '/';
             name.len++)
        {
            /* void */
        }

        profile = us_profile_parse(name);
    }

    for (www = US_WWW_FIRST; profile != -1 && www <= US_WWW_STRIP; www++) {
        norm = us_norm_create((us_profile_t) profile);

        if (norm == NULL) {
            return NULL;
        }

        us_norm_set_www(norm, (us_www_t) www);

        if (us_norm_seal(norm) == 0) {
            same = us_norm_signature(norm);

            if (signature.len == 0
                || (same.len == signature.len
                    && memcmp(same.data, signature.data, same.len) == 0))
            {
                return norm;
            }
        }

        us_norm_destroy(norm);
    }

    return NULL;
}
