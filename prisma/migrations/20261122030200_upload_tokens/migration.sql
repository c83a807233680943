-- Who sent it: a token that is narrowed to projects sees what it sent itself, and nothing else that waits.
ALTER TABLE "upload" ADD COLUMN "token_id" TEXT NOT NULL DEFAULT '';
