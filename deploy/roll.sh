#!/bin/sh
# Replaces the replicas of compose.yaml by new ones, as many as it says, of an image built from the sources as they are now. No
# request fails: the new replicas start beside the old ones, which are stopped, one after another, once the new ones are ready.
# After an interruption, or a failure, run it again. `docker compose up --build` would stop all at once.
set -eu
docker compose build portico
# A replica that an interrupted run has stopped would be counted below.
docker compose rm --force portico
old=$(docker compose ps --quiet portico)
[ -n "$old" ] || { echo 'No replica is running: docker compose up --wait' >&2; exit 1; }
count=$(docker compose config portico | sed -n 's/^ *replicas: *//p')

# Without `--all`, which would also list what `docker compose run` has started.
list_new() { docker compose ps --quiet portico | grep -vxF "$old" || true; }
give_up() {
  echo 'The new replicas are not ready: they are removed, and the old ones go on. Their log:' >&2
  for new in $(list_new); do
    docker logs --tail 5 "$new" >&2
    docker rm --force "$new"
  done
  docker compose rm --force portico
}
trap give_up EXIT
trap 'exit 1' HUP INT TERM
total=$(($(echo "$old" | wc -l) + ${count:-1}))
# The option `--wait` would wait for the old replicas too, and one of them may be broken.
docker compose up --detach --no-deps --no-recreate --scale portico=$total portico
ask() {
  docker exec "$1" node --input-type=module --eval '
    const url = `http://127.0.0.1:${process.env.PORT}/health/ready`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).then((response) => response.text(), String);
    console.log(answer);
    process.exit(answer.includes(`"ready"`) ? 0 : 1);' 2>&1
}
deadline=$(($(date +%s) + 120))
for new in $(list_new); do
  # A replica that cannot reach Redis or the identity provider is `degraded`, and one that exits at each start has no answer.
  until answer=$(ask "$new"); do
    [ "$(date +%s)" -lt $deadline ] || { echo "$answer" >&2; exit 1; }
    sleep 1
  done
done
[ "$(list_new | wc -l)" -eq "${count:-1}" ]
trap - EXIT HUP INT TERM
for replica in $old; do
  docker stop "$replica"
  docker rm "$replica"
done
