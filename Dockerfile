# `@sha256:…`, as deploy/digests.sh prints it.
ARG NODE_DIGEST=
FROM node:24-bookworm-slim${NODE_DIGEST} AS base
WORKDIR /portico

FROM base AS build
# Built as the user that runs the server: Node.js's compile cache is valid for the user who wrote it only.
RUN chown node:node .
USER node
COPY --chown=node:node package.json package-lock.json .npmrc ./
COPY --chown=node:node clients/typescript/package.json clients/typescript/
COPY --chown=node:node web/package.json web/
RUN npm ci
COPY --chown=node:node tsconfig.json rolldown.config.mjs openapi.json asyncapi.json ./
COPY --chown=node:node scripts scripts
COPY --chown=node:node prisma prisma
COPY --chown=node:node src src
COPY --chown=node:node demo demo
COPY --chown=node:node reference reference
COPY --chown=node:node docs docs
COPY --chown=node:node clients/typescript clients/typescript
COPY --chown=node:node web web
RUN npm run build

# A build bundles its packages: neither node_modules nor the sources are needed.
FROM base
ENV NODE_ENV=production NODE_COMPILE_CACHE=dist/current/compiled MALLOC_TRIM_THRESHOLD_=131072 DATA_DIR=/data HOST=0.0.0.0 PORT=4000
RUN install --directory --owner=node --group=node --mode=700 /data
# Also what needs no build: the user `node` may read it whatever the modes in the checkout are.
COPY --from=build /portico/package.json ./
COPY --from=build /portico/prisma/migrations prisma/migrations
COPY --from=build /portico/dist dist
USER node
VOLUME /data
EXPOSE 4000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--disable-warning=ExperimentalWarning", "--heap-growing-percent=60", "--v8-pool-size=1", "dist/current/main.js"]
