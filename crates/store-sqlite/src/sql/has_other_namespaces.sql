-- Whether a namespace is in use beside the default one.
SELECT EXISTS (SELECT 1 FROM definition WHERE namespace <> 'default')
