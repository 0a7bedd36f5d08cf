-- A document as jsonb; null if a client cannot read it: no JSON, too deep, or numbers of thousands of digits.
-- Such a row is damage (constraints were dropped, a dump was changed). A plain cast would fail the whole list with the row.
create function faultline.readable(document text)
returns jsonb
language plpgsql
immutable
strict
as $$
declare
  value jsonb;
begin
  value := document::jsonb;
  if document ~ '[0-9]{250}|[0-9][eE][+-]?[0-9]{3}'
     and jsonb_path_exists(value, 'strict $.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))')
  then
    return null;
  end if;
  if 2 * octet_length(document) - octet_length(replace(document, '[', '')) - octet_length(replace(document, '{', '')) > 400
     and jsonb_path_exists(value, 'strict $.**{400 to last}')
  then
    return null;
  end if;
  return value;
exception when others then
  return null;
end;
$$;
