
/*
 * See us_nodes.h.
 */


#include "us_nodes.h"
#include "us_cli.h"

#include <stdlib.h>


#define US_NODES_MAX  (4 * 1024 * 1024)   /* bytes of the file */
#define US_NODES_GAP  " \t\r"


static int
us_nodes_add(us_nodes_t *nodes, const char *name, const char *address)
{
    size_t     size;
    us_str_t  *names, *addresses;

    if ((nodes->n & (nodes->n - 1)) == 0) {
        size = (nodes->n ? nodes->n * 2 : 1) * sizeof(us_str_t);
        names = realloc(nodes->names, size);
        nodes->names = names ? names : nodes->names;
        addresses = realloc(nodes->addresses, size);
        nodes->addresses = addresses ? addresses : nodes->addresses;

        if (names == NULL || addresses == NULL) {
            fprintf(stderr, "urlstore: out of memory\n");
            return US_CLI_USAGE;
        }
    }

    nodes->names[nodes->n] = us_str_of(name);
    nodes->addresses[nodes->n] = us_str_of(address);
    nodes->n++;

    return US_CLI_DONE;
}


/* a name, an address and nothing else; or nothing; "#" begins a comment */

static int
us_nodes_line(us_nodes_t *nodes, const char *path, unsigned n, char *line)
{
    char  *name, *address, *rest;

    line[strcspn(line, "#")] = '\0';
    name = strtok_r(line, US_NODES_GAP, &rest);

    if (name == NULL) {
        return US_CLI_DONE;
    }

    address = strtok_r(NULL, US_NODES_GAP, &rest);

    /* it becomes a part of nginx.conf */

    if (address == NULL || strtok_r(NULL, US_NODES_GAP, &rest)
        || address[strcspn(address, "'\"\\;{}$/")])
    {
        fprintf(stderr, "urlstore: \"%s\": line %u is not NODE HOST:PORT\n",
                path, n);
        return US_CLI_USAGE;
    }

    return us_nodes_add(nodes, name, address);
}


int
us_nodes_read(us_nodes_t *nodes, const char *path)
{
    char      *line, *end;
    unsigned   n;
    us_str_t   text;

    memset(nodes, 0, sizeof(us_nodes_t));

    if (path == NULL) {
        return US_CLI_DONE;
    }

    if (us_cli_slurp(path, US_NODES_MAX, &text) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    nodes->text = (char *) text.data;

    for (n = 1, line = nodes->text; *line; line = end, n++) {
        end = line + strcspn(line, "\n");

        if (*end) {
            *end++ = '\0';
        }

        if (us_nodes_line(nodes, path, n, line) != US_CLI_DONE) {
            return US_CLI_USAGE;
        }
    }

    return US_CLI_DONE;
}


void
us_nodes_free(us_nodes_t *nodes)
{
    free(nodes->text);
    free(nodes->names);
    free(nodes->addresses);
}


us_str_t
us_nodes_address(const us_nodes_t *nodes, us_str_t name)
{
    size_t    i, n;
    us_str_t  address = { 0, NULL };

    for (i = 0, n = 0; i < nodes->n; i++) {
        if (us_str_compare(nodes->names[i], name) == 0) {
            address = nodes->addresses[i];
            n++;
        }
    }

    if (n == 1) {
        return address;
    }

    fprintf(stderr, "urlstore: %s of node \"%.*s\"\n",
            n ? "more than one address" : "no address", (int) name.len,
            name.data);

    return (us_str_t) { 0, NULL };
}


int
us_nodes_check(const us_nodes_t *nodes, const us_map_t *map)
{
    int       code;
    uint32_t  i, n;

    code = US_CLI_DONE;

    for (i = 0; i < map->nshards; i++) {
        for (n = 0; n < map->shards[i].nnodes; n++) {
            if (us_nodes_address(nodes, map->shards[i].nodes[n]).data == NULL)
            {
                code = US_CLI_USAGE;
            }
        }
    }

    return code;
}
