-- One snapshot for the whole walk, and nothing written. Joins by hash or merge: where a table was never analysed the
-- planner takes a range of twenty thousand entries for a handful, and a loop over two of them took a minute.
set transaction isolation level repeatable read, read only;
set local enable_nestloop = off;
set local jit = off;
