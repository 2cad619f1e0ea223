
/*
 * Which hosts are two spellings of one site: example.com and www.example.com
 * are, co.uk and www.co.uk are not.
 */


#ifndef _US_SITE_H_INCLUDED_
#define _US_SITE_H_INCLUDED_


#include "us_url.h"


typedef struct us_site_s  us_site_t;


/*
 * What one caller remembers, because URLs come site by site: the answer for the
 * last host, and those of the list (17 % of a list of government pages are
 * www.gov.uk).  Zeroed at first, and again after us_site_except().
 */

#define US_SITE_MEMO  8

typedef struct {
    uint8_t          len;             /* 0: none */
    uint8_t          answer;
    uint8_t          name[62];
} us_site_answer_t;

typedef struct {
    us_site_answer_t  last;
    us_site_answer_t  suffixes[US_SITE_MEMO];
} us_site_memo_t;


/* NULL: out of memory */
us_site_t *us_site_create(void);
void us_site_destroy(us_site_t *site);

/* host and www.host are two sites; 0, or -1: out of memory */
int us_site_except(us_site_t *site, us_str_t host);

/*
 * 1 if a leading "www." makes no difference in this host (lower case, without
 * port).  The answer is a function of the host without it, so that it is the
 * same for both spellings.
 */
int us_site_merge(const us_site_t *site, us_str_t host, us_site_memo_t *memo);


#endif /* _US_SITE_H_INCLUDED_ */
