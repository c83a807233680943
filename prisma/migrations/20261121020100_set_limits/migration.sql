-- A set of records has to fit into one message of 64 KiB, and BIND takes no more than 100 records of a set, whatever the
-- quotas of an account are: one that is larger stops a zone at its secondaries.
CREATE OR REPLACE FUNCTION account_limit(account TEXT, quota TEXT) RETURNS BIGINT LANGUAGE sql STABLE AS $$
  SELECT LEAST(COALESCE(
    (SELECT (a.limits ->> quota)::bigint FROM account a WHERE a.id = account),
    (SELECT q.max FROM quota_default q WHERE q.name = quota)),
    CASE quota WHEN 'recordsPerSet' THEN 100 WHEN 'bytesPerSet' THEN 60000 END)
$$;

-- At least what a value takes in a message, without what every record does. Values are longer as text than in a message,
-- but for the addresses in SVCB and HTTPS records: `::,` are 16 octets.
CREATE FUNCTION "record_octets"("type" TEXT, "value" TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT octet_length("value") + CASE WHEN "type" IN ('SVCB', 'HTTPS')
    THEN 16 * (length("value") - length(replace("value", ',', ''))) ELSE 0 END
$$;

CREATE OR REPLACE FUNCTION "dns_record_set"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone text;
  account text;
  most_records bigint;
  most_bytes bigint;
  suspect record;
  over record;
BEGIN
  FOR zone, account IN
    SELECT d."id", d."account_id" FROM "domain" d WHERE d."id" = ANY (ARRAY(SELECT DISTINCT "domain_id" FROM "fresh"))
    ORDER BY d."id" FOR NO KEY UPDATE
  LOOP
    -- The limits are looked up only if a name has more than one record.
    FOR suspect IN
      SELECT f."name", s.* FROM (SELECT DISTINCT "name" FROM "fresh" WHERE "domain_id" = zone) f
      CROSS JOIN LATERAL (
        SELECT count(*) AS "all", sum(record_octets(r."type", r."value")) AS "bytes",
          count(*) FILTER (WHERE r."type" = 'CNAME') AS "cnames", count(*) FILTER (WHERE r."type" = 'ALIAS') AS "aliases",
          count(*) FILTER (WHERE r."type" IN ('A', 'AAAA')) AS "addresses"
        FROM "dns_record" r WHERE r."domain_id" = zone AND r."name" = f."name") s
      WHERE s."all" > 1 AND (s."cnames" > 0 OR s."aliases" > 1 OR (s."aliases" > 0 AND s."addresses" > 0)
        OR s."all" > (SELECT account_limit(account, 'recordsPerSet'))
        OR s."bytes" > (SELECT account_limit(account, 'bytesPerSet')))
    LOOP
      IF suspect."cnames" > 0 OR suspect."aliases" > 1 OR (suspect."aliases" > 0 AND suspect."addresses" > 0) THEN
        RAISE EXCEPTION 'dns_record_exclusive' USING ERRCODE = 'exclusion_violation', DETAIL = suspect."name";
      END IF;
      most_records := account_limit(account, 'recordsPerSet');
      most_bytes := account_limit(account, 'bytesPerSet');
      SELECT r."type", count(*) AS "records", sum(record_octets(r."type", r."value")) AS "bytes" INTO over
        FROM "dns_record" r
        WHERE r."domain_id" = zone AND r."name" = suspect."name"
          AND r."type" IN (SELECT "type" FROM "fresh" WHERE "domain_id" = zone AND "name" = suspect."name")
        GROUP BY r."type" HAVING count(*) > most_records
          OR (count(*) > 1 AND sum(record_octets(r."type", r."value")) > most_bytes)
        LIMIT 1;
      IF over."records" > most_records THEN
        RAISE EXCEPTION 'recordsPerSet % % % %', over."records", most_records, over."type", suspect."name"
          USING ERRCODE = 'BQ002';
      ELSIF over."records" IS NOT NULL THEN
        RAISE EXCEPTION 'bytesPerSet % % % %', over."bytes", most_bytes, over."type", suspect."name"
          USING ERRCODE = 'BQ002';
      END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;
