-- Deliveries become their own queue: made by the database with the event, and worked off webhook by webhook.
DELETE FROM "job" WHERE "kind" = 'deliver';

ALTER TABLE "delivery"
  ADD COLUMN "xid" xid8 NOT NULL DEFAULT pg_current_xact_id(),
  ADD COLUMN "seq" BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN "requested" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "delivery" ALTER COLUMN "seq" DROP DEFAULT;
-- Those that wait already were asked for by hand: nothing else made any until now.
UPDATE "delivery" SET "requested" = true WHERE "state" = 'PENDING';

CREATE TABLE "delivery_attempt" (
    "delivery_id" TEXT NOT NULL,
    "attempt" INTEGER NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "duration_ms" INTEGER,
    "response_status" INTEGER,
    "response_body" TEXT,
    "error" TEXT,

    CONSTRAINT "delivery_attempt_pkey" PRIMARY KEY ("delivery_id", "attempt")
);

CREATE TABLE "webhook_lane" (
    "webhook_id" TEXT NOT NULL,
    "leased_by" TEXT,
    "wake_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "failing_since" TIMESTAMPTZ(3),
    "paused_until" TIMESTAMPTZ(3),

    CONSTRAINT "webhook_lane_pkey" PRIMARY KEY ("webhook_id")
);

CREATE INDEX "webhook_lane_wake_at_idx" ON "webhook_lane"("wake_at");

ALTER TABLE "delivery_attempt" ADD CONSTRAINT "delivery_attempt_delivery_id_fkey" FOREIGN KEY ("delivery_id") REFERENCES "delivery"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "webhook_lane" ADD CONSTRAINT "webhook_lane_webhook_id_fkey" FOREIGN KEY ("webhook_id") REFERENCES "webhook"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- First attempts go in the order of events, later ones by their time, those asked for by hand also when all others wait.
-- Each has an index of its own, because a receiver that is down leaves a hundred thousand rows behind that are not due.
CREATE INDEX "delivery_waiting" ON "delivery" ("webhook_id", "xid", "seq") WHERE "state" = 'PENDING' AND "attempts" = 0;
CREATE INDEX "delivery_retry" ON "delivery" ("webhook_id", "next_attempt_at") WHERE "state" = 'PENDING' AND "attempts" > 0;
CREATE INDEX "delivery_requested" ON "delivery" ("webhook_id") WHERE "state" = 'PENDING' AND "requested";

-- Every event that a webhook subscribes to becomes a delivery, here and not in a service, so that no writer of events
-- can forget it, and in the transaction of the change, so that no crash can come between them. The webhook is locked
-- against deletion first: without that, a webhook deleted at the same moment would fail the change by its foreign key.
-- The id sorts like the event's, and is the same whoever computes it.
CREATE FUNCTION "event_deliver"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "delivery" ("id", "webhook_id", "event_id", "event_type", "state", "created_at", "next_attempt_at", "xid", "seq")
  SELECT 'dlv_' || substr(NEW."id", 5, 14) || substr(md5(NEW."id" || w."id"), 1, 10), w."id", NEW."id", NEW."type",
    'PENDING', NEW."created_at", NEW."created_at", NEW."xid", NEW."seq"
  FROM "webhook" w
  WHERE w."account_id" = NEW."account_id" AND w."active" AND EXISTS (
    SELECT 1 FROM unnest(w."events") AS pattern
    WHERE pattern = '*' OR pattern = NEW."type"
      OR (right(pattern, 2) = '.*' AND starts_with(NEW."type", left(pattern, -1))))
  FOR KEY SHARE OF w;
  RETURN NULL;
END $$;

-- A ping goes to the webhook it is meant for and to no other.
CREATE TRIGGER "event_deliver" AFTER INSERT ON "event"
  FOR EACH ROW WHEN (NEW."type" <> 'webhook.ping') EXECUTE FUNCTION "event_deliver"();
