#!/bin/sh
# Replaces the replicas of compose.yaml by new ones, of an image built from the sources as they are now. No request fails: the
# new replicas start beside the old ones, which are stopped, one after another, once the new ones answer.
# `docker compose up --build` would stop all at once.
set -eu
docker compose build portico
old=$(docker compose ps --quiet portico)
[ -n "$old" ] || { echo 'No replica is running: docker compose up --wait' >&2; exit 1; }
count=$(echo "$old" | wc -l)
if ! docker compose up --detach --no-deps --no-recreate --scale portico=$((2 * count)) --wait portico; then
  echo 'The new replicas do not start: they are removed, and the old ones go on. Their log:' >&2
  for new in $(docker compose ps --all --quiet portico | grep -vF "$old"); do
    docker logs --tail 5 "$new" >&2
    docker rm --force "$new"
  done
  exit 1
fi
for replica in $old; do
  docker stop "$replica"
  docker rm "$replica"
done
