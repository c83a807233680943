-- The order of events is that in which they were written, also beside a transaction that began long before it wrote its
-- own. Ordered by transactions alone, the change of a row could come before the change that it was made on: by one that
-- had written something else before.
--
-- The number of an event is that of the last transaction that had ended when it was written, but never lower than that of
-- its own. Who waits for another's lock comes behind it, and no transaction can write below its own number: what is
-- below the oldest running one stays final. No number comes again when PostgreSQL was killed: what had ended before is
-- before this event in its log, and so on disk when this one is.
CREATE FUNCTION "event_number"() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
  own bigint := "event_xid"()::text::bigint;
  -- Of now, and not of the statement's start: it may have waited for a lock.
  ended bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1;
BEGIN
  RETURN GREATEST(own, own - pg_current_xact_id()::text::bigint + ended)::text::xid8;
END $$;

-- By its transaction a list tells what could be seen before. Null in older events, whose number is that.
ALTER TABLE "event" ADD COLUMN "writer" xid8;
ALTER TABLE "event" ALTER COLUMN "writer" SET DEFAULT "event_xid"();
ALTER TABLE "event" ALTER COLUMN "xid" SET DEFAULT "event_number"();
ALTER TABLE "delivery" ALTER COLUMN "xid" SET DEFAULT "event_number"();
