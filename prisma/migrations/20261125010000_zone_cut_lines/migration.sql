-- The lines of a signed zone for its delegations to the zones below it that are served here too, unless it has NS records
-- for them itself: all of them, or those at some names. As a function it is planned once for each connection, instead of
-- with every change of any zone: that took longer than reading the zone. By its indexes, as in "domain_cut".
CREATE FUNCTION "zone_cuts"("zone_id" text, "zone_name" text, "hosts" text[], "only_at" text[])
RETURNS text LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN (
    SELECT string_agg(DISTINCT concat_ws(' ', 'NS', 3600, c.cut, h.host), E'\n')
    FROM (
      SELECT b.name, left(b.name, -length("zone_name") - 1) AS cut FROM domain_claim_above b WHERE b.above = "zone_name") c
    JOIN domain d ON d.name = c.name AND d.name NOT LIKE '*%' AND (d.verified OR (
      d.unproved_since > now() - interval '30 days'
      AND NOT EXISTS (SELECT 1 FROM domain_claim o
        WHERE o.name = ANY(names_at_and_above(d.name)) AND o.account_id <> d.account_id)
      AND NOT EXISTS (SELECT 1 FROM domain_claim_above o WHERE o.above = d.name AND o.account_id <> d.account_id
        AND NOT EXISTS (SELECT 1 FROM domain v WHERE v.name = o.name AND v.verified))))
    CROSS JOIN LATERAL unnest(CASE WHEN d.nameservers = '{}' THEN "hosts" ELSE d.nameservers END) h(host)
    WHERE ("only_at" IS NULL OR c.cut = ANY("only_at")) AND NOT EXISTS (
      SELECT 1 FROM dns_record r WHERE r.domain_id = "zone_id" AND r.name = c.cut AND r.type = 'NS'));
END $$;
