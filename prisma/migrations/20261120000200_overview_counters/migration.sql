-- The overview's counters: what a statement changed is added to the counters, per (project, status) or (project, kind).
-- A counter is spread over eight slots, so that writers do not queue on one row; its value is the sum of the slots.
-- Rows are touched in the order of their key, so that two single statements never wait for each other in a circle.
-- A project that is being deleted takes its counters with it: what its cascade deletes is not counted.

CREATE FUNCTION changed_rows(operation text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE operation
    WHEN 'INSERT' THEN 'SELECT 1 AS sign, * FROM new_rows'
    WHEN 'DELETE' THEN 'SELECT -1 AS sign, * FROM old_rows'
    ELSE 'SELECT -1 AS sign, * FROM old_rows UNION ALL SELECT 1 AS sign, * FROM new_rows'
  END
$$;

CREATE FUNCTION count_instances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($sql$
    INSERT INTO instance_counters AS counter
      (project_id, status, slot, instances, vcpu, ram_mb, storage_gb, without_hypervisor, throttled)
    SELECT * FROM (
      SELECT project_id, status, pg_backend_pid() %% 8,
        sum(sign) AS instances,
        sum(sign * vcpu) AS vcpu,
        sum(sign * ram_mb::bigint) AS ram_mb,
        sum(sign * storage_gb::bigint) AS storage_gb,
        sum(CASE WHEN hypervisor IS NULL THEN sign ELSE 0 END) AS without_hypervisor,
        sum(CASE WHEN throttled THEN sign ELSE 0 END) AS throttled
      FROM (%s) AS changed
      WHERE EXISTS (SELECT FROM projects WHERE projects.id = changed.project_id)
      GROUP BY project_id, status
    ) AS delta
    WHERE (instances, vcpu, ram_mb, storage_gb, without_hypervisor, throttled) <> (0, 0, 0, 0, 0, 0)
    ORDER BY project_id, status
    ON CONFLICT (project_id, status, slot) DO UPDATE SET
      instances = counter.instances + excluded.instances,
      vcpu = counter.vcpu + excluded.vcpu,
      ram_mb = counter.ram_mb + excluded.ram_mb,
      storage_gb = counter.storage_gb + excluded.storage_gb,
      without_hypervisor = counter.without_hypervisor + excluded.without_hypervisor,
      throttled = counter.throttled + excluded.throttled
  $sql$, changed_rows(TG_OP));
  RETURN NULL;
END
$$;

CREATE TRIGGER count_inserted AFTER INSERT ON instances REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_instances();
CREATE TRIGGER count_updated AFTER UPDATE ON instances REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_instances();
CREATE TRIGGER count_deleted AFTER DELETE ON instances REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_instances();

-- Arguments: the kind of resource, and the SQL expression of its size in GB.
CREATE FUNCTION count_resources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($sql$
    INSERT INTO resource_counters AS counter (project_id, kind, slot, resources, storage_gb)
    SELECT * FROM (
      SELECT project_id, %L::resource_kind, pg_backend_pid() %% 8, sum(sign) AS resources, sum(sign * (%s)::bigint) AS storage_gb
      FROM (%s) AS changed
      WHERE EXISTS (SELECT FROM projects WHERE projects.id = changed.project_id)
      GROUP BY project_id
    ) AS delta
    WHERE (resources, storage_gb) <> (0, 0)
    ORDER BY project_id
    ON CONFLICT (project_id, kind, slot) DO UPDATE SET
      resources = counter.resources + excluded.resources,
      storage_gb = counter.storage_gb + excluded.storage_gb
  $sql$, TG_ARGV[0], TG_ARGV[1], changed_rows(TG_OP));
  RETURN NULL;
END
$$;

DO $$
DECLARE
  kind text;
  size text;
BEGIN
  FOR kind, size IN
    VALUES ('volumes', 'size_gb'), ('vpcs', '0'), ('ssh_keys', '0'), ('snapshots', 'size_gb'), ('backups', 'size_gb')
  LOOP
    EXECUTE format('CREATE TRIGGER count_inserted AFTER INSERT ON %I REFERENCING NEW TABLE AS new_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_resources(%L, %L)', kind, kind, size);
    EXECUTE format('CREATE TRIGGER count_updated AFTER UPDATE ON %I REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_resources(%L, %L)', kind, kind, size);
    EXECUTE format('CREATE TRIGGER count_deleted AFTER DELETE ON %I REFERENCING OLD TABLE AS old_rows
      FOR EACH STATEMENT EXECUTE FUNCTION count_resources(%L, %L)', kind, kind, size);
  END LOOP;
END
$$;
