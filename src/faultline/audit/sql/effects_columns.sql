-- The columns of a table; none if the table does not exist.
select coalesce(array_agg(attribute.attname::text), '{}') as columns
from pg_attribute as attribute
where attribute.attrelid = to_regclass(%(table)s)
  and attribute.attnum > 0
  and not attribute.attisdropped
