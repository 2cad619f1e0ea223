# Turns the files of front/ into one C header, at configure time.
#
#     awk -f front/front.awk front/status.html front/openapi.yaml
#
# For front/NAME.EXT it writes an array ngx_http_urlstore_front_NAME[] of
# pieces: a literal text, and the slot that follows it.  A slot is written
# {{name}} in the file and becomes NGX_HTTP_URLSTORE_SLOT_NAME, which the C
# code has to know, or it does not compile; after the last text follows
# NGX_HTTP_URLSTORE_SLOT_END.

function open_file(path) {
    close_file()
    name = path
    sub(/.*\//, "", name)
    sub(/\..*/, "", name)
    slots = path ~ /\.html$/
    printf "\n\nstatic ngx_http_urlstore_front_t"
    printf "  ngx_http_urlstore_front_%s[] = {\n    { ngx_string(\"\"", name
}

function close_file() {
    if (name != "") {
        print "), NGX_HTTP_URLSTORE_SLOT_END }\n};"
    }
}

function text(s, end) {
    gsub(/[\\"]/, "\\\\&", s)
    printf "\n        \"%s%s\"", s, end
}

BEGIN {
    print "\n/*\n * Made by front/front.awk from the files of front/.\n */"
}

FNR == 1 {
    open_file(FILENAME)
}

{
    line = $0

    while (slots && match(line, /\{\{[a-z]+\}\}/)) {
        text(substr(line, 1, RSTART - 1), "")
        printf "), NGX_HTTP_URLSTORE_SLOT_%s },\n    { ngx_string(\"\"",
            toupper(substr(line, RSTART + 2, RLENGTH - 4))
        line = substr(line, RSTART + RLENGTH)
    }

    text(line, "\\n")
}

END {
    close_file()
}
