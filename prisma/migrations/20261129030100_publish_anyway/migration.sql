-- Whether a site that nothing builds is published with its private keys, databases and the like, which are withheld otherwise.
ALTER TABLE "project" ADD COLUMN "publish_anyway" BOOLEAN NOT NULL DEFAULT false;
