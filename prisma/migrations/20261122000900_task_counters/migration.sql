-- How many tasks of each status were created in each quarter of an hour, and how many that failed ended in it: the overview
-- adds up the quarters of a day instead of its tasks. Kept like the other counters: spread over eight slots, touched in the
-- order of the key, and not for a project that is being deleted.

CREATE TABLE task_counters (
  project_id uuid NOT NULL REFERENCES projects (id) ON DELETE CASCADE ON UPDATE CASCADE,
  -- The quarter's beginning.
  since timestamptz(3) NOT NULL,
  slot smallint NOT NULL,
  -- Of the tasks that were created in the quarter, by status.
  pending bigint NOT NULL,
  running bigint NOT NULL,
  succeeded bigint NOT NULL,
  failed bigint NOT NULL,
  cancelled bigint NOT NULL,
  -- Of the tasks that ended in the quarter: those that failed.
  failures bigint NOT NULL,
  CONSTRAINT task_counters_pkey PRIMARY KEY (project_id, since, slot)
);

CREATE FUNCTION quarter_of(moment timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT date_bin('15 minutes', moment, 'epoch'::timestamptz)
$$;

-- The overview looks back by a day of its own clock, which may be an hour behind: what is older is not counted, and the
-- gateway removes it an hour later.
CREATE FUNCTION count_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($sql$
    INSERT INTO task_counters AS counter (project_id, since, slot, pending, running, succeeded, failed, cancelled, failures)
    SELECT * FROM (
      SELECT project_id, since, pg_backend_pid() %% 8,
        coalesce(sum(sign) FILTER (WHERE counted = 'pending'), 0) AS pending,
        coalesce(sum(sign) FILTER (WHERE counted = 'running'), 0) AS running,
        coalesce(sum(sign) FILTER (WHERE counted = 'succeeded'), 0) AS succeeded,
        coalesce(sum(sign) FILTER (WHERE counted = 'failed'), 0) AS failed,
        coalesce(sum(sign) FILTER (WHERE counted = 'cancelled'), 0) AS cancelled,
        coalesce(sum(sign) FILTER (WHERE counted = 'failure'), 0) AS failures
      FROM (%s) AS changed
      CROSS JOIN LATERAL (
        VALUES (quarter_of(created), status::text), (CASE WHEN status = 'failed' THEN quarter_of(finished) END, 'failure')
      ) AS of (since, counted)
      WHERE since >= quarter_of(now() - interval '25 hours')
        AND EXISTS (SELECT FROM projects WHERE projects.id = changed.project_id)
      GROUP BY project_id, since
    ) AS delta
    WHERE (pending, running, succeeded, failed, cancelled, failures) <> (0, 0, 0, 0, 0, 0)
    ORDER BY project_id, since
    ON CONFLICT (project_id, since, slot) DO UPDATE SET
      pending = counter.pending + excluded.pending,
      running = counter.running + excluded.running,
      succeeded = counter.succeeded + excluded.succeeded,
      failed = counter.failed + excluded.failed,
      cancelled = counter.cancelled + excluded.cancelled,
      failures = counter.failures + excluded.failures
  $sql$, changed_rows(TG_OP));
  RETURN NULL;
END
$$;

-- What is too old to be added up is found by it.
CREATE INDEX task_counters_since_idx ON task_counters (since);

-- With the rights of their owner, as the other counters are kept (see the migration “definer”).
ALTER FUNCTION count_tasks() SECURITY DEFINER SET search_path = public, pg_temp;
REVOKE EXECUTE ON FUNCTION count_tasks() FROM PUBLIC;

-- From here on nobody else writes tasks until the migration has ended, so that what is there is counted once.
CREATE TRIGGER count_inserted AFTER INSERT ON tasks REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();
CREATE TRIGGER count_updated AFTER UPDATE ON tasks REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();
CREATE TRIGGER count_deleted AFTER DELETE ON tasks REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();

INSERT INTO task_counters (project_id, since, slot, pending, running, succeeded, failed, cancelled, failures)
SELECT project_id, since, 0,
  count(*) FILTER (WHERE counted = 'pending'), count(*) FILTER (WHERE counted = 'running'),
  count(*) FILTER (WHERE counted = 'succeeded'), count(*) FILTER (WHERE counted = 'failed'),
  count(*) FILTER (WHERE counted = 'cancelled'), count(*) FILTER (WHERE counted = 'failure')
FROM tasks
CROSS JOIN LATERAL (
  VALUES (quarter_of(created), status::text), (CASE WHEN status = 'failed' THEN quarter_of(finished) END, 'failure')
) AS of (since, counted)
WHERE (created >= now() - interval '26 hours' OR finished >= now() - interval '26 hours')
  AND since >= quarter_of(now() - interval '25 hours')
GROUP BY project_id, since;
