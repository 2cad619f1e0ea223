
/*
 * A page and a link in it: "BASE\nLINK".
 */


#include "laws.h"


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    us_laws_open();

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    us_str_t        in, base;
    const uint8_t  *nl;

    nl = memchr(data, '\n', size);

    if (nl == NULL) {
        return -1;
    }

    base.data = data;
    base.len = nl - data;
    in.data = nl + 1;
    in.len = data + size - in.data;

    us_laws_check(in, &base);

    return 0;
}
