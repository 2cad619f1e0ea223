
/*
 * Sorts strings that need not fit memory.  See us_cli_sort.h.
 *
 *     mem   |len text|len text|len text|     ...     | -> | -> | -> |
 *           from here strings,                 from there their places
 *
 * When the two meet, the strings are sorted and written to a file that has no
 * name: a run.  At the end all runs and what is left are merged; before there
 * are more runs than US_SORT_RUNS, those that there are become one.
 */


#include "us_cli_sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define US_SORT_BUFFER  (64 * 1024)


/* strings in memory: from one end the bytes, from the other their places */

struct us_sort_s {
    uint8_t      *mem;
    size_t        size;
    size_t        used;
    size_t        n;
    FILE         *runs[US_SORT_RUNS];
    unsigned      nruns;
};


/* a run that is being read; file NULL: the strings in memory */

typedef struct {
    FILE         *file;
    us_str_t      s;
    uint8_t      *buf;
    size_t        buf_size;
    size_t        next;
} us_sort_run_t;


static us_str_t
us_sort_string(const uint8_t *p)
{
    uint32_t  len;

    memcpy(&len, p, sizeof(len));

    return (us_str_t) { len, p + sizeof(len) };
}


static int
us_sort_compare(const void *one, const void *two)
{
    return us_str_compare(us_sort_string(*(uint8_t *const *) one),
                         us_sort_string(*(uint8_t *const *) two));
}


us_sort_t *
us_sort_create(size_t memory)
{
    us_sort_t  *s;

    s = calloc(1, sizeof(us_sort_t));

    if (s == NULL) {
        return NULL;
    }

    /* at least one string of any length */

    s->size = (memory < 65536) ? 65536 : memory & ~(size_t) 7;
    s->mem = malloc(s->size);

    if (s->mem == NULL) {
        free(s);
        return NULL;
    }

    return s;
}


void
us_sort_destroy(us_sort_t *s)
{
    unsigned  i;

    for (i = 0; i < s->nruns; i++) {
        (void) fclose(s->runs[i]);
    }

    free(s->mem);
    free(s);
}


static uint8_t **
us_sort_places(us_sort_t *s)
{
    return (uint8_t **) (s->mem + s->size) - s->n;
}


static void
us_sort_memory(us_sort_t *s)
{
    qsort(us_sort_places(s), s->n, sizeof(uint8_t *), us_sort_compare);
}


static FILE *
us_sort_file(void)
{
    int          fd;
    FILE        *f;
    const char  *dir;

    dir = getenv("TMPDIR");
    fd = open(dir ? dir : "/tmp", O_RDWR|O_TMPFILE|O_CLOEXEC, 0600);

    f = (fd == -1) ? tmpfile() : fdopen(fd, "w+");

    if (f) {
        (void) setvbuf(f, NULL, _IOFBF, US_SORT_BUFFER);
    }

    return f;
}


static int
us_sort_write(void *data, us_str_t s)
{
    FILE      *f = data;
    uint32_t   len;

    len = (uint32_t) s.len;

    return (fwrite(&len, sizeof(len), 1, f) == 1
            && fwrite(s.data, s.len, 1, f) == 1) ? 0 : -1;
}


/* the next string of a run: 1, 0 at its end, -1 */

static int
us_sort_read(us_sort_t *s, us_sort_run_t *run)
{
    uint32_t  len;

    if (run->file == NULL) {
        if (run->next == s->n) {
            return 0;
        }

        run->s = us_sort_string(us_sort_places(s)[run->next++]);

        return 1;
    }

    if (fread(&len, sizeof(len), 1, run->file) != 1) {
        return feof(run->file) ? 0 : -1;
    }

    if (len > run->buf_size) {
        free(run->buf);
        run->buf_size = len + 1024;
        run->buf = malloc(run->buf_size);

        if (run->buf == NULL) {
            run->buf_size = 0;
            return -1;
        }
    }

    if (len && fread(run->buf, len, 1, run->file) != 1) {
        return -1;
    }

    run->s = (us_str_t) { len, run->buf };

    return 1;
}


