-- What a build could not follow, such as a rule of _redirects: a list of {code, message, file, line}.
ALTER TABLE "deployment" ADD COLUMN "warnings" JSONB;
