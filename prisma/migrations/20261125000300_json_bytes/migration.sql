-- Large JSON is stored uncompressed from now on, so that its size is known without reading it.
ALTER TABLE dashboards ALTER COLUMN widgets SET STORAGE EXTERNAL;
ALTER TABLE notifications ALTER COLUMN data SET STORAGE EXTERNAL;

-- The bytes of the text of a JSON value, a few more where it is large. A large value is not read, unless it was stored compressed.
CREATE FUNCTION json_bytes(value json) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_column_size(value) < 2000 OR pg_column_compression(value) IS NOT NULL THEN octet_length(value::text)
    ELSE pg_column_size(value) END
$$;
