# The API and every other role in one image: built with all tools, run with none of them, never as root.
FROM node:24-bookworm-slim AS build
WORKDIR /berth
COPY package.json package-lock.json ./
COPY prisma prisma
RUN npm install
COPY tsconfig.json tsconfig.build.json openapi.yaml ./
COPY src src
RUN npm run build

FROM node:24-bookworm-slim AS packages
WORKDIR /berth
COPY package.json package-lock.json ./
# Without the embedded database and the Node of the npm registry: the image has its own, the database is another's.
RUN npm install --omit=dev --omit=optional --ignore-scripts

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends git git-lfs ca-certificates bubblewrap nftables slirp4netns \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /berth
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/var/lib/berth
RUN install -d -o node -g node -m 0711 /var/lib/berth
COPY --from=packages /berth/node_modules node_modules
COPY --from=build /berth/dist dist
COPY package.json openapi.yaml ./
COPY prisma/migrations prisma/migrations
USER node
VOLUME /var/lib/berth
EXPOSE 3000 8080 8443 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "dist/src/roles/health.js"]
ENTRYPOINT ["node", "dist/src/cli.js"]
CMD ["serve"]
