
/*
 * Decodes what a replicated log keeps: its parts and rows, from standard input,
 * each as a line of hexadecimal digits.  Prints a line for each record, at once
 * when it is added, so also of one that is deleted or erased later: its id, its
 * operation in hexadecimal digits, and its text, which is empty if it was
 * erased before.
 */


#include "codec/us_record.h"
#include "store/us_ring.h"
#include "store/us_store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


#define ZONE  ((size_t) 256 << 20)
#define LINE  ((size_t) 8 << 20)      /* bytes of a part or row */


static void
nothing(void *data)
{
    (void) data;
}


static void
fail(const char *what)
{
    fprintf(stderr, "ops: %s\n", what);
    exit(2);
}


static us_store_t *
store(void)
{
    void                    *mem;
    us_store_t              *s;
    static us_store_conf_t   conf = {
        .uuid = "0123456789abcde", .hash_key = "a random secret", .epoch = 1,
        .norm = { 4, (const uint8_t *) "test" }, .is_shard = 1
    };
    static us_store_lock_t   lock = { nothing, nothing, NULL };

    mem = mmap(NULL, ZONE, PROT_READ|PROT_WRITE,
               MAP_ANONYMOUS|MAP_SHARED|MAP_NORESERVE, -1, 0);
    s = mem == MAP_FAILED || us_store_format(mem, ZONE, &conf) != 0
        ? NULL : us_store_open(mem, &lock);

    if (s == NULL) {
        fail("no store");
    }

    return s;
}


/* the next line as bytes; -1: there is none */

static ssize_t
line(uint8_t *p)
{
    int       c, digits;
    size_t    n;
    unsigned  byte;

    static const char  hex[] = "0123456789abcdef";

    for (n = 0, digits = 0, byte = 0; (c = getchar()) != '\n'; /* void */) {
        if (c == EOF) {
            return n ? (fail("half a line"), -1) : -1;
        }

        if (strchr(hex, c) == NULL || n == LINE) {
            fail("no hexadecimal digits, or too many");
        }

        byte = byte << 4 | (unsigned) (strchr(hex, c) - hex);

        if (++digits % 2 == 0) {
            p[n++] = (uint8_t) byte;
        }
    }

    return (ssize_t) n;
}


static void
record(us_store_t *s, uint64_t id, const uint8_t *op, size_t n)
{
    size_t   i, len;
    uint8_t  text[US_TEXT_BUFFER];

    printf("%llu\t", (unsigned long long) id);

    for (i = 0; i < n; i++) {
        printf("%02x", op[i]);
    }

    /* the class of a URL, and the rest of it */

    len = us_record_decode(s->codec, id, text);
    printf("\t%.*s\n", len ? (int) len - 1 : 0, text + 1);
}


int
main(void)
{
    size_t       at;
    ssize_t      n, end;
    us_op_t      op;
    uint8_t     *p;
    uint64_t     id;
    us_store_t  *s;

    s = store();
    p = malloc(LINE);

    if (p == NULL) {
        fail("no memory");
    }

    while ((end = line(p)) != -1) {

        /* a part has a head */

        at = end > 40 && memcmp(p, "USBP", 4) == 0 ? 40 : 0;

        for (n = 0; at < (size_t) end; at += (size_t) n) {
            n = us_op_parse(p + at, (size_t) end - at, &op);
            id = us_store_next_id(s);

            if (n <= 0 || us_store_apply(s, p + at, (size_t) n) != n) {
                fprintf(stderr, "ops: operation %d: %zd\n",
                        n > 0 ? (int) op.type : 0, n);
                exit(2);
            }

            if (us_store_next_id(s) > id) {
                record(s, id, p + at, (size_t) n);
            }
        }
    }

    us_store_close(s);

    return 0;
}
