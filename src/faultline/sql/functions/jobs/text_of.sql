-- A document as the text that is stored; raises an error if it is longer than one mebibyte.
-- The sizes of its numbers are added first: `1e-16383` is 8 bytes of jsonb and 16 KB of text, and printing takes the memory even if
-- the text is then refused. The numbers are read as one array: row by row, PostgreSQL moves all remaining ones each time, and
-- 340,000 zeros took half a minute.
create function faultline.text_of(document jsonb)
returns text
language plpgsql
immutable
strict
as $$
begin
  -- The domain allows no number over 1e308. In 520 bytes there are at most 43 numbers, which print as 700 KB at most.
  if (pg_column_size(document) > 520 or pg_column_size(jsonb_build_array(document)) > 520) and exists (
    select
    from jsonb_array_elements(jsonb_path_query_array(document, 'strict $.** ? (@.type() == "number")')) as number
    -- The sum is at most 18 times the printed size: a sum over 20 MiB means a text over 1 MiB, which is not printed.
    having sum(scale(number::numeric) + case when abs(number::numeric) < 1e17 then 18 else 310 end) > 20971520)
  then
    raise exception 'a document is at most one mebibyte'
      using errcode = '23514', constraint = 'a_document_is_at_most_one_mebibyte';
  end if;
  return document::text;
end;
$$;
