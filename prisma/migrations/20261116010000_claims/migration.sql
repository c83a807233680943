-- Every claim to a name has two nameservers of the pool as its own, so that the delegation of the name says whose it is.
-- What was claimed is remembered for ever: a delegation outlives the claim that it was made for.

-- Empty: the first two names of the pool, which only the configuration knows; the next start fills them in.
ALTER TABLE "domain" ADD COLUMN "nameservers" TEXT[] DEFAULT ARRAY[]::TEXT[],
ADD COLUMN "unproved_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;
UPDATE "domain" SET "unproved_since" = "checking_since";

ALTER TABLE "account" ADD COLUMN "nameservers" TEXT[] DEFAULT ARRAY[]::TEXT[];

CREATE TABLE "domain_claim" (
    "name" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "pair" TEXT NOT NULL,
    "first_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "domain_claim_pkey" PRIMARY KEY ("name","account_id","pair")
);

-- The same claims by each name above theirs: the claims below a name are looked up when it is claimed, and by equality,
-- because PostgreSQL plans a statement with a range of unknown width anew each time, which takes longer than it runs.
CREATE TABLE "domain_claim_above" (
    "above" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "pair" TEXT NOT NULL,

    CONSTRAINT "domain_claim_above_pkey" PRIMARY KEY ("above","name","account_id","pair")
);

