-- A repeated POST is answered with the ETag of what the first one made, too.
ALTER TABLE "idempotency_key" ADD COLUMN "etag" TEXT;
