-- A document as the text it is kept as. Its numbers are added up first: `1e-16383` is 8 bytes of jsonb and 16 KB of text,
-- and what is printed to be refused has taken its memory already. They are found as one array: asked for row by row,
-- PostgreSQL moves all that are left for each one it gives, and 340,000 zeros took half a minute.
create function faultline.text_of(document jsonb)
returns text
language plpgsql
immutable
strict
as $$
begin
  -- No number is over 1e308, by its domain. Of 520 bytes 43 can be numbers; printed, those are 700 KB at most.
  if pg_column_size(jsonb_build_array(document)) > 520 and exists (
    select
    from jsonb_array_elements(jsonb_path_query_array(document, 'strict $.** ? (@.type() == "number")')) as number
    -- At most 18 times what it is: so what comes to 20 MiB here is over one, and is not printed.
    having sum(scale(number::numeric) + case when abs(number::numeric) < 1e17 then 18 else 310 end) > 20971520)
  then
    raise exception 'a document is at most one mebibyte'
      using errcode = '23514', constraint = 'a_document_is_at_most_one_mebibyte';
  end if;
  return document::text;
end;
$$;
