
/*
 * See us_slurp.h.
 */


#include "us_slurp.h"
#include "us_cli.h"

#include <errno.h>
#include <stdlib.h>


int
us_slurp(const char *path, size_t max, us_str_t *text)
{
    FILE     *f;
    size_t    n;
    uint8_t  *p;

    f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (f == NULL) {
        return us_cli_failed(path, strerror(errno));
    }

    p = malloc(max + 1);

    if (p == NULL) {
        (void) fclose(f);
        return us_cli_failed(path, "out of memory");
    }

    errno = 0;
    n = fread(p, 1, max + 1, f);

    if (ferror(f) || n > max) {
        (void) us_cli_failed(path, n > max ? "the file is too large"
                                           : strerror(errno));
        (void) fclose(f);
        free(p);
        return US_CLI_USAGE;
    }

    (void) fclose(f);
    p[n] = '\0';
    *text = (us_str_t) { n, p };

    return US_CLI_DONE;
}
