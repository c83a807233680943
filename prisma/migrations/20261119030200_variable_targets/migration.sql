-- A variable has a value for each target, and not only one. All values stay as they are, and none becomes readable.
ALTER TABLE "variable" ADD COLUMN "readable" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "variable" DROP CONSTRAINT "variable_pkey";
ALTER TABLE "variable" ADD CONSTRAINT "variable_pkey" PRIMARY KEY ("project_id", "key", "target");
