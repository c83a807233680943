-- Comes before every id of an event that is made at this time (UTC) or later, and after all that were made before.
CREATE FUNCTION "event_id_at"("at" timestamp) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT 'evt_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> 5 * n) % 32)::int + 1, 1), '' ORDER BY n DESC)
  FROM (SELECT floor(extract(epoch FROM "at") * 1000)::bigint AS ms) t, generate_series(0, 9) n
$$;

CREATE FUNCTION "event_month_name"("month" timestamp) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char("month", '"event_"YYYYMM')
$$;

-- The log in months, by the time in the ids: a month is removed by dropping its table. Every id has its place: the first
-- table has no lower bound and the last one no upper bound. What was written up to the end of this month stays together
-- in the first; no row is moved.
ALTER TABLE "event" RENAME TO "event_000000";
DROP TRIGGER "event_notify" ON "event_000000";
DROP TRIGGER "event_deliver" ON "event_000000";
ALTER INDEX "event_pkey" RENAME TO "event_000000_pkey";
ALTER INDEX "event_account_id_id_idx" RENAME TO "event_000000_account_id_id_idx";
ALTER INDEX "event_account_id_subject_id_idx" RENAME TO "event_000000_account_id_subject_id_idx";
ALTER INDEX "event_account_id_type_id_idx" RENAME TO "event_000000_account_id_type_id_idx";
ALTER INDEX "event_project" RENAME TO "event_000000_project";
ALTER INDEX "event_xid_seq_idx" RENAME TO "event_000000_xid_seq_idx";

CREATE TABLE "event" (LIKE "event_000000" INCLUDING DEFAULTS) PARTITION BY RANGE ("id");
ALTER SEQUENCE "event_seq_seq" OWNED BY "event"."seq";
ALTER TABLE "event" ADD CONSTRAINT "event_pkey" PRIMARY KEY ("id");
CREATE INDEX "event_account_id_id_idx" ON "event"("account_id", "id");
CREATE INDEX "event_account_id_subject_id_idx" ON "event"("account_id", "subject", "id");
CREATE INDEX "event_account_id_type_id_idx" ON "event"("account_id", "type", "id");
CREATE INDEX "event_project" ON "event"("account_id", "project_id", "id") WHERE "project_id" IS NOT NULL;
CREATE INDEX "event_xid_seq_idx" ON "event"("xid", "seq");

DO $$
DECLARE
  next timestamp := date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month';
BEGIN
  EXECUTE format('CREATE TABLE %I PARTITION OF "event" FOR VALUES FROM (%L) TO (MAXVALUE)', "event_month_name"(next),
    "event_id_at"(next));
  -- Ids that lie in the future were made by a clock that is wrong.
  EXECUTE format('WITH moved AS (DELETE FROM "event_000000" WHERE "id" >= %L RETURNING *) INSERT INTO "event" SELECT * FROM moved',
    "event_id_at"(next));
  EXECUTE format('ALTER TABLE "event" ATTACH PARTITION "event_000000" FOR VALUES FROM (MINVALUE) TO (%L)', "event_id_at"(next));
END $$;

CREATE TRIGGER "event_notify" AFTER INSERT ON "event" FOR EACH ROW EXECUTE FUNCTION "event_notify"();
CREATE TRIGGER "event_deliver" AFTER INSERT ON "event"
  FOR EACH ROW WHEN (NEW."type" <> 'webhook.ping') EXECUTE FUNCTION "event_deliver"();

-- The tables of the log in their order, each with the one after it.
CREATE FUNCTION "event_months"() RETURNS TABLE ("name" text, "next" text) LANGUAGE sql STABLE AS $$
  SELECT "name", lead("name") OVER (ORDER BY "name")
  FROM (SELECT c.relname::text COLLATE "C" AS "name" FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = '"event"'::regclass) m
$$;

-- Makes tables for all months up to the one after the next, and returns how many. The last one is given an upper bound, and a
-- new one follows it; that works however late it is done. Gives up after a second rather than hold up others while it
-- waits for a long transaction.
CREATE FUNCTION "make_event_months"("at" timestamptz) RETURNS integer LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  this timestamp := date_trunc('month', "at" AT TIME ZONE 'UTC');
  old text;
  lower timestamp;
  upper timestamp;
  made integer := 0;
BEGIN
  -- One at a time.
  LOCK TABLE ONLY "event" IN SHARE UPDATE EXCLUSIVE MODE;
  LOOP
    SELECT "name", to_date(substr("name", 7), 'YYYYMM') INTO old, lower FROM "event_months"() WHERE "next" IS NULL;
    IF lower > this + interval '1 month' THEN RETURN made; END IF;
    upper := GREATEST(lower, this) + interval '1 month';
    EXECUTE format('ALTER TABLE "event" DETACH PARTITION %I', old);
    EXECUTE format('CREATE TABLE %I (LIKE "event" INCLUDING DEFAULTS INCLUDING INDEXES)', "event_month_name"(upper));
    -- Ids beyond it were made by a clock that is wrong.
    EXECUTE format('WITH beyond AS (DELETE FROM %I WHERE "id" >= %L RETURNING *) INSERT INTO %I SELECT * FROM beyond', old,
      "event_id_at"(upper), "event_month_name"(upper));
    EXECUTE format('ALTER TABLE "event" ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', old, "event_id_at"(lower),
      "event_id_at"(upper));
    EXECUTE format('ALTER TABLE "event" ATTACH PARTITION %I FOR VALUES FROM (%L) TO (MAXVALUE)', "event_month_name"(upper),
      "event_id_at"(upper));
    made := made + 1;
  END LOOP;
END $$;

-- Drops the tables of which every month is older than the `kept` last ones, and returns how many. A new first table takes
-- their place, for ids of any time.
CREATE FUNCTION "drop_event_months"("at" timestamptz, "kept" integer) RETURNS integer LANGUAGE plpgsql
SET lock_timeout = '1s' AS $$
DECLARE
  first text := "event_month_name"(date_trunc('month', "at" AT TIME ZONE 'UTC') - "kept" * interval '1 month');
  old text;
  upper text;
  dropped integer := 0;
BEGIN
  LOCK TABLE ONLY "event" IN SHARE UPDATE EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT 1 FROM "event_months"() WHERE "next" <= first COLLATE "C" AND "name" <> 'event_000000')
    AND NOT EXISTS (SELECT 1 FROM "event_000000") THEN RETURN 0; END IF;
  SELECT max("next") INTO upper FROM "event_months"() WHERE "next" <= first COLLATE "C";
  FOR old IN SELECT "name" FROM "event_months"() WHERE "next" <= upper LOOP
    EXECUTE format('DROP TABLE %I', old);
    dropped := dropped + 1;
  END LOOP;
  IF dropped > 0 THEN
    EXECUTE format('CREATE TABLE "event_000000" PARTITION OF "event" FOR VALUES FROM (MINVALUE) TO (%L)',
      "event_id_at"(to_date(substr(upper, 7), 'YYYYMM')));
  END IF;
  RETURN dropped;
END $$;
