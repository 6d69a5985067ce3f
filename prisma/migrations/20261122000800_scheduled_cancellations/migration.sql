-- Instances whose cancellation is scheduled, in the order of a page: no more of them is read than it takes, by a plan that
-- does not know how many there are.
CREATE INDEX instances_scheduled_idx ON instances (project_id, id) WHERE cancellation_at IS NOT NULL AND status <> 'deleted';
