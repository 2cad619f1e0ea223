
/*
 * The site hash and the path hash.
 *
 *     http://www.example.com:8080/dir/page.html?a=1
 *                ^^^^^^^^^^^^^^^^ ^^^^^^^^^^^^^^^^^
 *                site             path (with its leading '/')
 *                mod 2^21         mod 2^15
 *
 * These two hashes come from a crawler of seven nodes (see docs/lineage.md),
 * which published their ranges, 2^21 for sites and 2^15 for paths, and their
 * load on 246,951 URLs, 1.0085 of the mean on the fullest node.  Its listing
 * is known to have two misprints.
 *
 * WHAT IS OURS: the listing itself could not be found again, so its misprints
 * could not be resolved, and these are NOT its functions bit for bit.  The
 * ranges and what is hashed are as published; the function is the one that
 * every text of that time has for strings, h = 31 h + c (Kernighan and Ritchie,
 * The C Programming Language, 2nd edition, section 6.6), taken modulo the
 * range.  Among the candidates of the literature it is the one whose load and
 * whose matches are those of a uniform hash: bench/hash measures it beside
 * the others.  A node of that crawler would compute other values: do not mix.
 */


#include "us_two_hash.h"


static uint32_t
us_string_hash(us_str_t s, unsigned bits)
{
    size_t    i;
    uint32_t  h;

    h = 0;

    for (i = 0; i < s.len; i++) {
        h = 31 * h + s.data[i];
    }

    return h & (((uint32_t) 1 << bits) - 1);
}


uint32_t
us_site_hash(us_str_t site)
{
    return us_string_hash(site, US_SITE_HASH_BITS);
}


uint32_t
us_path_hash(us_str_t path)
{
    return us_string_hash(path, US_PATH_HASH_BITS);
}


us_two_hash_t
us_two_hash(const us_canon_t *canon)
{
    us_str_t       path;
    us_two_hash_t  h;

    path.data = canon->url.href.data + canon->url.pathname_start;
    path.len = canon->url.href.len - canon->url.pathname_start;

    h.site = us_site_hash(us_canon_site(canon));
    h.path = us_path_hash(path);

    return h;
}
