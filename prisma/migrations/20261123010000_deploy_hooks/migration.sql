-- Addresses with a secret in them: whoever knows one starts a deployment. Only the hash of the secret is kept.
CREATE TABLE "deploy_hook" (
    "id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "ref" TEXT,
    "hash" BYTEA NOT NULL,
    "last_used_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "deploy_hook_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "deploy_hook_hash_key" ON "deploy_hook"("hash");
CREATE INDEX "deploy_hook_project_id_id_idx" ON "deploy_hook"("project_id", "id");
ALTER TABLE "deploy_hook" ADD CONSTRAINT "deploy_hook_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
