-- Mails to people. A mail is derived from an event by a job, which is queued in the transaction of the event.

-- One row, written by the worker role at its start: whether there is a mail server. Without it no job is queued.
CREATE TABLE "mail_switch" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "on" BOOLEAN NOT NULL,

    CONSTRAINT "mail_switch_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "mail" (
    "recipient" TEXT NOT NULL,
    "about" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "account_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "more" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "begun_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "reason" TEXT,

    CONSTRAINT "mail_pkey" PRIMARY KEY ("recipient", "about")
);
CREATE INDEX "mail_recipient_kind_due_at_idx" ON "mail"("recipient", "kind", "due_at");
CREATE INDEX "mail_account_id_kind_due_at_idx" ON "mail"("account_id", "kind", "due_at");
CREATE INDEX "mail_due_at_idx" ON "mail"("due_at");
CREATE INDEX "mail_waiting" ON "mail"("due_at") WHERE "state" = 'WAITING';
ALTER TABLE "mail" ADD CONSTRAINT "mail_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id")
  ON DELETE CASCADE ON UPDATE CASCADE;

-- The link of a mailed invitation has a secret of its own: the one that the API answered with is known to nobody else.
ALTER TABLE "invitation" ADD COLUMN "mail_hash" BYTEA;
CREATE UNIQUE INDEX "invitation_mail_hash_key" ON "invitation"("mail_hash");

-- Deployments that are not for production are passed over here, because they are many.
CREATE FUNCTION "event_mail"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF starts_with(NEW."type", 'deployment.') AND NEW."data" ->> 'production' IS DISTINCT FROM 'true' THEN
    RETURN NULL;
  END IF;
  INSERT INTO "job" ("kind", "key", "payload", "account_id", "trace")
  SELECT 'notify', NEW."id", jsonb_build_object('eventId', NEW."id"), NEW."account_id", NEW."trace"
  FROM "mail_switch" WHERE "on";
  RETURN NULL;
END $$;

CREATE TRIGGER "event_mail" AFTER INSERT ON "event" FOR EACH ROW WHEN (NEW."type" IN (
    'deployment.error', 'deployment.ready', 'domain.ssl.expired', 'domain.ssl.failing', 'domain.unverified', 'member.invited',
    'session.created', 'ticket.replied', 'token.created', 'webhook.disabled'))
  EXECUTE FUNCTION "event_mail"();
