-- Builds the index by which timers of the default namespace are listed.
CREATE INDEX IF NOT EXISTS definition_default ON definition (created_at, id) WHERE namespace = 'default'
