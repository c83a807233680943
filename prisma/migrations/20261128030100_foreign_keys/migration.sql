-- The keys of another provider that signs the zone too (RFC 8901), as values of DNSKEY records.
ALTER TABLE "domain" ADD COLUMN "foreign_keys" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- As before, with these keys. The claims to these names that are served, without their records. As a function it is planned once
-- for each connection, by its indexes whatever the statistics say.
CREATE OR REPLACE FUNCTION "served_zones"("names" text[])
RETURNS TABLE (
  "name" text, "id" text, "serial" integer, "verified" boolean, "refused" boolean, "account_id" text,
  "nameservers" text[], "record_bytes" bigint, "changes_since" integer, "signatures_since" integer, "signing" json)
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
  WHERE d.name = ANY("names") AND d.name NOT LIKE '*%' AND (d.verified OR (
    d.unproved_since > now() - interval '30 days'
    AND NOT EXISTS (SELECT 1 FROM domain_claim o
      WHERE o.name = ANY(names_at_and_above(d.name)) AND o.account_id <> d.account_id)
    AND NOT EXISTS (SELECT 1 FROM domain_claim_above o WHERE o.above = d.name AND o.account_id <> d.account_id
      AND NOT EXISTS (SELECT 1 FROM domain v WHERE v.name = o.name AND v.verified))))
  ORDER BY d.name, d.verified DESC;
END $$;

DROP TRIGGER "zone_signing_serial" ON "domain";
CREATE OR REPLACE FUNCTION "zone_signing_serial"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "domain" SET "serial" = "serial" + 1 WHERE "id" = NEW."id";
  IF NEW."dnssec_state" = 'awaiting_ds' THEN
    PERFORM "raise_signal_serial"();
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "zone_signing_serial" AFTER UPDATE OF "dnssec_denial", "cds_delete", "foreign_keys" ON "domain" FOR EACH ROW
  WHEN ((OLD."dnssec_denial", OLD."cds_delete", OLD."foreign_keys") IS DISTINCT FROM
    (NEW."dnssec_denial", NEW."cds_delete", NEW."foreign_keys"))
  EXECUTE FUNCTION "zone_signing_serial"();
