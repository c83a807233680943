-- Search by words, for lists of tickets. Each body is parsed here and not at every call: an index is built with a search path
-- of its own. The index `ticket_words` uses these functions: whoever changes a result rebuilds it in a migration.

-- The words of a text, in lower case.
CREATE OR REPLACE FUNCTION words_of(content text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_remove(regexp_split_to_array(lower(content), '[^[:alnum:]]+'), '');

-- What the index has of each ticket: the words of the subject, and all that lists are filtered by, so that the index alone
-- tells what is found. No word can be taken for one of these, which have an underscore.
CREATE OR REPLACE FUNCTION ticket_words(account text, status text, priority text, subject text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(words_of(subject) || ARRAY[account, 's_' || status, 'p_' || priority]);

-- All of the words, each as the beginning of one. The account may be null, for all of them. Without a word, nothing is found.
CREATE OR REPLACE FUNCTION ticket_query(account text, statuses text[], priorities text[], content text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN concat_ws(' & ', quote_literal(account),
  (SELECT '(' || string_agg(quote_literal('s_' || one), ' | ') || ')' FROM unnest(statuses) one),
  (SELECT '(' || string_agg(quote_literal('p_' || one), ' | ') || ')' FROM unnest(priorities) one),
  COALESCE((SELECT string_agg(quote_literal(word) || ':*', ' & ') FROM unnest(words_of(content)) word), '''_'''))::tsquery;
