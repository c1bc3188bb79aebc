-- Whether the index of the default namespace is there.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = 'definition_default')
