-- BIND takes no zone in which a name has more than 100 types of records, signatures among them. A name of ten thousand types
-- also takes a nameserver longer to read than a packet may.
CREATE OR REPLACE FUNCTION "dns_record_set"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone text;
  account text;
  most_records bigint;
  most_bytes bigint;
  suspect record;
  over record;
  most_types constant bigint := 40;
BEGIN
  FOR zone, account IN
    SELECT d."id", d."account_id" FROM "domain" d WHERE d."id" = ANY (ARRAY(SELECT DISTINCT "domain_id" FROM "fresh"))
    ORDER BY d."id" FOR NO KEY UPDATE
  LOOP
    -- The limits are looked up only if a name has more than one record.
    FOR suspect IN
      SELECT f."name", s.* FROM (SELECT DISTINCT "name" FROM "fresh" WHERE "domain_id" = zone) f
      CROSS JOIN LATERAL (
        SELECT count(*) AS "all", count(DISTINCT r."type") AS "types", sum(record_octets(r."type", r."value")) AS "bytes",
          count(*) FILTER (WHERE r."type" = 'CNAME') AS "cnames", count(*) FILTER (WHERE r."type" = 'ALIAS') AS "aliases",
          count(*) FILTER (WHERE r."type" IN ('A', 'AAAA')) AS "addresses"
        FROM "dns_record" r WHERE r."domain_id" = zone AND r."name" = f."name") s
      WHERE s."all" > 1 AND (s."cnames" > 0 OR s."aliases" > 1 OR (s."aliases" > 0 AND s."addresses" > 0)
        OR s."types" > most_types OR s."all" > (SELECT account_limit(account, 'recordsPerSet'))
        OR s."bytes" > (SELECT account_limit(account, 'bytesPerSet')))
    LOOP
      IF suspect."cnames" > 0 OR suspect."aliases" > 1 OR (suspect."aliases" > 0 AND suspect."addresses" > 0) THEN
        RAISE EXCEPTION 'dns_record_exclusive' USING ERRCODE = 'exclusion_violation', DETAIL = suspect."name";
      END IF;
      -- Only what adds a type: a name may have been given more of them before.
      SELECT f."type" INTO over FROM "fresh" f
        WHERE suspect."types" > most_types AND f."domain_id" = zone AND f."name" = suspect."name"
          AND NOT EXISTS (SELECT 1 FROM "dns_record" r WHERE r."domain_id" = zone AND r."name" = f."name"
            AND r."type" = f."type" AND r."id" NOT IN (SELECT "id" FROM "fresh"))
        LIMIT 1;
      IF FOUND THEN
        RAISE EXCEPTION 'typesPerName % % % %', suspect."types", most_types, over."type", suspect."name"
          USING ERRCODE = 'BQ002';
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
