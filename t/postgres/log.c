
/*
 * The log in PostgreSQL by hand: a line of standard input is a call of
 * us_pg_ops, a line of standard output its result.  t/pg_log.t drives it.
 *
 *     log check CONNECTION            "ok", or why not
 *     log CONNECTION SHARD SINGLE     the calls:
 *
 *     timeout MS             of the changes that follow
 *     look MS                of the calls that only read
 *     stop MS                stopping() returns 1 from then on; -1: never
 *     session                prints the number of it
 *     head
 *     create UUID SETTINGS               UUID: 32 digits
 *     row LSN
 *     read LSN MAX COUNT                 ends after COUNT rows
 *     append PREV NEXT TERM CRC ACKED SEED
 *     beat PREV ACKED
 *     promote PREV OLD NEXT TERM CRC SEED HOLDER SETTINGS
 *     base PART
 *     part TERM PART BYTES SEED
 *     rebase TERM FIRST LSN PARTS
 *     trim
 *     bench N BYTES                      appends N rows; ms
 *
 * PREV is a row: LSN NEXT TERM CRC.  LSN -1 is US_REPLOG_BASE.  A row that is
 * appended has the bytes of SEED; rows that are read are printed as LSN NEXT
 * TERM CRC SEED, or "damaged".
 */

#include "postgres/us_pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


static int64_t   stop_at = -1;
static unsigned  rows_left;

static const char *const  names[] = {
    "OK", "NONE", "REFUSED", "UNKNOWN", "AWAY", "BAD"
};


static int64_t
now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


static int
stopping(void *data)
{
    return stop_at >= 0 && now() >= stop_at;
}


/* bytes that differ by seed and by place */

static void
fill(uint8_t *p, size_t len, unsigned seed)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        p[i] = (uint8_t) (seed + i * 7 + (i >> 8) * 13);
    }
}


static int
take(void *data, const us_replog_row_t *row, const uint8_t *p, size_t len)
{
    uint8_t  *same;

    same = malloc(len + 1);
    fill(same, len, len ? p[0] : 0);

    printf("%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
           (int64_t) row->lsn, row->next, row->term, row->crc);

    if (len && memcmp(same, p, len) == 0) {
        printf("%u:%zu, ", p[0], len);

    } else {
        printf("%s, ", len ? "damaged" : "empty");
    }

    free(same);

    return --rows_left ? 0 : -1;
}


static us_replog_row_t
row_of(char **word)
{
    us_replog_row_t  row;

    row.lsn = strtoll(word[0], NULL, 10);
    row.next = strtoull(word[1], NULL, 10);
    row.term = strtoull(word[2], NULL, 10);
    row.crc = strtoull(word[3], NULL, 10);

    return row;
}


static void
print_head(const us_replog_head_t *h)
{
    int  i;

    for (i = 0; i < 16; i++) {
        printf("%02x", h->uuid[i]);
    }

    printf(" settings=%s term=%" PRIu64 " holder=%s beat=%" PRIu64
           " acked=%" PRIu64 " last=%" PRId64 " %" PRIu64 " %" PRIu64 " %"
           PRIu64 ", ", h->settings, h->term, h->holder, h->beat, h->acked,
           (int64_t) h->last.lsn, h->last.next, h->last.term, h->last.crc);
}


/* so many rows after the last one */

static us_replog_rc_t
bench(us_replog_t *log, unsigned n, size_t len)
{
    int64_t            start;
    uint8_t           *p;
    unsigned           i;
    us_replog_rc_t     rc;
    us_replog_row_t    row;
    us_replog_head_t   head;

    rc = log->ops->head(log, &head);
    p = malloc(len);
    fill(p, len, 1);
    start = now();

    for (i = 0; rc == US_REPLOG_OK && i < n; i++) {
        row = head.last;
        row.lsn = head.last.next;
        row.next = row.lsn + len;

        rc = log->ops->append(log, &head.last, &row, p, len, row.lsn);
        head.last = row;
    }

    printf("%u rows of %zu bytes in %" PRId64 " ms, ", i, len, now() - start);
    free(p);

    return rc;
}


static us_replog_rc_t
change(us_replog_t *log, char **w)
{
    size_t            len;
    uint8_t          *p;
    uint64_t          beat;
    us_replog_rc_t    rc;
    us_replog_row_t   prev, row;

    prev = row_of(w + 1);
    row.lsn = prev.next;
    p = NULL;

    if (strcmp(w[0], "beat") == 0) {
        return log->ops->beat(log, &prev, strtoull(w[5], NULL, 10));
    }

    if (strcmp(w[0], "append") == 0) {
        row.next = strtoull(w[5], NULL, 10);
        row.term = strtoull(w[6], NULL, 10);
        row.crc = strtoull(w[7], NULL, 10);
        len = row.next > row.lsn ? row.next - row.lsn : 0;
        p = malloc(len + 1);
        fill(p, len, atoi(w[9]));
        rc = log->ops->append(log, &prev, &row, p, len,
                              strtoull(w[8], NULL, 10));

    } else {
        row.next = strtoull(w[6], NULL, 10);
        row.term = strtoull(w[7], NULL, 10);
        row.crc = strtoull(w[8], NULL, 10);
        len = row.next - row.lsn;
        p = malloc(len + 1);
        fill(p, len, atoi(w[9]));
        rc = log->ops->promote(log, &prev, strtoull(w[5], NULL, 10), &row, p,
                               len, w[10], w[11], &beat);

        if (rc == US_REPLOG_OK) {
            printf("beat=%" PRIu64 ", ", beat);
        }
    }

    free(p);

    return rc;
}


