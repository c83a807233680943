-- Who sees deployments that do not serve production: everybody, who knows a password, or who has a link.
ALTER TABLE "project" ADD COLUMN "preview_protection" TEXT NOT NULL DEFAULT 'none';
ALTER TABLE "project" ADD COLUMN "preview_password_hash" TEXT;
ALTER TABLE "project" ADD COLUMN "preview_version" INTEGER NOT NULL DEFAULT 0;
-- Whether the pages of a visitor go on with the deployment that they were loaded from.
ALTER TABLE "project" ADD COLUMN "skew_protection" BOOLEAN NOT NULL DEFAULT false;
