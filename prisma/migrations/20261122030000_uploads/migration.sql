-- Deployments without git: files that an account has uploaded, and the files that a deployment is built from.

-- Content that waits for a deployment. `complete`: all of it is in the artifact store; otherwise it is still coming.
CREATE TABLE "upload" (
    "account_id" TEXT NOT NULL,
    "sha256" TEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "complete" BOOLEAN NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "upload_pkey" PRIMARY KEY ("account_id", "sha256")
);
CREATE INDEX "upload_expires_at_idx" ON "upload"("expires_at");
ALTER TABLE "upload" ADD CONSTRAINT "upload_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- The source of a deployment that was uploaded. `missing`: how many of its files have no content yet; `expires_at` is
-- when it is given up, null once nothing is missing. `new_bytes` is what nobody had uploaded for the project before.
CREATE TABLE "deployment_source" (
    "deployment_id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "prebuilt" BOOLEAN NOT NULL,
    "missing" INTEGER NOT NULL,
    "new_bytes" BIGINT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "deployment_source_pkey" PRIMARY KEY ("deployment_id")
);
CREATE INDEX "deployment_source_account_id_idx" ON "deployment_source"("account_id");
CREATE INDEX "deployment_source_project_id_idx" ON "deployment_source"("project_id");
CREATE INDEX "deployment_source_expires_at_idx" ON "deployment_source"("expires_at");
ALTER TABLE "deployment_source" ADD CONSTRAINT "deployment_source_deployment_id_fkey" FOREIGN KEY ("deployment_id")
  REFERENCES "deployment"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "source_file" (
    "deployment_id" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "sha256" TEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "mode" INTEGER NOT NULL,
    "present" BOOLEAN NOT NULL,

    CONSTRAINT "source_file_pkey" PRIMARY KEY ("deployment_id", "path")
);
-- What a project has already, what an account still has to upload, and all that the artifact store must keep.
CREATE INDEX "source_file_project_id_sha256_idx" ON "source_file"("project_id", "sha256");
CREATE INDEX "source_file_missing" ON "source_file"("account_id", "sha256") WHERE NOT "present";
CREATE INDEX "source_file_sha256_idx" ON "source_file"("sha256");
ALTER TABLE "source_file" ADD CONSTRAINT "source_file_deployment_id_fkey" FOREIGN KEY ("deployment_id")
  REFERENCES "deployment_source"("deployment_id") ON DELETE CASCADE ON UPDATE CASCADE;
