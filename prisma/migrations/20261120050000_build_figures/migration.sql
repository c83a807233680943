-- What a build was of, what it made, and how long its steps took. Unknown for those from before.
ALTER TABLE deployment
  ADD COLUMN commit_message text,
  ADD COLUMN files integer,
  ADD COLUMN steps jsonb;
