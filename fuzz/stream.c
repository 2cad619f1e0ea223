
/*
 * The stream that a replica reads (us_stream.h): hostile bytes.  An input is a
 * byte and frames; bit 0 of the byte: the stream goes on, bit 1: CRCs are made
 * right, so that what they protect is reached.  However the bytes are cut, the
 * same frames come.
 */

#include "journal/us_crc32c.h"
#include "journal/us_stream.h"

#include <stdio.h>
#include <stdlib.h>


static ssize_t
fuzz_size(const uint8_t *p, size_t len)
{
    return len < 2 ? 0 : p[0] > 1 ? -1 : 2 + p[1];
}


static unsigned
fuzz_ids(const uint8_t *p, size_t len)
{
    return p[0] == 1;
}


static const us_ops_t  fuzz_ops = { fuzz_size, fuzz_ids };

static const char  fuzz_manifest[] =
    "urlstore data 1\nuuid 00000000000000000000000000000000\nepoch 1\n"
    "state open\nboot x\nsync 1s\nend 0000000000000000 0\n"
    "snapshot 0000000000000009\n";


/* frames with right CRCs, as far as their lengths are possible */

static void
fuzz_mend(uint8_t *p, size_t len)
{
    size_t    n;
    uint32_t  seed, crc;

    for (seed = 0, crc = 0; len >= US_BLOCK_HEADER; p += n, len -= n) {

        if ((memcmp(p, "USJR", 4) == 0 || memcmp(p, "USSN", 4) == 0
             || memcmp(p, "USBT", 4) == 0)
            && len >= US_SEGMENT_HEADER)
        {
            n = US_SEGMENT_HEADER;
            us_put32(p + 60, us_crc32c(0, p, 60));

            if (p[2] != 'B') {
                seed = us_get32(p + 60);
                crc = seed;
            }

            continue;
        }

        n = US_BLOCK_HEADER;

        if (memcmp(p, "USBK", 4) == 0 && us_get32(p + 4) <= len - n) {
            n += us_get32(p + 4);
        }

        us_put32(p + 32, crc);
        crc = us_crc32c(seed, p, US_BLOCK_HEADER - 4);
        crc = us_crc32c(crc, p + US_BLOCK_HEADER, n - US_BLOCK_HEADER);
        us_put32(p + 44, crc);
    }
}


/* a hash of all frames; each piece ends where its frame does, or at the end */

static uint64_t
fuzz_read(const uint8_t *p, size_t len, int resumed, size_t step)
{
    size_t       have, need;
    ssize_t      n;
    uint64_t     hash;
    us_frame_t   f;
    us_place_t   at;
    us_stream_t  s;

    memset(&at, 0, sizeof(us_place_t));
    at.epoch = 1;
    at.tail.offset = US_SEGMENT_HEADER;

    us_stream_init(&s, &fuzz_ops, resumed ? &at : NULL);
    hash = 0;
    have = step < len ? step : len;

    while (len) {
        n = us_stream_next(&s, p, have, &f, &need);

        if (n == -1) {
            return hash * 31 + 7;
        }

        if (n == 0) {

            if (need <= have) {
                abort();
            }

            if (have == len) {
                break;
            }

            have = have + step < len ? have + step : len;
            continue;
        }

        if ((size_t) n > have || f.len != (size_t) n || f.p != p) {
            abort();
        }

        hash = hash * 31 + f.type * 1000003 + s.at.tail.lsn
               + s.at.tail.offset * 7 + s.at.tail.crc;
        p += n;
        len -= n;
        have -= n;

        if (have == 0) {
            have = step < len ? step : len;
        }
    }

    return hash;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           len;
    char             text[US_PLACE_TEXT], again[US_PLACE_TEXT];
    uint8_t         *p, *frames;
    us_place_t       at;

    if (size < 2) {
        return 0;
    }

    if (us_place_parse(&at, (const char *) data, size) == 0) {
        us_place_print(&at, text);

        if (us_place_parse(&at, text, strlen(text)) == -1) {
            abort();
        }

        us_place_print(&at, again);

        if (strcmp(text, again) != 0) {
            abort();
        }
    }

    len = sizeof(fuzz_manifest) - 1;
    p = malloc(US_STREAM_MANIFEST + len + 16 + size);

    if (p == NULL) {
        return 0;
    }

    us_stream_manifest(p, len + 16);
    memcpy(p + US_STREAM_MANIFEST, fuzz_manifest, len);
    (void) sprintf((char *) p + US_STREAM_MANIFEST + len, "crc32c %08x",
                   us_crc32c(0, fuzz_manifest, len));

    frames = p + US_STREAM_MANIFEST + len + 16;
    frames[-1] = '\n';
    memcpy(frames, data + 1, size - 1);

    if (data[0] & 2) {
        fuzz_mend(frames, size - 1);
    }

    len += US_STREAM_MANIFEST + 16 + size - 1;

    if (fuzz_read(p, len, data[0] & 1, len)
        != fuzz_read(p, len, data[0] & 1, 1))
    {
        abort();
    }

    free(p);

    return 0;
}
