-- What a project shows to the host of its repository: a deploy key or a token, sealed.
CREATE TABLE "repository_access" (
    "project_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "origin" TEXT NOT NULL,
    "username" TEXT,
    "secret" BYTEA NOT NULL,
    "public_key" TEXT,
    "host_keys" TEXT[],
    "host_keys_seen" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "repository_access_pkey" PRIMARY KEY ("project_id")
);
ALTER TABLE "repository_access" ADD CONSTRAINT "repository_access_project_id_fkey" FOREIGN KEY ("project_id")
  REFERENCES "project"("id") ON DELETE CASCADE ON UPDATE CASCADE;
