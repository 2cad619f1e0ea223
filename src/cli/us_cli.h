
/*
 * The urlstore command: one file per subcommand, one row in main.c each.
 */


#ifndef _US_CLI_H_INCLUDED_
#define _US_CLI_H_INCLUDED_


#include "../us_base.h"


/* exit codes: done, refused input or failed check, usage or I/O */

#define US_CLI_DONE     0
#define US_CLI_REFUSED  1
#define US_CLI_USAGE    2


/* argv[0] is the subcommand's name; returns an exit code */

typedef int (*us_cli_pt)(int argc, char **argv);

/* says how subcommand `name` is used; returns US_CLI_USAGE */
int us_cli_usage(const char *name);

/* "4096", "64k", "512M", "4G"; 0: it is none */
size_t us_cli_size(const char *text);

int us_cli_bench(int argc, char **argv);
int us_cli_dedup(int argc, char **argv);
int us_cli_dump(int argc, char **argv);
int us_cli_hash(int argc, char **argv);
int us_cli_import(int argc, char **argv);
int us_cli_normalize(int argc, char **argv);
int us_cli_stat(int argc, char **argv);
int us_cli_verify(int argc, char **argv);


#endif /* _US_CLI_H_INCLUDED_ */
