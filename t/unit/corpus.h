
/*
 * The URLs that unit tests read: the first lines of a real list, as
 * tools/corpus.sh finds it, followed by generated ones (bench/generate.c).
 * Tests run in the root of the project.
 */


#ifndef _CORPUS_H_INCLUDED_
#define _CORPUS_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


/* a stream of lines, for corpus_close() */

static inline FILE *
corpus_open(const char *name, unsigned lines, unsigned generated)
{
    char   command[256];
    FILE  *f;

    snprintf(command, sizeof(command),
             "tools/corpus.sh cat %s | head -n %u; build/generate -n %u",
             name, lines, generated);

    f = popen(command, "r");
    assert_non_null(f);

    return f;
}


/* closes a stream that was read to its end */

static inline void
corpus_close(FILE *f)
{
    assert_int_equal(pclose(f), 0);
}


#endif /* _CORPUS_H_INCLUDED_ */
