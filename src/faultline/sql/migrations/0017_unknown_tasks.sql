-- The moment since which every lease of the job ended because its worker had no handler for the task. Null, which takes no space in
-- the row, for all other jobs.
alter table faultline.active add column unknown_since timestamptz;
alter table faultline.later  add column unknown_since timestamptz;
