-- The token that made a token. Those from before have none: who made them is not known for certain.
ALTER TABLE "token" ADD COLUMN "parent_id" TEXT;

CREATE INDEX "token_parent_id_idx" ON "token"("parent_id");

ALTER TABLE "token" ADD CONSTRAINT "token_parent_id_fkey" FOREIGN KEY ("parent_id") REFERENCES "token"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;
