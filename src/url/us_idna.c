
/*
 * Domain to ASCII by ICU.  See us_idna.h.
 */


#include "us_idna.h"

#include <unicode/uchar.h>
#include <unicode/uidna.h>


/*
 * CheckHyphens and VerifyDnsLength are false in the standard; ICU has no such
 * switches but reports each kind of error in its own bit.
 */

#define US_IDNA_IGNORED                                                       \
    (UIDNA_ERROR_EMPTY_LABEL | UIDNA_ERROR_LABEL_TOO_LONG                     \
     | UIDNA_ERROR_DOMAIN_NAME_TOO_LONG | UIDNA_ERROR_LEADING_HYPHEN          \
     | UIDNA_ERROR_TRAILING_HYPHEN | UIDNA_ERROR_HYPHEN_3_4)


us_idna_t *
us_idna_open(void)
{
    us_idna_t   *idna;
    UErrorCode   err;

    err = U_ZERO_ERROR;

    idna = uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII
                           | UIDNA_NONTRANSITIONAL_TO_UNICODE
                           | UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ, &err);

    return U_FAILURE(err) ? NULL : idna;
}


void
us_idna_close(us_idna_t *idna)
{
    if (idna) {
        uidna_close(idna);
    }
}


ssize_t
us_idna_to_ascii(const us_idna_t *idna, us_str_t host, uint8_t *out,
    size_t size)
{
    int32_t     n;
    UErrorCode  err;
    UIDNAInfo   info = UIDNA_INFO_INITIALIZER;

    if (host.len > INT32_MAX || size > INT32_MAX) {
        return -1;
    }

    err = U_ZERO_ERROR;

    n = uidna_nameToASCII_UTF8(idna, (const char *) host.data,
                               (int32_t) host.len, (char *) out,
                               (int32_t) size, &info, &err);

    if (U_FAILURE(err) || n < 0 || (size_t) n > size
        || (info.errors & ~(uint32_t) US_IDNA_IGNORED))
    {
        return -1;
    }

    return n;
}


void
us_idna_unicode(char out[US_IDNA_VERSION_LEN])
{
    UVersionInfo  v;

    u_getUnicodeVersion(v);
    u_versionToString(v, out);
}
