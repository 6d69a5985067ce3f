FROM node:24-bookworm-slim AS base
WORKDIR /portico

FROM base AS build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json launch.mjs ./
COPY prisma prisma
COPY src src
RUN npm run build

FROM base AS dependencies
COPY package.json package-lock.json .npmrc ./
# Without the optional ones too: that is how the lock file lists the tools of Prisma and the compiler, as peers that need not be there.
RUN npm ci --omit=dev --omit=optional

FROM base
ENV NODE_ENV=production DATA_DIR=/data HOST=0.0.0.0 PORT=4000
RUN install --directory --owner=node --group=node --mode=700 /data
COPY --from=dependencies /portico/node_modules node_modules
# launch.mjs takes the build whose name is the hash of these files: they must be those that it was made of.
COPY --from=build /portico/package.json /portico/package-lock.json /portico/tsconfig.json /portico/launch.mjs ./
COPY --from=build /portico/prisma prisma
COPY --from=build /portico/src src
COPY --from=build /portico/dist dist
USER node
VOLUME /data
EXPOSE 4000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "launch.mjs", "main"]
