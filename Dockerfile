# One image for every process of Farthing; docker-compose.yml says which one a container runs.
#
# The image omits packages that only `npm start` needs: the embedded Postgres and ClickHouse (about 600 MB), and the packages of
# the console. They are optionalDependencies, so --omit=optional leaves them behind, and .dockerignore keeps a local node_modules
# from bringing them back. In this image DATABASE_URL, CLICKHOUSE_URL and KAFKA_BROKERS must therefore be set.

FROM node:22.23.2-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No package may run a script at install, and none needs one.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

# The image gets only the built console of this stage.
FROM node:22.23.2-bookworm-slim AS console
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts
COPY . .
RUN node --import ./process/typescript.mjs process/console-build.ts

FROM node:22.23.2-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /app
# A new volume is owned by whom its directory here is owned by.
RUN install -d -o node -g node /data /exports
COPY --from=dependencies /app/node_modules ./node_modules
# What belongs in here is decided by .dockerignore. Root owns it, so that the process cannot change its own code.
COPY . .
COPY --from=console /app/console-dist ./console-dist
USER node
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["sh", "process/node.sh", "--import", "./process/typescript.mjs", "api/main.ts"]