-- The name and those above it, the shortest first; a top-level domain is nobody's. In plpgsql because a function in SQL
-- that cannot be inlined takes ten times as long.
CREATE FUNCTION "names_at_and_above"("host" text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  names text[] := ARRAY["host"];
  rest text := substr("host", strpos("host", '.') + 1);
BEGIN
  WHILE strpos(rest, '.') > 0 LOOP
    names := rest || names;
    rest := substr(rest, strpos(rest, '.') + 1);
  END LOOP;
  RETURN names;
END $$;

-- What is known of the past: the domains, the names that are held, and the log of events.
INSERT INTO "domain_claim" ("name", "account_id", "pair", "first_at")
SELECT CASE WHEN starts_with("name", '*.') THEN substr("name", 3) ELSE "name" END, "account_id", '', min("at")
FROM (
  SELECT "name", "account_id", "created_at" AS "at" FROM "domain"
  UNION ALL SELECT "name", "account_id", "until" - interval '7 days' FROM "domain_hold"
  UNION ALL SELECT "subject", "account_id", "created_at" FROM "event" WHERE "type" LIKE 'domain.%'
) known GROUP BY 1, 2;

INSERT INTO "domain_claim_above" ("above", "name", "account_id", "pair")
SELECT above, c."name", c."account_id", c."pair" FROM "domain_claim" c, unnest("names_at_and_above"(c."name")) AS above
WHERE above <> c."name";

-- One transaction at a time for the claims to a name. Those to names below it run beside each other. Every transaction
-- takes the shortest name first, so that two cannot wait for each other.
CREATE FUNCTION "lock_claims"("host" text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  names text[] := "names_at_and_above"("host");
BEGIN
  FOR at IN 1 .. cardinality(names) - 1 LOOP
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('domain ' || names[at], 0));
  END LOOP;
  PERFORM pg_advisory_xact_lock(hashtextextended('domain ' || "host", 0));
  RETURN true;
END $$;

-- Locks, and tells whether there are as many claims of others at, above and below the name as the caller has read. Rows
-- are never deleted, so the same number is the same rows. Not within the caller's own statement: that would not see
-- what another transaction committed while it waited for the lock.
-- Name by name, because PostgreSQL plans a condition on a list of unknown length anew each time.
CREATE FUNCTION "lock_claims_if_known"("host" text, "account" text, "known" integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  one text;
  there bigint;
BEGIN
  PERFORM "lock_claims"("host");
  there := (SELECT count(*) FROM "domain_claim_above" c WHERE c."above" = "host" AND c."account_id" <> "account");
  FOREACH one IN ARRAY "names_at_and_above"("host") LOOP
    there := there + (SELECT count(*) FROM "domain_claim" c WHERE c."name" = one AND c."account_id" <> "account");
  END LOOP;
  RETURN there = "known";
END $$;

-- Remembers a claim, however it was made, and has the nameservers look again at unproved claims of others to names above
-- and below: an unproved claim is served only while nobody else has claimed such a name. A wildcard is a part of its
-- host, which the account has claimed already.
CREATE FUNCTION "domain_claim_keep"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  claimed text := CASE WHEN NEW."nameservers"[1] COLLATE "C" < NEW."nameservers"[2]
    THEN NEW."nameservers"[1] || ' ' || NEW."nameservers"[2]
    ELSE COALESCE(NEW."nameservers"[2] || ' ' || NEW."nameservers"[1], '') END;
  names text[];
BEGIN
  IF starts_with(NEW."name", '*') THEN
    RETURN NULL;
  END IF;
  -- A program of the version before knows no pairs; what it claims is remembered without one.
  IF claimed = '' AND EXISTS (
    SELECT 1 FROM "domain_claim" c WHERE c."name" = NEW."name" AND c."account_id" = NEW."account_id")
  THEN
    RETURN NULL;
  END IF;
  INSERT INTO "domain_claim" ("name", "account_id", "pair") VALUES (NEW."name", NEW."account_id", claimed)
    ON CONFLICT DO NOTHING;
  names := "names_at_and_above"(NEW."name");
  FOR at IN 1 .. cardinality(names) - 1 LOOP
    INSERT INTO "domain_claim_above" ("above", "name", "account_id", "pair")
      VALUES (names[at], NEW."name", NEW."account_id", claimed) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('berth_zone', names[at]) FROM "domain" d
      WHERE d."name" = names[at] AND d."account_id" <> NEW."account_id" AND NOT d."verified";
  END LOOP;
  PERFORM pg_notify('berth_zone', c."name") FROM "domain_claim_above" c
    WHERE c."above" = NEW."name" AND c."account_id" <> NEW."account_id";
  RETURN NULL;
END $$;
CREATE TRIGGER "domain_claim_keep" AFTER INSERT ON "domain" FOR EACH ROW EXECUTE FUNCTION "domain_claim_keep"();
-- Not where the empty pair is filled in with the one that it stands for: that is no other claim, and many rows.
CREATE TRIGGER "domain_claim_keep_update" AFTER UPDATE OF "nameservers" ON "domain" FOR EACH ROW
  WHEN (OLD."nameservers" <> NEW."nameservers" AND OLD."nameservers" <> '{}') EXECUTE FUNCTION "domain_claim_keep"();

-- What the nameservers answer changes also when a claim ends or begins again, and with its pair.
CREATE TRIGGER "zone_notify_claim" AFTER UPDATE OF "next_check_at", "nameservers" ON "domain" FOR EACH ROW
  WHEN ((OLD."next_check_at" IS NULL) <> (NEW."next_check_at" IS NULL)
    OR (OLD."nameservers" <> NEW."nameservers" AND OLD."nameservers" <> '{}'))
  EXECUTE FUNCTION "zone_notify"();

-- An unproved claim above a name that somebody has proved is served; once nobody has, it is not.
CREATE FUNCTION "zone_notify_above"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', d."name") FROM "domain" d
    WHERE d."name" = ANY("names_at_and_above"(OLD."name")) AND d."account_id" <> OLD."account_id" AND NOT d."verified";
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_notify_above" AFTER UPDATE OF "verified" ON "domain" FOR EACH ROW
  WHEN (OLD."verified" <> NEW."verified") EXECUTE FUNCTION "zone_notify_above"();
CREATE TRIGGER "zone_notify_above_delete" AFTER DELETE ON "domain" FOR EACH ROW
  WHEN (OLD."verified") EXECUTE FUNCTION "zone_notify_above"();
