
/*
 * See us_problem.h.
 */


#include "us_problem.h"
#include "../us_text.h"
#include "../us_utf8.h"


us_str_t
us_problem_line(unsigned status)
{
    size_t  i;

    static const struct {
        unsigned     status;
        const char  *line;
    } lines[] = {
        { 400, "400 Bad Request" },
        { 401, "401 Unauthorized" },
        { 403, "403 Forbidden" },
        { 404, "404 Not Found" },
        { 405, "405 Method Not Allowed" },
        { 408, "408 Request Timeout" },
        { 409, "409 Conflict" },
        { 410, "410 Gone" },
        { 411, "411 Length Required" },
        { 412, "412 Precondition Failed" },
        { 413, "413 Content Too Large" },
        { 414, "414 URI Too Long" },
        { 415, "415 Unsupported Media Type" },
        { 416, "416 Range Not Satisfiable" },
        { 421, "421 Misdirected Request" },
        { 422, "422 Unprocessable Content" },
        { 429, "429 Too Many Requests" },
        { 500, "500 Internal Server Error" },
        { 501, "501 Not Implemented" },
        { 503, "503 Service Unavailable" },
        { 504, "504 Gateway Timeout" },
        { 507, "507 Insufficient Storage" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (lines[i].status == status) {
            return us_str_of(lines[i].line);
        }
    }

    return us_string("");
}


uint8_t *
us_problem_begin(uint8_t *p, unsigned status, uint8_t *detail, size_t len,
    const char *members)
{
    size_t    i;
    us_str_t  line;

    /* the title is what follows the code */

    line = us_problem_line(status);

    p = us_put(p, "{\"type\":\"about:blank\",\"title\":\"");
    p = line.len ? us_put_str(p, (us_str_t) { line.len - 4, line.data + 4 })
                 : us_put(p, "Error");
    p = us_put(p, "\",\"status\":");
    p = us_put_u64(p, status);

    if (len) {

        if (!us_utf8_valid((us_str_t) { len, detail })) {
            for (i = 0; i < len; i++) {
                if (detail[i] >= 0x80) {
                    detail[i] = '?';
                }
            }
        }

        p = us_put(p, ",\"detail\":");
        p = us_json_quote(p, (us_str_t) { len, detail });
    }

    if (members) {
        *p++ = ',';
        p = us_put(p, members);
    }

    return p;
}
