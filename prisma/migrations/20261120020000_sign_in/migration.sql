-- Sealed values are bytes in every other table, and re-sealed as such. Nothing has written one here yet.
ALTER TABLE "users" ALTER COLUMN "totp_secret" TYPE BYTEA USING NULL;

-- Whoever invites somebody has the link too, so that an account may have been begun in another person's name.
ALTER TABLE "users" ADD COLUMN "email_proved_at" TIMESTAMPTZ(3);
