-- The parts of zones that a token is narrowed to: domains, each with patterns of names and types. Null: no such bound.
ALTER TABLE "token" ADD COLUMN "zone_parts" JSONB;
