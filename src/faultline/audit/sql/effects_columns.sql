-- Which columns a table has; none where there is no such table.
select coalesce(array_agg(attribute.attname::text), '{}') as columns
from pg_attribute as attribute
where attribute.attrelid = to_regclass(%(table)s)
  and attribute.attnum > 0
  and not attribute.attisdropped
