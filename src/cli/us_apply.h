
/*
 * A map goes to all nodes and routers of a cluster; the command to become the
 * primary goes to one node.
 *
 *     target --GET--> its map, which the new one must be able to follow
 *            --POST check--> whether it is this node, with the uuid of the map
 *            --POST--> 204: adopted and durable
 *
 * Nothing is posted as long as one of them refuses.  A map is for ever: a wrong
 * uuid in it cannot be mended, so each shard that no map had before is checked,
 * and gets the map first.
 *
 * Targets are posted to one after another, and those that did not answer once
 * more, until all have the map.  Any order is safe, and so is a kill between
 * any two: a shard denies nothing of a slot under a map that another owner of
 * the slot has not adopted (docs/cluster.md).
 */


#ifndef _US_APPLY_H_INCLUDED_
#define _US_APPLY_H_INCLUDED_


#include "us_nodes.h"


typedef struct {
    const us_map_t  *map;
    const char      *path;            /* at nodes */
    double           timeout;         /* seconds */
    int              force;           /* a new shard may be down */
} us_apply_t;


/*
 * To all nodes of the map, if nodes is not NULL, then to n URLs.  Prints a line
 * for each target.  Returns US_CLI_DONE: all have the map; US_CLI_REFUSED: a
 * target has refused it; US_CLI_USAGE: a target has not answered in time, or
 * a URL is none.
 */
int us_apply(const us_apply_t *a, const us_nodes_t *nodes, int n, char **urls);

/*
 * A command, "promote" or "rebase", to the replicated zones of the nginx at
 * URL, that of one shard if it is not -1.  Tries for so many seconds, and waits
 * for an answer for `answer` seconds.  Prints the reply: a line for each zone.
 * Returns US_CLI_DONE; US_CLI_REFUSED; US_CLI_USAGE: not in time, or the URL is
 * none.
 */
int us_command(const char *name, const char *url, int shard, double timeout,
    double answer);


#endif /* _US_APPLY_H_INCLUDED_ */
