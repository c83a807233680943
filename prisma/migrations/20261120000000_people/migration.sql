-- People: who signs in to the console, in which accounts they are and as what, and how they prove who they are.
CREATE TABLE "users" (
    "id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "operator" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "password_hash" TEXT,
    "totp_secret" TEXT,
    "totp_confirmed_at" TIMESTAMPTZ(3),
    "totp_last_step" BIGINT,
    "oidc_subject" TEXT,
    "muted_mails" TEXT[] DEFAULT ARRAY[]::TEXT[],

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "users_email_key" ON "users"("email");
CREATE UNIQUE INDEX "users_oidc_subject_key" ON "users"("oidc_subject");

CREATE TABLE "session" (
    "id" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "user_id" TEXT NOT NULL,
    "method" TEXT NOT NULL,
    "user_agent" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "session_hash_key" ON "session"("hash");
CREATE INDEX "session_user_id_id_idx" ON "session"("user_id", "id");
CREATE INDEX "session_last_seen_at_idx" ON "session"("last_seen_at");
ALTER TABLE "session" ADD CONSTRAINT "session_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "token" ADD COLUMN "user_id" TEXT, ADD COLUMN "session_id" TEXT;
CREATE INDEX "token_user_id_idx" ON "token"("user_id");
CREATE INDEX "token_session_id_idx" ON "token"("session_id");
ALTER TABLE "token" ADD CONSTRAINT "token_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "token" ADD CONSTRAINT "token_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "session"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "membership" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "project_ids" TEXT[],
    "token_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "membership_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "membership_token_id_key" ON "membership"("token_id");
CREATE UNIQUE INDEX "membership_account_id_user_id_key" ON "membership"("account_id", "user_id");
CREATE INDEX "membership_account_id_id_idx" ON "membership"("account_id", "id");
CREATE INDEX "membership_user_id_idx" ON "membership"("user_id");
ALTER TABLE "membership" ADD CONSTRAINT "membership_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "membership" ADD CONSTRAINT "membership_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "membership" ADD CONSTRAINT "membership_token_id_fkey" FOREIGN KEY ("token_id") REFERENCES "token"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "invitation" (
    "id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "project_ids" TEXT[],
    "hash" BYTEA NOT NULL,
    "invited_by" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "accepted_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "invitation_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "invitation_hash_key" ON "invitation"("hash");
CREATE INDEX "invitation_account_id_id_idx" ON "invitation"("account_id", "id");
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "sign_in_link" (
    "hash" BYTEA NOT NULL,
    "user_id" TEXT,
    "account_id" TEXT,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sign_in_link_pkey" PRIMARY KEY ("hash")
);
CREATE INDEX "sign_in_link_user_id_idx" ON "sign_in_link"("user_id");
CREATE INDEX "sign_in_link_account_id_idx" ON "sign_in_link"("account_id");
CREATE INDEX "sign_in_link_expires_at_idx" ON "sign_in_link"("expires_at");
ALTER TABLE "sign_in_link" ADD CONSTRAINT "sign_in_link_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "sign_in_link" ADD CONSTRAINT "sign_in_link_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "passkey" (
    "id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "credential_id" BYTEA NOT NULL,
    "public_key" BYTEA NOT NULL,
    "counter" BIGINT NOT NULL,
    "transports" TEXT[],
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "last_used_at" TIMESTAMPTZ(3),

    CONSTRAINT "passkey_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "passkey_credential_id_key" ON "passkey"("credential_id");
CREATE INDEX "passkey_user_id_id_idx" ON "passkey"("user_id", "id");
ALTER TABLE "passkey" ADD CONSTRAINT "passkey_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "recovery_code" (
    "user_id" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "recovery_code_pkey" PRIMARY KEY ("user_id", "hash")
);
ALTER TABLE "recovery_code" ADD CONSTRAINT "recovery_code_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "sign_in_step" (
    "hash" BYTEA NOT NULL,
    "kind" TEXT NOT NULL,
    "data" JSONB NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sign_in_step_pkey" PRIMARY KEY ("hash")
);
CREATE INDEX "sign_in_step_expires_at_idx" ON "sign_in_step"("expires_at");
