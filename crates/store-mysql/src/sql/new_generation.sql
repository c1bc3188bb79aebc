-- Begins a generation.
INSERT INTO generation (n)
VALUES (NULL)
