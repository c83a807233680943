-- What nameservers hear of zones, and what they read of them.

-- What the nameservers answer changes with the serial, with who owns the name, and when a claim ends, begins again or gets
-- another pair.
CREATE OR REPLACE FUNCTION zone_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_notify AFTER INSERT OR DELETE OR UPDATE OF serial, verified ON domain
  FOR EACH ROW EXECUTE FUNCTION zone_notify();
CREATE OR REPLACE TRIGGER zone_notify_claim AFTER UPDATE OF next_check_at, nameservers ON domain FOR EACH ROW
  WHEN ((OLD.next_check_at IS NULL) <> (NEW.next_check_at IS NULL)
    OR (OLD.nameservers <> NEW.nameservers AND OLD.nameservers <> '{}'))
  EXECUTE FUNCTION zone_notify();

-- An unproved claim above a name that somebody has proved is served; once nobody has, it isn't.
CREATE OR REPLACE FUNCTION zone_notify_above() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', d.name) FROM domain d
    WHERE d.name = ANY(names_at_and_above(OLD.name)) AND d.account_id <> OLD.account_id AND NOT d.verified;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_notify_above AFTER UPDATE OF verified ON domain FOR EACH ROW
  WHEN (OLD.verified <> NEW.verified) EXECUTE FUNCTION zone_notify_above();
CREATE OR REPLACE TRIGGER zone_notify_above_delete AFTER DELETE ON domain FOR EACH ROW
  WHEN (OLD.verified) EXECUTE FUNCTION zone_notify_above();

-- Every zone of an account whose zones are refused from now on, or answered again.
CREATE OR REPLACE FUNCTION account_zones_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('berth_zone', name) FROM domain WHERE account_id = NEW.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER account_zones_notify AFTER UPDATE OF refuses_dns ON account
  FOR EACH ROW WHEN (OLD.refuses_dns IS DISTINCT FROM NEW.refuses_dns) EXECUTE FUNCTION account_zones_notify();

-- The served claims to these names, without their records. As a function it is planned once for each connection instead of
-- with every change of any zone, using indexes whatever the statistics say. zone_cuts() and the statements of DNS
-- have the same condition.
CREATE OR REPLACE FUNCTION served_zones(names text[])
RETURNS TABLE (
  name text, id text, serial integer, verified boolean, refused boolean, account_id text,
  nameservers text[], record_bytes bigint, changes_since integer, signatures_since integer, signing json)
LANGUAGE plpgsql STABLE ROWS 10 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified, a.refuses_dns, d.account_id,
    COALESCE(d.nameservers, '{}'), d.record_bytes, d.changes_since, d.signatures_since, (
      SELECT CASE WHEN bool_or(k.signing) THEN json_build_object('denial', d.dnssec_denial, 'cdsDelete', d.cds_delete,
        'foreignKeys', d.foreign_keys, 'keys', json_agg(json_build_object('id', k.id, 'tag', k.tag,
          'publicKey', translate(encode(k.public_key, 'base64'), E'\n', ''),
          'published', k.published, 'signing', k.signing, 'announced', k.announced) ORDER BY k.id)) END
      FROM zone_key k WHERE k.domain_id = d.id)
  FROM domain d JOIN account a ON a.id = d.account_id
  WHERE d.name = ANY(names) AND d.name NOT LIKE '*%' AND (d.verified OR (
    d.unproved_since > now() - interval '30 days'
    AND NOT EXISTS (SELECT 1 FROM domain_claim o
      WHERE o.name = ANY(names_at_and_above(d.name)) AND o.account_id <> d.account_id)
    AND NOT EXISTS (SELECT 1 FROM domain_claim_above o WHERE o.above = d.name AND o.account_id <> d.account_id
      AND NOT EXISTS (SELECT 1 FROM domain v WHERE v.name = o.name AND v.verified))))
  ORDER BY d.name, d.verified DESC;
END $$;

