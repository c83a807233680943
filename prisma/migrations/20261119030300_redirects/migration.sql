-- A domain may redirect to another one of its account, which cannot be deleted meanwhile.
ALTER TABLE "domain" ADD COLUMN "redirect_id" TEXT, ADD COLUMN "redirect_status" INTEGER,
  ADD CONSTRAINT "domain_redirect_id_fkey" FOREIGN KEY ("redirect_id") REFERENCES "domain"("id") ON DELETE NO ACTION ON UPDATE CASCADE;
CREATE INDEX "domain_redirect_id_idx" ON "domain"("redirect_id");
