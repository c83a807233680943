-- What builds and servers of a project may reach: 'public', 'registry' or 'none'.

ALTER TABLE "project" ADD COLUMN "build_network" TEXT NOT NULL DEFAULT 'public',
ADD COLUMN "server_network" TEXT NOT NULL DEFAULT 'public';
