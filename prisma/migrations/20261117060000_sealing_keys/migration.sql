-- The keys that values are sealed with, each with a value that only it opens: a wrong key is noticed at the start, and one
-- that was dropped too early is named.
CREATE TABLE "sealing_key" (
    "id" TEXT NOT NULL,
    "canary" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "sealing_key_pkey" PRIMARY KEY ("id")
);
