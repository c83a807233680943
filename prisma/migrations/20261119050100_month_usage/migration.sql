-- What an account does in a calendar month (UTC), within a quota: what is kept for ever must not grow as fast as requests come.
CREATE TABLE "month_usage" (
    "account_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "used" BIGINT NOT NULL,

    CONSTRAINT "month_usage_pkey" PRIMARY KEY ("account_id", "name", "month")
);
ALTER TABLE "month_usage" ADD CONSTRAINT "month_usage_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- The row stays locked until the transaction ends, so that those under way count one after the other.
CREATE FUNCTION count_month_usage(account TEXT, quota TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  counted BIGINT;
  allowed BIGINT := account_limit(account, quota);
BEGIN
  INSERT INTO month_usage AS m (account_id, name, month, used)
    VALUES (account, quota, date_trunc('month', now() AT TIME ZONE 'UTC')::date, 1)
    ON CONFLICT (account_id, name, month) DO UPDATE SET used = m.used + 1 RETURNING m.used INTO counted;
  IF counted > allowed THEN PERFORM refuse_quota(quota, counted - 1, allowed); END IF;
END
$$;

-- Names that are claimed for the first time. A claim is remembered in a row for each name above it, and takes a pair of
-- nameservers, and the answers to unproved records, from everybody else.
CREATE OR REPLACE FUNCTION "domain_claim_keep"() RETURNS trigger LANGUAGE plpgsql AS $$
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
  IF FOUND AND TG_OP = 'INSERT' THEN
    PERFORM count_month_usage(NEW."account_id", 'claimsPerMonth');
  END IF;
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

-- Messages to support: tickets are kept for ever.
CREATE FUNCTION "ticket_message_count"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_month_usage((SELECT t."account_id" FROM "ticket" t WHERE t."id" = NEW."ticket_id"), 'messagesPerMonth');
  RETURN NULL;
END $$;
CREATE TRIGGER "ticket_message_count" AFTER INSERT ON "ticket_message" FOR EACH ROW
  WHEN (NEW."author" = 'customer') EXECUTE FUNCTION "ticket_message_count"();
