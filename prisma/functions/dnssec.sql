-- What a signed zone serves changes with its keys, its signatures and the zones below it. The nameservers rely on all of it:
-- a serial that didn't grow would leave old signatures in caches and secondaries.

-- Zones that wait for their first DS are signalled in the platform's own signed zone (RFC 9615).
CREATE OR REPLACE FUNCTION raise_signal_serial() RETURNS void LANGUAGE sql AS $$
  UPDATE platform_zone SET serial = serial + 1 WHERE EXISTS (SELECT 1 FROM zone_key WHERE domain_id IS NULL)
$$;

-- For the nameservers, which serve the signals of a zone as long as it waits.
CREATE OR REPLACE FUNCTION signal_serial() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM raise_signal_serial();
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER signal_serial AFTER UPDATE OF dnssec_state, verified, nameservers ON domain FOR EACH ROW
  WHEN ('awaiting_ds' IN (OLD.dnssec_state, NEW.dnssec_state)
    AND (OLD.dnssec_state, OLD.verified, OLD.nameservers) IS DISTINCT FROM
      (NEW.dnssec_state, NEW.verified, NEW.nameservers))
  EXECUTE FUNCTION signal_serial();
CREATE OR REPLACE TRIGGER signal_serial_delete AFTER DELETE ON domain FOR EACH ROW
  WHEN (OLD.dnssec_state = 'awaiting_ds') EXECUTE FUNCTION signal_serial();

-- Has the signed zones above a zone read again what they have of it. The nearest first, as whoever changes one of them
-- changes those above it afterwards: no two transactions wait for each other in another order.
CREATE OR REPLACE FUNCTION raise_cuts_of(below text) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  zone record;
BEGIN
  FOR zone IN SELECT d.id, left(below, -length(d.name) - 1) AS cut FROM domain d
    WHERE d.name = ANY(names_at_and_above(below)) AND d.name <> below
      AND EXISTS (SELECT 1 FROM zone_key k WHERE k.domain_id = d.id) ORDER BY length(d.name) DESC, d.id
  LOOP
    UPDATE domain SET serial = serial + 1 WHERE id = zone.id;
    PERFORM note_zone_change(zone.id, ARRAY[zone.cut]);
  END LOOP;
END $$;

-- A signed zone delegates the zones below it that are served here too; otherwise its proofs would deny what they answer. What
-- it serves changes when such a zone comes, goes, or has other nameservers. Names are found by their index, however small
-- the table was when the plan was made.
CREATE OR REPLACE FUNCTION domain_cut() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  below text := CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END;
BEGIN
  IF NOT starts_with(below, '*') AND EXISTS (SELECT 1 FROM zone_key) THEN
    PERFORM raise_cuts_of(below);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER domain_cut AFTER INSERT OR DELETE ON domain FOR EACH ROW EXECUTE FUNCTION domain_cut();
CREATE OR REPLACE TRIGGER domain_cut_update AFTER UPDATE OF verified, nameservers, next_check_at, dnssec_state ON domain
  FOR EACH ROW
  WHEN (OLD.verified <> NEW.verified OR OLD.nameservers <> NEW.nameservers
    OR (OLD.next_check_at IS NULL) <> (NEW.next_check_at IS NULL)
    OR (OLD.dnssec_state = 'leaving') <> (NEW.dnssec_state = 'leaving'))
  EXECUTE FUNCTION domain_cut();

-- The keys that are announced also change the DS records in the zone above.
CREATE OR REPLACE FUNCTION zone_key_serial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone text := CASE WHEN TG_OP = 'DELETE' THEN OLD.domain_id ELSE NEW.domain_id END;
  changed record;
