-- Whether a namespace is in use beside the default one.
SELECT EXISTS (SELECT FROM definition WHERE namespace <> 'default')
