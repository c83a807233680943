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
CREATE FUNCTION count_month_usage(account TEXT, quota TEXT, delta BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
  counted BIGINT;
  allowed BIGINT := account_limit(account, quota);
BEGIN
  INSERT INTO month_usage AS m (account_id, name, month, used)
    VALUES (account, quota, date_trunc('month', now() AT TIME ZONE 'UTC')::date, delta)
    ON CONFLICT (account_id, name, month) DO UPDATE SET used = m.used + delta RETURNING m.used INTO counted;
  IF counted > allowed THEN PERFORM refuse_quota(quota, counted - delta, allowed); END IF;
END
$$;

-- Names that are claimed for the first time. A claim is remembered in a row for each name above it, and takes a pair of
-- nameservers, and the answers to unproved records, from everybody else. The triggers of the rows have run by then.
CREATE FUNCTION "domain_count_claims"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  claimed RECORD;
BEGIN
  FOR claimed IN
    SELECT f."account_id", count(DISTINCT f."name") AS "count" FROM "fresh" f JOIN "domain_claim" c
      ON c."name" = f."name" AND c."account_id" = f."account_id" AND c."first_at" = now()::timestamptz(3)
    GROUP BY f."account_id"
  LOOP
    PERFORM count_month_usage(claimed."account_id", 'claimsPerMonth', claimed."count");
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER "domain_count_claims" AFTER INSERT ON "domain" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "domain_count_claims"();

-- Messages to support: tickets are kept for ever.
CREATE FUNCTION "ticket_message_count"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  said RECORD;
BEGIN
  FOR said IN
    SELECT t."account_id", count(*) AS "count" FROM "fresh" f JOIN "ticket" t ON t."id" = f."ticket_id"
    WHERE f."author" = 'customer' GROUP BY t."account_id"
  LOOP
    PERFORM count_month_usage(said."account_id", 'messagesPerMonth', said."count");
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER "ticket_message_count" AFTER INSERT ON "ticket_message" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "ticket_message_count"();
