-- One read-only snapshot for the whole walk, with hash and merge joins on. For a table that was never analysed, the planner expects a
-- handful of rows in a range of twenty thousand entries, and a nested loop over two of them took a minute.
set transaction isolation level repeatable read, read only;
set local enable_nestloop = off;
set local jit = off;
