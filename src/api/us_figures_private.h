
/*
 * The table of figures, of us_figures.c, for the formats of us_figures_text.c.
 */


#ifndef _US_FIGURES_PRIVATE_H_INCLUDED_
#define _US_FIGURES_PRIVATE_H_INCLUDED_


#include "us_figures.h"


typedef enum {
    US_FIGURE_GAUGE = 0,
    US_FIGURE_COUNTER,
    US_FIGURE_FLAG,                   /* 0 or 1; false or true */
    US_FIGURE_RATIO,                  /* a double */
    US_FIGURE_SECONDS                 /* in ms; UINT64_MAX: since it began */
} us_figure_type_t;


typedef struct {
    unsigned                kinds;    /* of zones that have it */
    us_figure_type_t        type;
    unsigned                shared;   /* in f->share, and not in *f */
    size_t                  offset;
    const char             *stat;     /* NULL: not in /stats */
    const char             *metric;   /* NULL: not in /metrics */
    const char             *help;
} us_figure_t;


/* up to one without kinds */
extern const us_figure_t  us_figures_table[];


#endif /* _US_FIGURES_PRIVATE_H_INCLUDED_ */
