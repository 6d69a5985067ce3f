#!/bin/sh
# Prints the current digests of the tags in compose.yaml and the Dockerfile, for .env, which pins the images to them.
set -eu
pin() {
  # Without `print`, Buildx takes the template for `{{.Manifest}}`, which is a text of several lines.
  digest=$(docker buildx imagetools inspect "$2" --format '{{print .Manifest.Digest}}')
  echo "$1=@$digest"
}
pin NODE_DIGEST node:24-bookworm-slim
pin HAPROXY_DIGEST haproxy:3.2
pin POSTGRES_DIGEST postgres:17
pin REDIS_DIGEST redis:7
