-- The bytes of the records of each zone, within a quota of the account: every nameserver has all of them in memory, and
-- reads a zone in one piece. Nobody writes records until those that are there are counted.
LOCK TABLE "dns_record" IN SHARE ROW EXCLUSIVE MODE;

ALTER TABLE "domain" ADD COLUMN "record_bytes" BIGINT NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION count_records() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  zone RECORD;
  allowed BIGINT;
  used BIGINT;
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE domain d SET records = d.records - c.count, record_bytes = d.record_bytes - c.bytes
    FROM (SELECT domain_id, count(*), sum(octet_length(name) + octet_length(value)) AS bytes FROM changed
      GROUP BY domain_id) c WHERE d.id = c.domain_id;
    RETURN NULL;
  END IF;
  FOR zone IN
    UPDATE domain d SET records = d.records + c.count, record_bytes = d.record_bytes + c.bytes
    FROM (SELECT domain_id, count(*), sum(octet_length(name) + octet_length(value)) AS bytes FROM changed
      GROUP BY domain_id) c WHERE d.id = c.domain_id
    RETURNING d.account_id, d.records, c.count, d.record_bytes, c.bytes
  LOOP
    allowed := account_limit(zone.account_id, 'recordsPerZone');
    IF zone.records > allowed THEN
      PERFORM refuse_quota('recordsPerZone', zone.records - zone.count, allowed);
    END IF;
    allowed := account_limit(zone.account_id, 'recordBytes');
    -- A hundred zones that have less than a hundredth each are within the limit: most writes add nothing up.
    IF zone.record_bytes * 100 > allowed THEN
      used := (SELECT sum(d.record_bytes) FROM domain d WHERE d.account_id = zone.account_id);
      IF used > allowed THEN
        PERFORM refuse_quota('recordBytes', used - zone.bytes::bigint, allowed);
      END IF;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;

UPDATE "domain" d SET "record_bytes" = r."bytes"
FROM (SELECT "domain_id", sum(octet_length("name") + octet_length("value")) AS "bytes" FROM "dns_record"
  GROUP BY "domain_id") r WHERE r."domain_id" = d."id";