static void
us_sort_sink(us_sort_run_t **heap, unsigned n, unsigned i)
{
    unsigned        k;
    us_sort_run_t  *run;

    for ( ;; ) {
        k = 2 * i + 1;

        if (k >= n) {
            return;
        }

        if (k + 1 < n && us_str_compare(heap[k + 1]->s, heap[k]->s) < 0) {
            k++;
        }

        if (us_str_compare(heap[i]->s, heap[k]->s) <= 0) {
            return;
        }

        run = heap[i];
        heap[i] = heap[k];
        heap[k] = run;
        i = k;
    }
}


/* merges the runs, and the strings in memory if with_memory is 1 */

static int
us_sort_merge(us_sort_t *s, unsigned with_memory, us_sort_out_pt out,
    void *data)
{
    int             rc;
    unsigned        i, n;
    us_sort_run_t   runs[US_SORT_RUNS + 1], *heap[US_SORT_RUNS + 1];

    memset(runs, 0, sizeof(runs));
    n = 0;
    rc = 0;

    for (i = 0; rc >= 0 && i < s->nruns + with_memory; i++) {

        if (i < s->nruns) {
            runs[i].file = s->runs[i];
            rewind(s->runs[i]);
        }

        rc = us_sort_read(s, &runs[i]);

        if (rc == 1) {
            heap[n++] = &runs[i];
        }
    }

    for (i = n / 2; i-- > 0; /* void */ ) {
        us_sort_sink(heap, n, i);
    }

    while (rc >= 0 && n) {
        rc = out(data, heap[0]->s);

        if (rc == 0) {
            rc = us_sort_read(s, heap[0]);

            if (rc == 0) {
                heap[0] = heap[--n];
            }

            us_sort_sink(heap, n, 0);
        }
    }

    for (i = 0; i < s->nruns; i++) {
        free(runs[i].buf);
    }

    return rc < 0 ? -1 : 0;
}


/* makes room: what is in memory becomes a run */

static int
us_sort_spill(us_sort_t *s)
{
    size_t    i;
    FILE     *f;

    f = us_sort_file();

    if (f == NULL) {
        return -1;
    }

    if (s->nruns == US_SORT_RUNS) {

        if (us_sort_merge(s, 0, us_sort_write, f) != 0 || fflush(f) != 0) {
            (void) fclose(f);
            return -1;
        }

        for (i = 0; i < s->nruns; i++) {
            (void) fclose(s->runs[i]);
        }

        s->runs[0] = f;
        s->nruns = 1;

        return us_sort_spill(s);
    }

    us_sort_memory(s);

    for (i = 0; i < s->n; i++) {
        if (us_sort_write(f, us_sort_string(us_sort_places(s)[i])) != 0) {
            break;
        }
    }

    if (i < s->n || fflush(f) != 0) {
        (void) fclose(f);
        return -1;
    }

    s->runs[s->nruns++] = f;
    s->used = 0;
    s->n = 0;

    return 0;
}


int
us_sort_add(us_sort_t *s, us_str_t text)
{
    uint32_t  len;

    if (s->used + sizeof(len) + text.len
        > s->size - (s->n + 1) * sizeof(uint8_t *))
    {
        if (s->n == 0) {
            errno = EMSGSIZE;
            return -1;
        }

        if (us_sort_spill(s) != 0) {
            return -1;
        }

        return us_sort_add(s, text);
    }

    len = (uint32_t) text.len;

    s->n++;
    *us_sort_places(s) = s->mem + s->used;

    memcpy(s->mem + s->used, &len, sizeof(len));
    memcpy(s->mem + s->used + sizeof(len), text.data, text.len);
    s->used += sizeof(len) + text.len;

    return 0;
}


int
us_sort_end(us_sort_t *s, us_sort_out_pt out, void *data)
{
    us_sort_memory(s);

    return us_sort_merge(s, 1, out, data);
}
