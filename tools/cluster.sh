#!/bin/bash

# make cluster, make stop-cluster: a router and three shards on this machine.
#
#     tools/cluster.sh start PORT DATA
#     tools/cluster.sh stop PORT DATA
#
# The router listens on PORT, the shards on the three ports after it.  Each is
# an nginx of its own with the prefix DATA/router, DATA/0, DATA/1, DATA/2; the
# map is DATA/map.json.  With one cluster in DATA, start begins again with the
# URLs that it has.
#
# start shows five things.  They add URLs only if there are none.

set -eu

command=$1 port=${2:-8080} data=${3:-./var/cluster}
shards='0 1 2'

# shellcheck source=tools/cluster-lib.sh
. "$(dirname "$0")/cluster-lib.sh"

check_place 3 three


node_url() { echo "http://127.0.0.1:$((port + 1 + $1))"; }


shard() {
    configure "$1" "
    urlstore_zone urls 64m \"path=$data/$1/store\" cluster=crawl shard=$1
        node=us_$1 sites=on;
    server {
        listen 127.0.0.1:$((port + 1 + $1));
        location / { urlstore_api urls; }
        location = /cluster { urlstore_cluster_admin crawl; }
    }"
    run_nginx "$1"
    wait_for "$(node_url "$1")/health"
}


# of the shards' uuids, when they have started for the first time

map() {
    local k uuids=
    for k in $shards; do
        uuids="$uuids $k=$(uuid "$k"),us_$k"
    done
    # shellcheck disable=SC2086
    new_map --key site $uuids
}


start() {
    local k h
    for k in $shards; do
        shard "$k"
    done
    [ -e "$data/map.json" ] || map
    # shellcheck disable=SC2086
    run_router $shards

    # each shard adopts the map by itself; a URL of each

    for h in a b h; do
        wait_for "$url/seen?url=http://$h.example/"
    done
}


stop() {
    local k
    for k in router $shards; do
        leave "$k"
    done
}


tour() {
    local id
    show "printf '%s\n' http://a.example/ http://b.example/ \\
    http://h.example/ |
    curl --data-binary @- '$url/add?summary=1'"

    id=$(printf 'http://a.example/\n' | curl --data-binary @- "$url/seen" \
        | cut -f 1)

    show "curl $url/url/$id     # shard $((id >> 40)), URL $((id % (1 << 40)))"
    show "'$urlstore' cluster show '$data/map.json' http://a.example/"

    kill -QUIT "$(pid $((id >> 40)))"
    while pid $((id >> 40)) > /dev/null; do sleep 0.1; done

    echo
    echo "Shard $((id >> 40)) was stopped:"
    show "printf '%s\n' http://a.example/ http://b.example/ \\
    http://h.example/ |
    curl --data-binary @- '$url/add?summary=1'"

    shard $((id >> 40))
    wait_for "$url/seen?url=http://a.example/"

    echo
    echo "Shard $((id >> 40)) runs again:"
    show "curl '$url/seen?url=http://a.example/'"

    cat <<END

The router:   $url/          (docs/cluster.md has what it serves)
The shards:   $(for k in $shards; do printf '%s/ ' "$(node_url "$k")"; done)
The map:      $data/map.json
To stop them: make stop-cluster$(
        [ "$data" = "$top/var/cluster" ] || echo " DATA='${data%/cluster}'")
END
}


case $command in

start)
    [ -n "$nginx" ] || die "no nginx: apt install nginx"
    start
    echo "A router and three shards run: $url/"
    tour
    ;;

stop)
    stop
    echo "stopped"
    ;;

*)
    die "usage: tools/cluster.sh start|stop PORT DATA"
esac
