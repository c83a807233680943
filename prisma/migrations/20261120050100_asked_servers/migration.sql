-- Which servers told the nameservers of a domain at the last look; none for those from before.
ALTER TABLE domain ADD COLUMN observed_asked TEXT[] DEFAULT ARRAY[]::TEXT[];
