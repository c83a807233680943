-- The zone above, where it is on the nameservers here too: it gets the DS record from us.
ALTER TABLE "zone_signing" ADD COLUMN "hosted_parent" TEXT;

-- The DS record of a key of ours (algorithm 13, SHA-256) as text. The flags of the key are 257 and its protocol is 3.
CREATE FUNCTION "zone_ds"("zone_name" text, "tag" integer, "public_key" bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT concat_ws(' ', "tag", 13, 2, upper(encode(sha256(
    string_agg(set_byte('\x00'::bytea, 0, octet_length(l.label)) || convert_to(l.label, 'UTF8'), '' ORDER BY l.place)
      || '\x000101030d'::bytea || "public_key"), 'hex')))
  FROM string_to_table("zone_name", '.') WITH ORDINALITY l(label, place)
$$;

-- The lines of a signed zone for its delegations to the zones below it that are served here too, as before, and now also
-- with the DS records of those that are verified and signed: of the same account, or where the zone's own NS records all
-- name the nameservers here. A DS record that the zone has itself stays alone. One that is leaving has none, so that caches
-- forget it before the signatures go. Their TTL is short, because a deleted zone takes its signatures along at once.
CREATE OR REPLACE FUNCTION "zone_cuts"("zone_id" text, "zone_name" text, "hosts" text[], "only_at" text[])
RETURNS text LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
  "owner" text := (SELECT account_id FROM domain WHERE id = "zone_id");
BEGIN
  RETURN (
    SELECT string_agg(DISTINCT l.line, E'\n')
    FROM (
      SELECT b.name, left(b.name, -length("zone_name") - 1) AS cut FROM domain_claim_above b WHERE b.above = "zone_name") c
    JOIN domain d ON d.name = c.name AND d.name NOT LIKE '*%' AND (d.verified OR (
      d.unproved_since > now() - interval '30 days'
      AND NOT EXISTS (SELECT 1 FROM domain_claim o
        WHERE o.name = ANY(names_at_and_above(d.name)) AND o.account_id <> d.account_id)
      AND NOT EXISTS (SELECT 1 FROM domain_claim_above o WHERE o.above = d.name AND o.account_id <> d.account_id
        AND NOT EXISTS (SELECT 1 FROM domain v WHERE v.name = o.name AND v.verified))))
    CROSS JOIN LATERAL (
      SELECT CASE WHEN d.nameservers = '{}' THEN "hosts" ELSE d.nameservers END AS pair,
        array_agg(lower(r.value)) FILTER (WHERE r.type = 'NS') AS ns, COALESCE(bool_or(r.type = 'DS'), false) AS has_ds
      FROM dns_record r WHERE r.domain_id = "zone_id" AND r.name = c.cut AND r.type IN ('NS', 'DS')) own
    CROSS JOIN LATERAL (
      SELECT concat_ws(' ', 'NS', 3600, c.cut, h.host) FROM unnest(own.pair) h(host) WHERE own.ns IS NULL
      UNION ALL
      SELECT concat_ws(' ', 'DS', 300, c.cut, "zone_ds"(d.name, k.tag, k.public_key)) FROM zone_key k
      WHERE k.domain_id = d.id AND k.announced AND d.verified AND d.dnssec_state <> 'leaving' AND NOT own.has_ds
        AND CASE WHEN own.ns IS NULL THEN d.account_id = "owner" AND own.pair <> '{}'
          ELSE own.ns <@ (own.pair || "hosts") END) l(line)
    WHERE "only_at" IS NULL OR c.cut = ANY("only_at"));
END $$;

-- Has the signed zones above a zone read again what they have of it. The nearest first, as whoever changes one of them
-- changes those above it after it: two transactions wait for each other in no other order.
CREATE FUNCTION "raise_cuts_of"("below" text) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  zone RECORD;
BEGIN
  FOR zone IN SELECT d."id", left("below", -length(d."name") - 1) AS cut FROM "domain" d
    WHERE d."name" = ANY("names_at_and_above"("below")) AND d."name" <> "below"
      AND EXISTS (SELECT 1 FROM "zone_key" k WHERE k."domain_id" = d."id") ORDER BY length(d."name") DESC, d."id"
  LOOP
    UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = zone."id";
    PERFORM "note_zone_change"(zone."id", ARRAY[zone.cut]);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION "domain_cut"() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  below TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD."name" ELSE NEW."name" END;
BEGIN
  IF NOT starts_with(below, '*') AND EXISTS (SELECT 1 FROM "zone_key") THEN
    PERFORM "raise_cuts_of"(below);
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER "domain_cut_update" ON "domain";
CREATE TRIGGER "domain_cut_update" AFTER UPDATE OF "verified", "nameservers", "next_check_at", "dnssec_state" ON "domain" FOR EACH ROW
  WHEN (OLD."verified" <> NEW."verified" OR OLD."nameservers" <> NEW."nameservers"
    OR (OLD."next_check_at" IS NULL) <> (NEW."next_check_at" IS NULL)
    OR (OLD."dnssec_state" = 'leaving') <> (NEW."dnssec_state" = 'leaving'))
  EXECUTE FUNCTION "domain_cut"();

-- With the keys that are announced, the DS records in the zone above change too.
CREATE OR REPLACE FUNCTION "zone_key_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  zone TEXT := CASE WHEN TG_OP = 'DELETE' THEN OLD."domain_id" ELSE NEW."domain_id" END;
  changed RECORD;
BEGIN
  IF zone IS NULL THEN
    UPDATE "platform_zone" SET "serial" = "serial" + 1;
    RETURN NULL;
  END IF;
  UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = zone RETURNING "name", "dnssec_state" INTO changed;
  IF changed."dnssec_state" = 'awaiting_ds' THEN
    PERFORM "raise_signal_serial"();
  END IF;
  -- The name is missing when the domain is being deleted: domain_cut does the same then.
  IF changed."name" IS NOT NULL AND COALESCE(OLD."announced", false) <> COALESCE(NEW."announced", false) THEN
    PERFORM "raise_cuts_of"(changed."name");
  END IF;
  RETURN NULL;
END $$;
