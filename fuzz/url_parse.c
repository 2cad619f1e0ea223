
/*
 * Any bytes as a URL: the parsers, all profiles.
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
    us_str_t  in;

    in.data = data;
    in.len = size;

    us_laws_check(in, NULL);

    return 0;
}
