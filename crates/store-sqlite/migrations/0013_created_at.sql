-- When a timer was created stands beside its due time, its end and its pause as well: a list by creation of what is due in a period is sorted
-- without a look at each definition, which lie anywhere in the file. NULL in rows that earlier versions wrote: then the definition says it.
ALTER TABLE due ADD COLUMN created_at INTEGER;
ALTER TABLE outcome ADD COLUMN created_at INTEGER;
ALTER TABLE paused ADD COLUMN created_at INTEGER;
