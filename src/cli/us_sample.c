
/*
 * See us_sample.h.
 */


#include "us_sample.h"
#include "us_cli.h"
#include "us_cli_norm.h"
#include "us_files.h"


typedef struct {
    us_norm_t     *norm;
    us_norm_ws_t  *ws;
    us_key_t       key;
    uint32_t      *weight;
} us_sampling_t;


static int
us_sample_lines(void *data, us_str_t *lines, size_t n)
{
    us_sampling_t *s = data;

    size_t      i;
    us_canon_t  canon;
    uint32_t   *weight;

    for (i = 0; i < n; i++) {
        if (us_normalize(s->norm, s->ws, lines[i], NULL, &canon)
            == US_URL_OK)
        {
            weight = &s->weight[us_slot_of(s->key, canon.url.href)];
            *weight += *weight < UINT32_MAX;
        }
    }

    return US_CLI_DONE;
}


static int
us_sample_read(us_sampling_t *s, const char *path)
{
    int         code;
    char       *names[1];
    us_files_t  files;

    memset(&files, 0, sizeof(us_files_t));
    files.take = us_sample_lines;
    files.data = s;
    files.cut = 1;
    names[0] = (char *) path;
    code = US_CLI_USAGE;

    if (us_files_init(&files) == 0) {
        code = us_files_run(&files, 1, names);

        if (code == US_CLI_DONE) {
            code = us_files_code(&files);
        }
    }

    us_files_free(&files);

    return code;
}


int
us_sample(const char *path, us_str_t norm, us_key_t key,
    uint32_t weight[US_SLOTS])
{
    int          code;
    unsigned     slot;
    us_sampling_t  s;

    s.key = key;
    s.weight = weight;
    s.norm = us_cli_norm(norm);
    s.ws = s.norm ? us_norm_ws_create(s.norm) : NULL;

    for (slot = 0; slot < US_SLOTS; slot++) {
        weight[slot] = 1;
    }

    if (s.ws == NULL) {
        fprintf(stderr, "urlstore: no normalization \"%.*s\"\n",
                (int) norm.len, norm.data);
        us_norm_destroy(s.norm);
        return US_CLI_USAGE;
    }

    code = us_sample_read(&s, path);
    us_norm_ws_destroy(s.ws);
    us_norm_destroy(s.norm);

    return code;
}
