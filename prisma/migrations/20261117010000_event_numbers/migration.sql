-- Events are ordered by the number of the writing transaction, so that a reader can tell which rows are final: those
-- below the oldest running transaction. In a database that was restored into another cluster, transaction ids begin
-- anew. What is added to them makes the numbers go on above those of the restored rows.
CREATE TABLE "event_numbering" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "cluster" BIGINT NOT NULL,
    "added" BIGINT NOT NULL,

    CONSTRAINT "event_numbering_pkey" PRIMARY KEY ("id")
);

-- A database without events gets its row with the first of them: it may be filled with copied rows before. So does one
-- whose events come from another cluster, which has numbers that this one has not reached.
INSERT INTO "event_numbering" ("cluster", "added")
  SELECT "system_identifier", 0 FROM pg_control_system()
  WHERE (SELECT "xid" FROM "event" ORDER BY "xid" DESC LIMIT 1) < pg_current_xact_id();

-- The number of the running transaction. The first one that writes in another cluster than before sets what is added,
-- and all others wait for it. 2^32 more than needed: servers that ran on during the restore may have read beyond the last
-- row, up to where no transaction ran any more.
CREATE FUNCTION "event_xid"() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
  number xid8;
BEGIN
  LOOP
    SELECT (pg_current_xact_id()::text::bigint + "added")::text::xid8 INTO number
    FROM "event_numbering" WHERE "cluster" = (pg_control_system())."system_identifier";
    IF number IS NOT NULL THEN RETURN number; END IF;
    INSERT INTO "event_numbering" AS n ("cluster", "added")
    SELECT (pg_control_system())."system_identifier", GREATEST(0, (SELECT "added" FROM "event_numbering"),
      (SELECT "xid"::text::bigint FROM "event" ORDER BY "xid" DESC LIMIT 1)
        - pg_snapshot_xmin(pg_current_snapshot())::text::bigint + 4294967296)
    ON CONFLICT ("id") DO UPDATE SET "cluster" = excluded."cluster", "added" = excluded."added"
      WHERE n."cluster" <> excluded."cluster";
  END LOOP;
END $$;

-- The first number that a transaction may still write, as of the snapshot whose oldest running transaction is given.
-- Until the first event in another cluster, nothing but the restored rows is there, and all of them are final.
CREATE FUNCTION "event_horizon"("oldest" xid8) RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
DECLARE
  number xid8;
BEGIN
  SELECT ("oldest"::text::bigint + "added")::text::xid8 INTO number
  FROM "event_numbering" WHERE "cluster" = (pg_control_system())."system_identifier";
  IF number IS NULL THEN
    SELECT ("xid"::text::bigint + 1)::text::xid8 INTO number FROM "event" ORDER BY "xid" DESC LIMIT 1;
  END IF;
  RETURN COALESCE(number, "oldest");
END $$;

ALTER TABLE "event" ALTER COLUMN "xid" SET DEFAULT "event_xid"();
ALTER TABLE "delivery" ALTER COLUMN "xid" SET DEFAULT "event_xid"();