-- Notes which names of a zone changed, by serial: a nameserver reads these again instead of the whole zone. No names stand for
-- all of them. Zones below 1 KiB are always read whole. Called by whoever changes what these names are served as, in the
-- transaction that raises the serial, before or after that. The lock makes the order of serials the order of commits: what a
-- reader at serial n hasn't seen is noted at n or later.
CREATE OR REPLACE FUNCTION note_zone_change(zone text, changed text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  written integer;
  since integer;
  bytes bigint;
BEGIN
  SELECT d.serial, d.changes_since, d.record_bytes INTO written, since, bytes FROM domain d
    WHERE d.id = zone FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF bytes < 1024 THEN
    IF since IS NOT NULL THEN
      UPDATE domain SET changes_since = NULL WHERE id = zone;
      DELETE FROM zone_change WHERE domain_id = zone;
    END IF;
    RETURN;
  END IF;
  INSERT INTO zone_change AS z (domain_id, serial, names) VALUES (zone, written, changed)
    ON CONFLICT (domain_id, serial) DO UPDATE SET names = CASE
      WHEN z.names = '{}' OR EXCLUDED.names = '{}' OR cardinality(z.names) + cardinality(EXCLUDED.names) > 1000
        THEN '{}' ELSE z.names || EXCLUDED.names END;
  -- What the same transaction changed before may not be noted, so this serial is not complete yet.
  IF since IS NULL THEN
    UPDATE domain SET changes_since = written + 1 WHERE id = zone;
  ELSIF written - since > 2000 THEN
    UPDATE domain SET changes_since = written - 1000 WHERE id = zone;
    DELETE FROM zone_change WHERE domain_id = zone AND serial < written - 1000;
  END IF;
END $$;

-- Notes the names of records for the nameservers; more than 1,000 in one statement stand for the whole zone.
CREATE OR REPLACE FUNCTION dns_record_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    PERFORM note_zone_change(c.domain_id, c.names) FROM (
      SELECT b.domain_id, CASE WHEN count(*) > 1000 THEN '{}' ELSE array_agg(DISTINCT b.name) END AS names
      FROM (SELECT domain_id, name FROM changed UNION ALL SELECT domain_id, name FROM was) b
      GROUP BY b.domain_id ORDER BY b.domain_id) c;
  ELSE
    PERFORM note_zone_change(c.domain_id, c.names) FROM (
      SELECT b.domain_id, CASE WHEN count(*) > 1000 THEN '{}' ELSE array_agg(DISTINCT b.name) END AS names
      FROM changed b GROUP BY b.domain_id ORDER BY b.domain_id) c;
  END IF;
  RETURN NULL;
END $$;

-- Named to run after the triggers that count, which set the size of the zone.
CREATE OR REPLACE TRIGGER dns_record_zone AFTER INSERT ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_noted();
CREATE OR REPLACE TRIGGER dns_record_zone_delete AFTER DELETE ON dns_record REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_noted();
CREATE OR REPLACE TRIGGER dns_record_zone_update AFTER UPDATE ON dns_record REFERENCING OLD TABLE AS was NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_noted();

-- A zone that follows a primary has the primary's records, so nobody else writes them. Whoever applies one of its versions
-- says so in its transaction. The records of a deleted domain go with it. The API turns SQLSTATE BQ003 into 409.
CREATE OR REPLACE FUNCTION dns_record_followed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM zone_primary) AND current_setting('berth.follows', true) IS DISTINCT FROM 'on' AND EXISTS (
    SELECT 1 FROM changed c JOIN zone_primary p ON p.domain_id = c.domain_id JOIN domain d ON d.id = c.domain_id)
  THEN
    RAISE EXCEPTION 'zone_follows_primary' USING ERRCODE = 'BQ003';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER dns_record_followed AFTER INSERT ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_followed();
CREATE OR REPLACE TRIGGER dns_record_followed_delete AFTER DELETE ON dns_record REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_followed();
CREATE OR REPLACE TRIGGER dns_record_followed_update AFTER UPDATE ON dns_record REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION dns_record_followed();

-- Deletes at most this many rows of a domain or a key that is gone, and returns how many.
CREATE OR REPLACE FUNCTION purge_zone(owner text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  records integer;
  signatures integer;
BEGIN
  IF EXISTS (SELECT 1 FROM domain WHERE id = owner) OR EXISTS (SELECT 1 FROM zone_key WHERE id = owner) THEN
    RETURN 0;
  END IF;
  DELETE FROM dns_record WHERE id = ANY (ARRAY(
    SELECT r.id FROM dns_record r WHERE r.domain_id = owner LIMIT most));
  GET DIAGNOSTICS records = ROW_COUNT;
  DELETE FROM zone_signature WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM zone_signature s WHERE s.key_id = owner LIMIT most - records));
  GET DIAGNOSTICS signatures = ROW_COUNT;
  RETURN records + signatures;
END $$;

-- A deleted zone leaves its records, and a deleted key its signatures, to a job that deletes them in batches: with ON DELETE
-- CASCADE one transaction deleted 50,000 records in 1.8 s, and everybody who changed the account waited for it. Most zones
-- are small: they take their records along and need no job.
CREATE OR REPLACE FUNCTION zone_purge() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  most constant integer := 1000;
BEGIN
  IF purge_zone(OLD.id, most) = most THEN
    INSERT INTO job (kind, key, payload) VALUES ('purge', OLD.id, jsonb_build_object('ownerId', OLD.id))
      ON CONFLICT (kind, key) WHERE failed_at IS NULL DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_purge AFTER DELETE ON domain FOR EACH ROW EXECUTE FUNCTION zone_purge();
CREATE OR REPLACE TRIGGER zone_purge AFTER DELETE ON zone_key FOR EACH ROW EXECUTE FUNCTION zone_purge();
