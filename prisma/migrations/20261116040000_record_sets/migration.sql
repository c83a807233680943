-- Rules of record sets by statement instead of by row: an import writes thousands of rows at once.

-- A CNAME stands alone at its name, and so does an ALIAS among addresses; a set has its limits. Checked here and not only
-- by the service, because two requests may pass its check at the same time. The zone's row is locked first: the queries
-- after it then see what the other transaction committed. LATERAL keeps every lookup on the index, whatever number of
-- rows the cached plan was made for.
CREATE FUNCTION "dns_record_set"() RETURNS trigger LANGUAGE plpgsql AS $$
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
        SELECT count(*) AS "all", sum(octet_length(r."value")) AS "bytes",
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
      SELECT r."type", count(*) AS "records", sum(octet_length(r."value")) AS "bytes" INTO over FROM "dns_record" r
        WHERE r."domain_id" = zone AND r."name" = suspect."name"
          AND r."type" IN (SELECT "type" FROM "fresh" WHERE "domain_id" = zone AND "name" = suspect."name")
        GROUP BY r."type" HAVING count(*) > most_records OR (count(*) > 1 AND sum(octet_length(r."value")) > most_bytes)
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

CREATE TRIGGER "dns_record_set" AFTER INSERT ON "dns_record" REFERENCING NEW TABLE AS "fresh"
  FOR EACH STATEMENT EXECUTE FUNCTION "dns_record_set"();

-- Inserts are checked by the statement now; a row that changes its name or type still by itself.
DROP TRIGGER "dns_record_exclusive" ON "dns_record";
CREATE TRIGGER "dns_record_exclusive" BEFORE UPDATE OF "type", "name" ON "dns_record"
  FOR EACH ROW EXECUTE FUNCTION "dns_record_exclusive"();
