-- The signature of each set that is in use at a version of its zone; `place` counts the asked ones from 1. By the index
-- whatever the statistics say: a plan that was made for a small table would read through a large one for each set, and
-- the table grows by thousands of rows within seconds when zones are signed for the first time.
CREATE FUNCTION "zone_signatures"("keys" text[], "fingerprints" bytea[], "serials" integer[])
RETURNS TABLE ("place" integer, "octets" bytea) LANGUAGE plpgsql STABLE ROWS 100 SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY
  SELECT w.place::integer, found.octets
  FROM unnest("keys", "fingerprints", "serials") WITH ORDINALITY AS w(key_id, fingerprint, serial, place)
  CROSS JOIN LATERAL (
    SELECT s.octets FROM zone_signature s
    WHERE s.key_id = w.key_id AND s.fingerprint = w.fingerprint AND s.since <= w.serial
    ORDER BY s.since DESC LIMIT 1) found;
END $$;