BEGIN
  IF zone IS NULL THEN
    UPDATE platform_zone SET serial = serial + 1;
    RETURN NULL;
  END IF;
  UPDATE domain SET serial = serial + 1 WHERE id = zone RETURNING name, dnssec_state INTO changed;
  IF changed.dnssec_state = 'awaiting_ds' THEN
    PERFORM raise_signal_serial();
  END IF;
  -- The name is missing when the domain is being deleted: domain_cut does the same then.
  IF changed.name IS NOT NULL AND COALESCE(OLD.announced, false) <> COALESCE(NEW.announced, false) THEN
    PERFORM raise_cuts_of(changed.name);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_key_serial AFTER INSERT OR DELETE ON zone_key
  FOR EACH ROW EXECUTE FUNCTION zone_key_serial();
CREATE OR REPLACE TRIGGER zone_key_serial_update AFTER UPDATE OF published, signing, announced ON zone_key FOR EACH ROW
  WHEN ((OLD.published, OLD.signing, OLD.announced) IS DISTINCT FROM (NEW.published, NEW.signing, NEW.announced))
  EXECUTE FUNCTION zone_key_serial();

-- The first key gives a zone these delegations, and the last one takes them along: a large zone is read whole then.
CREATE OR REPLACE FUNCTION zone_key_cuts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_zone_change(CASE WHEN TG_OP = 'DELETE' THEN OLD.domain_id ELSE NEW.domain_id END, '{}');
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_key_cuts AFTER INSERT OR DELETE ON zone_key FOR EACH ROW EXECUTE FUNCTION zone_key_cuts();

-- What a zone signs changes with these settings, so its serial grows for the nameservers.
CREATE OR REPLACE FUNCTION zone_signing_serial() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE domain SET serial = serial + 1 WHERE id = NEW.id;
  IF NEW.dnssec_state = 'awaiting_ds' THEN
    PERFORM raise_signal_serial();
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_signing_serial AFTER UPDATE OF dnssec_denial, cds_delete, foreign_keys ON domain FOR EACH ROW
  WHEN ((OLD.dnssec_denial, OLD.cds_delete, OLD.foreign_keys) IS DISTINCT FROM
    (NEW.dnssec_denial, NEW.cds_delete, NEW.foreign_keys))
  EXECUTE FUNCTION zone_signing_serial();