static us_replog_rc_t
create(us_replog_t *log, char **w)
{
    int      i;
    char     digits[3];
    uint8_t  uuid[16];

    digits[2] = '\0';

    for (i = 0; i < 16; i++) {
        memcpy(digits, w[1] + 2 * i, 2);
        uuid[i] = (uint8_t) strtoul(digits, NULL, 16);
    }

    return log->ops->create(log, uuid, w[2]);
}


static us_replog_rc_t
part(us_replog_t *log, char **w)
{
    size_t           len;
    uint8_t         *p;
    us_replog_rc_t   rc;

    len = strtoull(w[3], NULL, 10);
    p = malloc(len + 1);
    fill(p, len, atoi(w[4]));
    rc = log->ops->rebase_part(log, strtoull(w[1], NULL, 10), atoi(w[2]), p,
                               len);
    free(p);

    return rc;
}


static us_replog_rc_t
call(us_replog_t *log, char **w)
{
    us_replog_rc_t    rc;
    us_replog_head_t  head;

    rows_left = 1000000;

    if (strcmp(w[0], "timeout") == 0) {
        log->timeout = atoi(w[1]);
        return US_REPLOG_OK;
    }

    if (strcmp(w[0], "look") == 0) {
        log->look = atoi(w[1]);
        return US_REPLOG_OK;
    }

    if (strcmp(w[0], "session") == 0) {
        printf("%" PRIu64 ", ", log->session);
        return US_REPLOG_OK;
    }

    if (strcmp(w[0], "stop") == 0) {
        stop_at = atoi(w[1]) < 0 ? -1 : now() + atoi(w[1]);
        return US_REPLOG_OK;
    }

    if (strcmp(w[0], "head") == 0) {
        rc = log->ops->head(log, &head);

        if (rc == US_REPLOG_OK) {
            print_head(&head);
        }

        return rc;
    }

    if (strcmp(w[0], "row") == 0) {
        return log->ops->row(log, strtoll(w[1], NULL, 10), take, NULL);
    }

    if (strcmp(w[0], "read") == 0) {
        rows_left = atoi(w[3]);
        return log->ops->read(log, strtoull(w[1], NULL, 10),
                              strtoull(w[2], NULL, 10), take, NULL);
    }

    if (strcmp(w[0], "base") == 0) {
        return log->ops->base(log, atoi(w[1]), take, NULL);
    }

    if (strcmp(w[0], "part") == 0) {
        return part(log, w);
    }

    if (strcmp(w[0], "rebase") == 0) {
        return log->ops->rebase(log, strtoull(w[1], NULL, 10),
                                strtoull(w[2], NULL, 10),
                                strtoull(w[3], NULL, 10), atoi(w[4]));
    }

    if (strcmp(w[0], "trim") == 0) {
        return log->ops->trim(log);
    }

    if (strcmp(w[0], "bench") == 0) {
        return bench(log, atoi(w[1]), strtoull(w[2], NULL, 10));
    }

    return strcmp(w[0], "create") == 0 ? create(log, w) : change(log, w);
}


int
main(int argc, char **argv)
{
    int               n;
    char              line[4096], err[US_REPLOG_ERROR];
    char             *word[16];
    us_replog_t      *log;
    us_replog_rc_t    rc;
    us_replog_env_t   env = { stopping, NULL };

    if (argc == 3 && strcmp(argv[1], "check") == 0) {
        printf("%s\n", us_pg_ops.check(argv[2], err, sizeof(err)) ? err
                                                                  : "ok");
        return 0;
    }

    if (argc != 4) {
        fprintf(stderr, "usage: log CONNECTION SHARD SINGLE\n");
        return 2;
    }

    log = us_pg_ops.open(argv[1], atoi(argv[2]), atoi(argv[3]), &env);

    if (log == NULL) {
        fprintf(stderr, "the log cannot be opened\n");
        return 1;
    }

    while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n") != 0) {
        memset(word, 0, sizeof(word));

        for (n = 0; n < 15; n++) {
            word[n] = strtok(n ? NULL : line, " \n");

            if (word[n] == NULL) {
                break;
            }
        }

        if (n == 0) {
            continue;
        }

        /* what was read is printed before the result, on the same line */

        rc = call(log, word);
        printf("%s%s%s\n", names[rc], rc == US_REPLOG_OK ? "" : " ",
               rc == US_REPLOG_OK ? "" : log->error);
        (void) fflush(stdout);
    }

    us_pg_ops.close(log);

    return 0;
}
