-- Whose tokens of OpenID Connect are exchanged for short tokens of a project, and those that were.
CREATE TABLE "oidc_trust" (
    "project_id" TEXT NOT NULL,
    "issuer" TEXT NOT NULL,
    "audience" TEXT NOT NULL,
    "claims" JSONB NOT NULL,
    "scopes" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "oidc_trust_pkey" PRIMARY KEY ("project_id")
);
ALTER TABLE "oidc_trust" ADD CONSTRAINT "oidc_trust_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "project"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "oidc_use" (
    "issuer" TEXT NOT NULL,
    "jti" TEXT NOT NULL,
    "project_id" TEXT NOT NULL,
    "token_id" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "oidc_use_pkey" PRIMARY KEY ("issuer", "jti")
);
CREATE INDEX "oidc_use_project_id_idx" ON "oidc_use"("project_id");
CREATE INDEX "oidc_use_expires_at_idx" ON "oidc_use"("expires_at");