-- The DS record of a key of ours (algorithm 13, SHA-256) as text. The key's flags are 257 and its protocol is 3.
CREATE OR REPLACE FUNCTION zone_ds(zone_name text, tag integer, public_key bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT concat_ws(' ', tag, 13, 2, upper(encode(sha256(
    string_agg(set_byte('\x00'::bytea, 0, octet_length(l.label)) || convert_to(l.label, 'UTF8'), '' ORDER BY l.place)
      || '\x000101030d'::bytea || public_key), 'hex')))
  FROM string_to_table(zone_name, '.') WITH ORDINALITY l(label, place)
$$;

-- The lines of a signed zone for its delegations to the zones below it that are served here too, unless it has NS records for
-- them itself: all of them, or those at some names. DS records belong to those that are verified and signed: of the same
-- account, or where the zone's own NS records all name the nameservers here. A DS record of the zone itself stays alone. A
-- zone that is leaving has none, so that caches forget it before the signatures go. Their TTL is short, because a deleted
-- zone takes its signatures along at once. A function for the same reason as served_zones().
CREATE OR REPLACE FUNCTION zone_cuts(zone_id text, zone_name text, hosts text[], only_at text[])
RETURNS text LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
  owner text := (SELECT account_id FROM domain WHERE id = zone_id);
BEGIN
  RETURN (
    SELECT string_agg(DISTINCT l.line, E'\n')
    FROM (
      SELECT b.name, left(b.name, -length(zone_name) - 1) AS cut FROM domain_claim_above b WHERE b.above = zone_name) c
    JOIN domain d ON d.name = c.name AND d.name NOT LIKE '*%' AND (d.verified OR (
      d.unproved_since > now() - interval '30 days'
      AND NOT EXISTS (SELECT 1 FROM domain_claim o
        WHERE o.name = ANY(names_at_and_above(d.name)) AND o.account_id <> d.account_id)
      AND NOT EXISTS (SELECT 1 FROM domain_claim_above o WHERE o.above = d.name AND o.account_id <> d.account_id
        AND NOT EXISTS (SELECT 1 FROM domain v WHERE v.name = o.name AND v.verified))))
    CROSS JOIN LATERAL (
      SELECT CASE WHEN d.nameservers = '{}' THEN hosts ELSE d.nameservers END AS pair,
        array_agg(lower(r.value)) FILTER (WHERE r.type = 'NS') AS ns, COALESCE(bool_or(r.type = 'DS'), false) AS has_ds
      FROM dns_record r WHERE r.domain_id = zone_id AND r.name = c.cut AND r.type IN ('NS', 'DS')) own
    CROSS JOIN LATERAL (
      SELECT concat_ws(' ', 'NS', 3600, c.cut, h.host) FROM unnest(own.pair) h(host) WHERE own.ns IS NULL
      UNION ALL
      SELECT concat_ws(' ', 'DS', 300, c.cut, zone_ds(d.name, k.tag, k.public_key)) FROM zone_key k
      WHERE k.domain_id = d.id AND k.announced AND d.verified AND d.dnssec_state <> 'leaving' AND NOT own.has_ds
        AND CASE WHEN own.ns IS NULL THEN d.account_id = owner AND own.pair <> '{}'
          ELSE own.ns <@ (own.pair || hosts) END) l(line)
    WHERE only_at IS NULL OR c.cut = ANY(only_at));
END $$;

-- The signature of each set that is in use at a version of its zone; `place` counts the requested ones from 1. By the index
-- whatever the statistics say: a plan made for a small table would read through a large one for each set, and the table
-- grows by thousands of rows within seconds when zones are signed for the first time.
CREATE OR REPLACE FUNCTION zone_signatures(keys text[], fingerprints bytea[], serials integer[])
RETURNS TABLE (place integer, octets bytea) LANGUAGE plpgsql STABLE ROWS 100 SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY
  SELECT w.place::integer, found.octets
  FROM unnest(keys, fingerprints, serials) WITH ORDINALITY AS w(key_id, fingerprint, serial, place)
  CROSS JOIN LATERAL (
    SELECT s.octets FROM zone_signature s
    WHERE s.key_id = w.key_id AND s.fingerprint = w.fingerprint AND s.since <= w.serial
    ORDER BY s.since DESC LIMIT 1) found;
END $$;

-- A nameserver that has the signatures of a version of a zone may take them over into the next ones, unless some were renewed
-- or removed meanwhile. A set's first signature replaces nothing: its `since` is 0.
CREATE OR REPLACE FUNCTION signature_renewed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE domain d SET signatures_since = NEW.since FROM zone_key k
  WHERE k.id = NEW.key_id AND d.id = k.domain_id AND d.signatures_since < NEW.since;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER signature_renewed AFTER INSERT ON zone_signature FOR EACH ROW
  WHEN (NEW.since > 0) EXECUTE FUNCTION signature_renewed();

-- What is removed is not in use in the current version. With its key, all signatures of a zone are others.
CREATE OR REPLACE FUNCTION signatures_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE domain d SET signatures_since = d.serial
  FROM (SELECT DISTINCT key_id FROM gone) g JOIN zone_key k ON k.id = g.key_id
  WHERE d.id = k.domain_id AND d.signatures_since < d.serial;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER signatures_removed AFTER DELETE ON zone_signature REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION signatures_removed();

-- Stands in for a foreign key, as dns_record_domain does.
CREATE OR REPLACE FUNCTION zone_signature_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM zone_key WHERE id = ANY (ARRAY(SELECT DISTINCT key_id FROM fresh)) ORDER BY id FOR KEY SHARE;
  IF EXISTS (SELECT 1 FROM (SELECT DISTINCT key_id FROM fresh) f
    WHERE NOT EXISTS (SELECT 1 FROM zone_key k WHERE k.id = f.key_id)) THEN
    RAISE EXCEPTION 'zone_signature_key' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'zone_signature_key';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER zone_signature_key AFTER INSERT ON zone_signature REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION zone_signature_key();
