-- A token that replaced itself, or was replaced by what it had created, shares a lineage with its successor: whoever stole one
-- may have made the other, so that revoking one of them revokes all. Processes that do not know these columns yet may go on
-- inserting tokens without them: those have a lineage of their own, and end with their parent.
ALTER TABLE "token" ADD COLUMN "creator_id" TEXT, ADD COLUMN "lineage_id" TEXT, ADD COLUMN "replaces_id" TEXT,
  ADD COLUMN "replaced_by_id" TEXT;

UPDATE "token" SET "creator_id" = "parent_id" WHERE "parent_id" IS NOT NULL;

-- What events still tell: which token asked for another one, and what replaced what.
UPDATE "token" t SET "creator_id" = e."actor" FROM "account" a JOIN "event" e ON e."account_id" = a."id"
  WHERE e."type" = 'token.created' AND e."actor" LIKE 'tok\_%' AND t."id" = e."subject" AND t."account_id" = a."id";
UPDATE "token" t SET "replaces_id" = e."subject",
    "creator_id" = CASE WHEN e."actor" LIKE 'tok\_%' THEN e."actor" ELSE t."creator_id" END
  FROM "account" a JOIN "event" e ON e."account_id" = a."id"
  WHERE e."type" = 'token.rotated' AND t."id" = e."data"->>'id' AND t."account_id" = a."id";
UPDATE "token" t SET "replaced_by_id" = n."id"
  FROM (SELECT "replaces_id", max("id") AS "id" FROM "token" WHERE "replaces_id" IS NOT NULL GROUP BY 1) n
  WHERE t."id" = n."replaces_id";

-- In the order of time: whether who asked is of the lineage that it replaced a token of, or was created by one of it.
DO $$
DECLARE
  one record;
  lineage text;
BEGIN
  FOR one IN SELECT "id", "replaces_id", "creator_id" FROM "token" WHERE "replaces_id" IS NOT NULL ORDER BY "id" LOOP
    lineage := coalesce((SELECT coalesce("lineage_id", "id") FROM "token" WHERE "id" = one."replaces_id"), one."replaces_id");
    UPDATE "token" SET "lineage_id" = lineage WHERE "id" = one."id" AND (one."creator_id" = one."replaces_id" OR EXISTS (
      WITH RECURSIVE above AS (
        SELECT "id", "creator_id", "lineage_id" FROM "token" WHERE "id" = one."creator_id"
        UNION SELECT t."id", t."creator_id", t."lineage_id" FROM "token" t JOIN above ON t."id" = above."creator_id")
      SELECT 1 FROM above WHERE coalesce("lineage_id", "id") = lineage));
  END LOOP;
END
$$;

CREATE INDEX "token_creator_id_idx" ON "token"("creator_id");
CREATE INDEX "token_lineage_id_idx" ON "token"("lineage_id");
