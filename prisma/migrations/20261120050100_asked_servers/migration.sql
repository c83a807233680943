-- Which servers told the nameservers of a domain at the last look; none for those from before.
ALTER TABLE domain ADD COLUMN observed_asked text[] NOT NULL DEFAULT '{}';
