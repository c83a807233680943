-- The production branch may be whichever branch is the default one of the repository. Projects that are there keep theirs.
-- production_branch stays a name: the version before this one reads it as such.
ALTER TABLE project ADD COLUMN follows_default_branch BOOLEAN NOT NULL DEFAULT false, ADD COLUMN default_branch TEXT;
