-- Deploy by push: the secret that a repository host signs with, what was pushed lately, and where statuses go.

CREATE TABLE "push_hook" (
    "project_id" TEXT NOT NULL,
    "secret" BYTEA NOT NULL,
    "old_secret" BYTEA,
    "old_secret_until" TIMESTAMPTZ(3),
    "last_push_at" TIMESTAMPTZ(3),
    "status_provider" TEXT,
    "status_api_url" TEXT,
    "status_token" BYTEA,
    "status_posted_at" TIMESTAMPTZ(3),
    "status_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "push_hook_pkey" PRIMARY KEY ("project_id")
);

CREATE TABLE "push" (
    "project_id" TEXT NOT NULL,
    "delivery" TEXT NOT NULL,
    "digest" BYTEA NOT NULL,
    "deployment_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "push_pkey" PRIMARY KEY ("project_id","delivery")
);

CREATE UNIQUE INDEX "push_project_id_digest_key" ON "push"("project_id", "digest");
CREATE INDEX "push_created_at_idx" ON "push"("created_at");

ALTER TABLE "push_hook" ADD CONSTRAINT "push_hook_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "push" ADD CONSTRAINT "push_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "push_hook"("project_id") ON DELETE CASCADE ON UPDATE CASCADE;
