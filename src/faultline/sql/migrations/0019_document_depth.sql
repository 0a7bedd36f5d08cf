-- The checks of a document's text do not read it as jsonb: that takes 630 bytes for each `{}`, and 785 KB of them took a backend 480 MB,
-- in three checks. A document has at most 100,000 objects, since some functions still read it as jsonb, once.
-- Not validated: existing rows passed the bounds of their time.

-- jsonb_build_array makes a tree too: only small values, which may be compressed ones, are measured by it.
alter domain faultline.document drop constraint a_document_is_at_most_64_deep;
alter domain faultline.document add constraint a_document_is_at_most_64_deep
  check ((pg_column_size(value) <= 520 and pg_column_size(jsonb_build_array(value)) <= 520)
         or not jsonb_path_exists(value, 'strict $.**{64 to last}'))
  not valid;

alter domain faultline.document_text add constraint a_document_has_at_most_100000_objects
  check (octet_length(value) not between 300000 and 1048576
         or octet_length(value) - octet_length(replace(value, '{', '')) <= 100000
         or regexp_count(regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g'), '\{') <= 100000)
  not valid;

-- A pattern of 64 levels: brackets that fit it are at most 64 deep, and the innermost pair is empty. Text with other brackets is too
-- deep, or it is no JSON: then the cast raises the error.
alter domain faultline.document_text drop constraint a_document_is_at_most_64_deep;
alter domain faultline.document_text add constraint a_document_is_at_most_64_deep
  check (octet_length(value) not between 129 and 1048576
         or 2 * octet_length(value) - octet_length(replace(value, '[', '')) - octet_length(replace(value, '{', '')) < 64
         or regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g')
            ~ ('^' || repeat('(?:[^][{}]|[[{]', 64) || '\s*' || repeat('[]}])*', 64) || '$')
         or value::json is null)
  not valid;

-- The same bound as before. A document without exponents grows by the blanks behind its commas and colons at most.
alter domain faultline.document_text drop constraint a_document_is_at_most_one_mebibyte;
alter domain faultline.document_text add constraint a_document_is_at_most_one_mebibyte
  check (case
    when octet_length(value) > 1048576 then false
    when octet_length(value) <= 18078 then true
    when value !~ '[0-9][eE][+-]?[0-9]{2}'
      then octet_length(value) <= 349525
           or (value !~ '[0-9][eE]'
               and 3 * octet_length(value) - octet_length(replace(value, ',', '')) - octet_length(replace(value, ':', '')) <= 1048576)
           or octet_length(value::jsonb::text) <= 1048576
    when regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g')
         ~ '[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})' then true
    when regexp_count(regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g'),
                      '(?:[1-9][0-9.]*[eE]\+?|[0-9][eE]-)0*[1-9][0-9]{2}') > 10485 then false
    else octet_length(value::jsonb::text) <= 1048576
  end)
  not valid;

-- The numbers alone are read as jsonb, as one array.
alter domain faultline.document_text drop constraint a_documents_numbers_are_within_1e308_and_400_digits;
alter domain faultline.document_text add constraint a_documents_numbers_are_within_1e308_and_400_digits
  check (octet_length(value) > 1048576
         or (value !~ '[0-9][eE][+-]?[0-9]{3}' and (octet_length(value) <= 208 or value !~ '[0-9]{20}'))
         or (not jsonb_path_exists(
               ('[' || trim(both ',' from regexp_replace(translate(
                  regexp_replace(regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g'), 'true|false|null', '', 'g'),
                  E'{}[]: \t\n\r', ',,,,,'), ',{2,}', ',', 'g')) || ']')::jsonb,
               'strict $[*] ? (@ > 1e308 || @ < -1e308)')
             and regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g')
                 !~ '[0-9]{200}[0-9]{200}[0-9]{200}[0-9]{201}|[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})'))
  not valid;

-- json_strip_nulls reads each text and its escapes, as jsonb does, and keeps no tree.
alter domain faultline.document_text drop constraint a_documents_text_is_one;
alter domain faultline.document_text add constraint a_documents_text_is_one
  check (value is null or json_strip_nulls(value::json) is not null)
  not valid;
