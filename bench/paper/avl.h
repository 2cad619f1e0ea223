
/*
 * The founding structure: an AVL tree of delta-coded URLs.  A baseline for
 * the benchmarks, nothing else uses it.
 */


#ifndef _AVL_H_INCLUDED_
#define _AVL_H_INCLUDED_


#include "us_base.h"


#define AVL_NONE  0x7fffffff          /* no such URL, no reference */


typedef struct avl_s  avl_t;


typedef struct {
    uint32_t      urls;
    size_t        tree;               /* bytes of the search structure */
    size_t        records;            /* bytes of all the rest */
    size_t        tails;              /* of these, what is left of the URLs */
    double        hops;               /* mean records of a URL */
    unsigned      height;
} avl_info_t;


avl_t *avl_create(void);
void avl_destroy(avl_t *t);

/* adds the URL, at most US_URL_MAX bytes, unless it is there; its id */
uint32_t avl_add(avl_t *t, us_str_t url);

/* its id, or AVL_NONE */
uint32_t avl_find(avl_t *t, us_str_t url);

/* writes the URL of id to buf, which has US_URL_MAX bytes; its length */
size_t avl_get(const avl_t *t, uint32_t id, uint8_t *buf);

/* how a URL is stored: reference (AVL_NONE), common prefix, tail */
us_str_t avl_record(const avl_t *t, uint32_t id, uint32_t *ref, uint32_t *lcp);

void avl_info(const avl_t *t, avl_info_t *info);

/* 1 if order, balance and heights are right everywhere */
int avl_check(const avl_t *t);


#endif /* _AVL_H_INCLUDED_ */
