-- What was notified of a thing, in the order of the log. An id counts as the same in either case, as where it is followed.
CREATE INDEX notifications_about_idx ON notifications (project_id, lower(resource_id), sequence) WHERE resource_id IS NOT NULL;
