-- A person who joins or takes another address gets a mail there, whose link proves that the address is theirs.
DROP TRIGGER "event_mail" ON "event";
CREATE TRIGGER "event_mail" AFTER INSERT ON "event" FOR EACH ROW WHEN (NEW."type" IN (
    'deployment.error', 'deployment.ready', 'domain.ssl.expired', 'domain.ssl.failing', 'domain.unverified', 'member.invited',
    'member.joined', 'member.updated', 'session.created', 'ticket.replied', 'token.created', 'webhook.disabled'))
  EXECUTE FUNCTION "event_mail"();

-- A person who has proved an address is shown the invitations to it, by whichever account.
CREATE INDEX "invitation_email_idx" ON "invitation" ("email");
