-- Programs that wait for a person to sign them in: `berth login`. Both codes are stored as hashes.
CREATE TABLE "device_login" (
    "hash" BYTEA NOT NULL,
    "user_hash" BYTEA NOT NULL,
    "client" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'pending',
    "membership_id" TEXT,
    "scopes" TEXT[],
    "interval" INTEGER NOT NULL,
    "polled_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "device_login_pkey" PRIMARY KEY ("hash")
);
CREATE UNIQUE INDEX "device_login_user_hash_key" ON "device_login"("user_hash");
CREATE INDEX "device_login_membership_id_idx" ON "device_login"("membership_id");
CREATE INDEX "device_login_expires_at_idx" ON "device_login"("expires_at");
ALTER TABLE "device_login" ADD CONSTRAINT "device_login_membership_id_fkey" FOREIGN KEY ("membership_id")
  REFERENCES "membership"("id") ON DELETE CASCADE ON UPDATE CASCADE;
