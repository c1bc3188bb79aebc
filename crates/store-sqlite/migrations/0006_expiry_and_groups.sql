-- Expired timers are rare among millions of completed ones, and found at once, as failed and canceled ones are.
CREATE INDEX outcome_expired ON outcome (id) WHERE status = 'expired';

-- What a timer belongs to, inside its namespace. Most timers belong to nothing, and are not in the index.
ALTER TABLE definition ADD COLUMN group_name TEXT;
CREATE INDEX definition_group ON definition (namespace, group_name, id) WHERE group_name IS NOT NULL;
