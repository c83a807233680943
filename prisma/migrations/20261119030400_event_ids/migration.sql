-- The ids of events of one type, project or subject of an account, behind an id. Planned at each call for the values that it
-- is given: a plan for any value cannot know that this one is rare, and reads through all events of the account for it.
CREATE FUNCTION "event_ids"("account" text, "facet" text, "value" text, "types" text[], "projects" text[],
  "after" text, "direction" text, "most" integer)
RETURNS SETOF text LANGUAGE plpgsql STABLE ROWS 20 AS $$
BEGIN
  RETURN QUERY EXECUTE format(
    'SELECT id FROM event WHERE account_id = $1 AND %I = $2 AND id %s $3
       AND ($4 IS NULL OR type = ANY($4)) AND ($5 IS NULL OR project_id = ANY($5)) ORDER BY id %s LIMIT $6',
    "facet", CASE "direction" WHEN 'asc' THEN '>' ELSE '<' END, CASE "direction" WHEN 'asc' THEN 'ASC' ELSE 'DESC' END)
  USING "account", "value", "after", "types", "projects", "most";
END $$;
