
/*
 * Where the nodes of a cluster are: lines of a name and an address.
 *
 *     # the name of the upstream, and where it is
 *     us_0a 10.0.0.1:8080
 *     us_0b 10.0.0.2:8080
 *
 * The map has no addresses: a node that moves needs no new version.
 */


#ifndef _US_NODES_H_INCLUDED_
#define _US_NODES_H_INCLUDED_


#include "../cluster/us_map.h"


typedef struct {
    char         *text;               /* the file */
    size_t        n;
    us_str_t     *names;
    us_str_t     *addresses;
} us_nodes_t;


/* 0, or US_CLI_USAGE after a message; path NULL: no file */
int us_nodes_read(us_nodes_t *nodes, const char *path);
void us_nodes_free(us_nodes_t *nodes);

/*
 * Of a node of the map: its address; data is NULL after a message if the file
 * lacks it, or has more than one.
 */
us_str_t us_nodes_address(const us_nodes_t *nodes, us_str_t name);

/* whether each node of the map has one: 0, or US_CLI_USAGE after messages */
int us_nodes_check(const us_nodes_t *nodes, const us_map_t *map);


#endif /* _US_NODES_H_INCLUDED_ */
