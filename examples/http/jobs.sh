#!/bin/sh
# A job's whole life by curl alone: enqueue, claim, renew, ack, and look at how it ended.
#
#   windlass serve sqlite:///jobs.db &
#   sh jobs.sh
#
# WINDLASS_URL says where, WINDLASS_TOKEN who.
set -eu
url=${WINDLASS_URL:-http://127.0.0.1:8700}

# One call. It has a name of its own, made before the first try: curl may repeat it when the reply was lost, and it is
# done once all the same.
call() {
    path=$1
    body=$2
    name=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 90 \
        --header "Content-Type: application/json" \
        --header "Authorization: Bearer ${WINDLASS_TOKEN:-}" \
        --header "Windlass-Request: $name" \
        --data "$body" "$url/api/v1/$path"
}

# The first value of a text field in JSON without spaces, as Windlass writes it; use jq where there is one.
field() {
    sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'
}

call jobs '{"jobs":[{"queue":"shell","kind":"greet","payload":{"name":"world"}}]}' >/dev/null
echo "enqueued"

# as soon as there is one, at most 10 seconds from now; it is ours for 30 seconds
claimed=$(call claims '{"queues":["shell"],"lease":30,"wait":10}')
token=$(printf %s "$claimed" | field token)
id=$(printf %s "$claimed" | sed -n 's/.*"job":{[^}]*"id":"\([^"]*\)".*/\1/p')
[ -n "$token" ] || { echo "nothing came: $claimed" >&2; exit 1; }
echo "claimed $id"

# longer work renews each third of its lease, and stops when it hears of a cancel
renewed=$(call claims/renew "{\"claims\":[{\"id\":\"$id\",\"token\":\"$token\"}],\"lease\":30}")
case $renewed in *lease_expires_at*) echo "renewed" ;; *) echo "the claim was lost" >&2; exit 1 ;; esac

settled=$(call claims/settle \
    "{\"settlements\":[{\"do\":\"ack\",\"id\":\"$id\",\"token\":\"$token\",\"result\":\"hello world\"}]}")
[ "$(printf %s "$settled" | field outcome)" = done ] || { echo "not settled: $settled" >&2; exit 1; }
echo "acked"

state=$(curl --silent --show-error --fail-with-body --header "Authorization: Bearer ${WINDLASS_TOKEN:-}" \
    "$url/api/v1/jobs/$id" | field state)
echo "the job is $state"
