-- What must hold for the records of a zone, whoever writes them.

-- The octets of a value in a message, or a bit more. Values are longer as text, except for the addresses in SVCB and HTTPS
-- records: `::,` are 16 octets. `octetsOf` says the same.
CREATE OR REPLACE FUNCTION record_octets(type text, value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT octet_length(value) + CASE WHEN type IN ('SVCB', 'HTTPS')
    THEN 16 * (length(value) - length(replace(value, ',', ''))) ELSE 0 END $$;

-- A CNAME stands alone at its name, and so does an ALIAS among addresses; sets and names have their limits. BIND takes no
-- zone in which a name has more than 100 types of records, signatures included, and a name of ten thousand types takes a
-- nameserver longer to read than a packet may. The zone's row is locked first: the queries after it then see what the other
-- transaction committed. LATERAL keeps every lookup on the index, whatever number of rows the cached plan was made for.
CREATE OR REPLACE FUNCTION dns_record_set() RETURNS trigger LANGUAGE plpgsql AS $$
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
    SELECT d.id, d.account_id FROM domain d WHERE d.id = ANY (ARRAY(SELECT DISTINCT domain_id FROM fresh))
    ORDER BY d.id FOR NO KEY UPDATE
  LOOP
    -- The limits are looked up only if a name has more than one record.
    FOR suspect IN
      SELECT f.name, s.* FROM (SELECT DISTINCT name FROM fresh WHERE domain_id = zone) f
      CROSS JOIN LATERAL (
        SELECT count(*) AS "all", count(DISTINCT r.type) AS types, sum(record_octets(r.type, r.value)) AS bytes,
          count(*) FILTER (WHERE r.type = 'CNAME') AS cnames, count(*) FILTER (WHERE r.type = 'ALIAS') AS aliases,
          count(*) FILTER (WHERE r.type IN ('A', 'AAAA')) AS addresses
        FROM dns_record r WHERE r.domain_id = zone AND r.name = f.name) s
      WHERE s."all" > 1 AND (s.cnames > 0 OR s.aliases > 1 OR (s.aliases > 0 AND s.addresses > 0)
        OR s.types > most_types OR s."all" > (SELECT account_limit(account, 'recordsPerSet'))
        OR s.bytes > (SELECT account_limit(account, 'bytesPerSet')))
    LOOP
      IF suspect.cnames > 0 OR suspect.aliases > 1 OR (suspect.aliases > 0 AND suspect.addresses > 0) THEN
        RAISE EXCEPTION 'dns_record_exclusive' USING ERRCODE = 'exclusion_violation', DETAIL = suspect.name;
      END IF;
      -- Only what adds a type: a name may have been given more of them before.
      SELECT f.type INTO over FROM fresh f
        WHERE suspect.types > most_types AND f.domain_id = zone AND f.name = suspect.name
          AND NOT EXISTS (SELECT 1 FROM dns_record r WHERE r.domain_id = zone AND r.name = f.name
            AND r.type = f.type AND r.id NOT IN (SELECT id FROM fresh))
        LIMIT 1;
      IF FOUND THEN
        RAISE EXCEPTION 'typesPerName % % % %', suspect.types, most_types, over.type, suspect.name
          USING ERRCODE = 'BQ002';
      END IF;
      most_records := account_limit(account, 'recordsPerSet');
      most_bytes := account_limit(account, 'bytesPerSet');
      SELECT r.type, count(*) AS records, sum(record_octets(r.type, r.value)) AS bytes INTO over
        FROM dns_record r
        WHERE r.domain_id = zone AND r.name = suspect.name
          AND r.type IN (SELECT type FROM fresh WHERE domain_id = zone AND name = suspect.name)
        GROUP BY r.type HAVING count(*) > most_records
          OR (count(*) > 1 AND sum(record_octets(r.type, r.value)) > most_bytes)
        LIMIT 1;
      IF over.records > most_records THEN
        RAISE EXCEPTION 'recordsPerSet % % % %', over.records, most_records, over.type, suspect.name
          USING ERRCODE = 'BQ002';
      ELSIF over.records IS NOT NULL THEN
        RAISE EXCEPTION 'bytesPerSet % % % %', over.bytes, most_bytes, over.type, suspect.name
          USING ERRCODE = 'BQ002';
      END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_record_set AFTER INSERT ON dns_record REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_set();

-- The same for a row that changes its name or type. No service does that: it deletes the record and inserts another one.
CREATE OR REPLACE FUNCTION dns_record_exclusive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM domain WHERE id = NEW.domain_id FOR NO KEY UPDATE;
  IF EXISTS (SELECT 1 FROM dns_record r WHERE r.domain_id = NEW.domain_id AND r.name = NEW.name AND r.id <> NEW.id
    AND ('CNAME' IN (r.type, NEW.type) OR (NEW.type = 'ALIAS' AND r.type IN ('ALIAS', 'A', 'AAAA'))
      OR (r.type = 'ALIAS' AND NEW.type IN ('A', 'AAAA')))) THEN
    RAISE EXCEPTION 'dns_record_exclusive' USING ERRCODE = 'exclusion_violation', DETAIL = NEW.name;
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER dns_record_exclusive BEFORE UPDATE OF type, name ON dns_record
  FOR EACH ROW EXECUTE FUNCTION dns_record_exclusive();

-- Stands in for a foreign key, since rows of a large zone outlive it (zone_purge), and checks once for each statement.
CREATE OR REPLACE FUNCTION dns_record_domain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM domain WHERE id = ANY (ARRAY(SELECT DISTINCT domain_id FROM fresh)) ORDER BY id FOR KEY SHARE;
  IF EXISTS (SELECT 1 FROM (SELECT DISTINCT domain_id FROM fresh) f
    WHERE NOT EXISTS (SELECT 1 FROM domain d WHERE d.id = f.domain_id)) THEN
    RAISE EXCEPTION 'dns_record_domain' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'dns_record_domain';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_record_domain AFTER INSERT ON dns_record REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_domain();

-- Queues the job of each zone with an ALIAS in which something changed that an ALIAS may lead through. A deleted record may
-- have stood before a wildcard, whatever its type. Not for a zone that is gone.
CREATE OR REPLACE FUNCTION queue_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO job (kind, key, payload)
  SELECT 'alias', c.domain_id, jsonb_build_object('domainId', c.domain_id)
  FROM (SELECT DISTINCT domain_id FROM changed WHERE TG_OP = 'DELETE' OR type IN ('ALIAS', 'CNAME', 'DNAME', 'NS')) c
  JOIN domain d ON d.id = c.domain_id
  WHERE EXISTS (SELECT 1 FROM dns_record r WHERE r.domain_id = c.domain_id AND r.type = 'ALIAS')
    OR EXISTS (SELECT 1 FROM alias_answer a WHERE a.domain_id = c.domain_id)
  ORDER BY 2
  ON CONFLICT (kind, key) WHERE failed_at IS NULL
  DO UPDATE SET run_at = CASE WHEN job.locked_by IS NOT NULL AND job.run_at = job.taken_run_at
    THEN excluded.run_at ELSE LEAST(job.run_at, excluded.run_at) END;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_record_alias AFTER INSERT ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION queue_alias();
CREATE OR REPLACE TRIGGER dns_record_alias_update AFTER UPDATE ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION queue_alias();
CREATE OR REPLACE TRIGGER dns_record_alias_delete AFTER DELETE ON dns_record REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION queue_alias();
