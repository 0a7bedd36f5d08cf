-- How many of these jobs, from the first on, fit in this number of bytes together; at least one.
create function faultline.within(weights int[], bytes bigint)
returns int
language plpgsql
immutable
as $$
declare
  left_over  bigint := within.bytes;
  count      int := 0;
  weight     int;
begin
  foreach weight in array weights loop
    left_over := left_over - weight;
    exit when left_over < 0 and count > 0;
    count := count + 1;
  end loop;
  return count;
end;
$$;
