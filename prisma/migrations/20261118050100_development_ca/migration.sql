-- The root of the development CA, one for the whole installation.
CREATE TABLE "development_ca" (
    "id" TEXT NOT NULL,
    "certificate" TEXT NOT NULL,
    "key" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "development_ca_pkey" PRIMARY KEY ("id")
);
