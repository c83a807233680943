// Empty on purpose; package.json says why.
