# Turns files into one C header, at configure time.
#
#     awk -f front/front.awk front/status.html front/openapi.yaml
#
# front/NAME.EXT becomes the string ngx_http_urlstore_front_NAME.

BEGIN {
    print "\n/*\n * Made by front/front.awk from the files of front/.\n */"
}

FNR == 1 {
    if (NR > 1) {
        print ");"
    }

    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\..*/, "", name)

    printf "\n\nstatic ngx_str_t  ngx_http_urlstore_front_%s = ", name
    printf "ngx_string("
}

{
    gsub(/[\\"]/, "\\\\&")
    printf "\n    \"%s\\n\"", $0
}

END {
    print ");"
}
