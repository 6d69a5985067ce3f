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
# Without a timeout it would wait for ever for a replica that exits at each start. One that runs is unhealthy after 90 s.
total=$(($(echo "$old" | wc -l) + ${count:-1}))
docker compose up --detach --no-deps --no-recreate --scale portico=$total --wait --wait-timeout 120 portico
# Healthy means that a replica lives. One that cannot reach Redis or the identity provider would be `degraded`.
for new in $(list_new); do
  docker exec "$new" node --input-type=module --eval '
    let answer = "no response";
    for (let tries = 0; tries < 30; tries += 1) {
      answer = await fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`).then((response) => response.text(), String);
      if (answer.includes(`"ready"`)) process.exit(0);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    console.error(answer);
    process.exit(1);'
done
trap - EXIT HUP INT TERM
for replica in $old; do
  docker stop "$replica"
  docker rm "$replica"
done
