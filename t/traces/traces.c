
/*
 * Searches files and the memory of processes for what is left of URLs.
 *
 *     traces ERASED KEPT TARGET...
 *
 * ERASED and KEPT are files of lines.  A piece is 12 bytes of a line of ERASED
 * that no line of KEPT has.  A TARGET is a file, a directory with all that is
 * in it, or pid:N, the memory of process N.
 *
 * Prints how many pieces and bytes there were, and the places where a piece was
 * found, 20 of them at most.  Returns 0 if there is none, 1 if there is one, 2
 * if a target cannot be read.
 */


#define _GNU_SOURCE

#include <ftw.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define PIECE    12
#define BLOCK    (1 << 20)
#define BITS     27                   /* of the filter, as a power of two */
#define SHOWN    20


static uint8_t   *table;              /* of pieces; first byte zero: none */
static size_t     mask, npieces;
static uint64_t  *filter, searched;
static unsigned   found;


static void
fail(const char *what, const char *name)
{
    fprintf(stderr, "traces: %s: %s\n", name, what);
    exit(2);
}


static inline uint64_t
hash(const uint8_t *p)
{
    uint32_t  tail;
    uint64_t  head;

    memcpy(&head, p, sizeof(head));
    memcpy(&tail, p + sizeof(head), sizeof(tail));

    return (head ^ tail * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
}


/* where a piece is, or would be */

static uint8_t *
place(const uint8_t *p, uint64_t h)
{
    size_t    i;
    uint8_t  *at;

    for (i = h >> 24; /* void */ ; i++) {
        at = table + (i & mask) * PIECE;

        if (*at == 0 || memcmp(at, p, PIECE) == 0) {
            return at;
        }
    }
}


/* each piece of each line of a file */

static void
each(const char *name, void (*handler)(const uint8_t *piece))
{
    FILE    *f;
    char    *line;
    size_t   size;
    ssize_t  i, n;

    f = fopen(name, "r");

    if (f == NULL) {
        fail("cannot be read", name);
    }

    line = NULL;
    size = 0;

    while ((n = getline(&line, &size, f)) > 0) {
        n -= line[n - 1] == '\n';

        for (i = 0; i + PIECE <= n; i++) {
            handler((const uint8_t *) line + i);
        }
    }

    free(line);
    fclose(f);
}


static void
count(const uint8_t *piece)
{
    (void) piece;
    npieces++;
}


static void
insert(const uint8_t *piece)
{
    memcpy(place(piece, hash(piece)), piece, PIECE);
}


/* the first byte of a piece that is kept is 1: it stays in its chain */

static void
keep(const uint8_t *piece)
{
    uint8_t  *at;

    at = place(piece, hash(piece));

    if (*at) {
        *at = 1;
    }
}


static void
search(const char *name, uint64_t offset, const uint8_t *p, size_t n)
{
    size_t    i;
    uint64_t  h;

    searched += n;

    for (i = 0; i + PIECE <= n; i++) {
        h = hash(p + i);

        if ((filter[(h >> 24) % (1 << BITS) / 64] >> (h >> 24) % 64 & 1) == 0
            || *place(p + i, h) == 0)
        {
            continue;
        }

        if (found++ < SHOWN) {
            printf("%s: at %" PRIx64 ": %.*s\n", name, offset + i, PIECE,
                   (const char *) p + i);
        }
    }
}


/* of an open file; blocks overlap by a piece less a byte */

static void
search_file(const char *name, FILE *f, uint64_t offset, uint64_t end)
{
    size_t   n, over, want;

    static uint8_t  buf[BLOCK + PIECE];

    for (over = 0; offset < end; offset += n) {
        want = end - offset < BLOCK ? (size_t) (end - offset) : BLOCK;
        n = fread(buf + over, 1, want, f);

        if (n == 0) {
            break;
        }

        search(name, offset - over, buf, over + n);

        want = over + n;
        over = want < PIECE - 1 ? want : PIECE - 1;
        memmove(buf, buf + want - over, over);
    }
}


static int
search_entry(const char *name, const struct stat *st, int type,
    struct FTW *ftw)
{
    FILE  *f;

    (void) st;
    (void) ftw;

    if (type != FTW_F) {
        return 0;
    }

    f = fopen(name, "r");

    if (f == NULL) {
        fail("cannot be read", name);
    }

    search_file(name, f, 0, UINT64_MAX);
    fclose(f);

    return 0;
}


/* all mappings that can be read, but programs and libraries as they are */

static void
search_process(const char *pid)
{
    int       at;
    char      name[64], line[512], label[600], access[8];
    FILE     *maps, *mem;
    uint64_t  from, to;

    snprintf(name, sizeof(name), "/proc/%s/maps", pid);
    maps = fopen(name, "r");
    snprintf(name, sizeof(name), "/proc/%s/mem", pid);
    mem = fopen(name, "r");

    if (maps == NULL || mem == NULL) {
        fail("no such process, or not to be read", pid);
    }

    while (fgets(line, sizeof(line), maps)) {
        at = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &from,
                   &to, access, &at) != 3
            || access[0] != 'r' || strstr(line, "[v"))
        {
            continue;
        }

        line[strcspn(line, "\n")] = '\0';
        snprintf(label, sizeof(label), "process %s %s", pid,
                 line[at] ? line + at : "(anonymous)");

        if (fseeko(mem, (off_t) from, SEEK_SET) != 0) {
            fail("cannot be read", label);
        }

        search_file(label, mem, from, to);
    }

    fclose(mem);
    fclose(maps);
}


int
main(int argc, char **argv)
{
    int       i;
    size_t    k, n;
    uint64_t  h;

    if (argc < 4) {
        fail("usage: traces ERASED KEPT TARGET...", "what?");
    }

    each(argv[1], count);

    for (mask = 64; mask < 2 * npieces; mask *= 2) { /* void */ }

    table = calloc(mask--, PIECE);
    filter = calloc((size_t) 1 << BITS >> 6, sizeof(uint64_t));

    if (table == NULL || filter == NULL) {
        fail("no memory", argv[1]);
    }

    each(argv[1], insert);
    each(argv[2], keep);

    for (k = 0, n = 0; k <= mask; k++) {
        if (table[k * PIECE] > 1) {
            h = hash(table + k * PIECE);
            filter[(h >> 24) % (1 << BITS) / 64] |= (uint64_t) 1
                                                    << (h >> 24) % 64;
            n++;
        }
    }

    if (n == 0) {
        fail("has no piece that is not kept", argv[1]);
    }

    for (i = 3; i < argc; i++) {
        if (strncmp(argv[i], "pid:", 4) == 0) {
            search_process(argv[i] + 4);

        } else if (nftw(argv[i], search_entry, 16, FTW_PHYS) != 0) {
            fail("cannot be read", argv[i]);
        }
    }

    printf("%zu pieces, %" PRIu64 " bytes searched, %u found\n", n, searched,
           found);

    return found > 0;
}
