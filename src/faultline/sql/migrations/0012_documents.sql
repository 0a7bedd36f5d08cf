-- The cost of checking a document grows only with its length. Before, a document was printed to be measured, and a few bytes
-- of jsonb can print as kilobytes: 900 KB of `1e-16383` made a backend of 2.1 GB.
-- PostgreSQL runs a domain's checks in the order of their names, so no check may rely on a later one.
-- Not validated: existing rows passed the bounds of their time.

-- These checks do not print a jsonb. text_of.sql measures its size when it becomes text.
alter domain faultline.document drop constraint a_document_is_at_most_one_mebibyte;
alter domain faultline.document drop constraint a_documents_numbers_are_within_1e308;
alter domain faultline.document add constraint a_documents_numbers_are_within_1e308
  check (not jsonb_path_exists(value, 'strict $.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))'));

alter domain faultline.document_text drop constraint a_documents_text_is_at_most_one_mebibyte;
alter domain faultline.document_text drop constraint a_documents_text_is_one;

alter domain faultline.document_text add constraint a_document_is_at_most_64_deep
  check (octet_length(value) not between 129 and 1048576
         or 2 * octet_length(value) - octet_length(replace(value, '[', '')) - octet_length(replace(value, '{', '')) < 64
         or not jsonb_path_exists(value::jsonb, 'strict $.**{64 to last}'))
  not valid;

-- The bound is for the printed form: with blanks, and numbers without exponents. `1e-400,` grows most, from 7 bytes to 404,
-- so a text shorter than a 58th of the limit needs no check. Without exponents of two digits, `1e9,` grows most, to three
-- times its length. A number with an exponent of three digits prints as 100 bytes or more. A document that the next check
-- refuses is not printed here.
alter domain faultline.document_text add constraint a_document_is_at_most_one_mebibyte
  check (case
    when octet_length(value) > 1048576 then false
    when octet_length(value) <= 18078 then true
    when value !~ '[0-9][eE][+-]?[0-9]{2}'
      then octet_length(value) <= 349525 or octet_length(value::jsonb::text) <= 1048576
    when regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g')
         ~ '[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})' then true
    when regexp_count(regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g'),
                      '(?:[1-9][0-9.]*[eE]\+?|[0-9][eE]-)0*[1-9][0-9]{2}') > 10485 then false
    else octet_length(value::jsonb::text) <= 1048576
  end)
  not valid;

-- All clients allow 400 digits in a row and exponents of up to 400 either way. Such a number may print with 800 digits, so
-- this check allows 800. Most documents have neither a long row of digits nor an exponent of three digits, and one small
-- pattern passes them: a pattern that counts to 800 takes 40 us to start. Strings are left out.
alter domain faultline.document_text add constraint a_documents_numbers_are_within_1e308_and_400_digits
  check (octet_length(value) > 1048576
         or (value !~ '[0-9][eE][+-]?[0-9]{3}' and (octet_length(value) <= 208 or value !~ '[0-9]{20}'))
         or (not jsonb_path_exists(value::jsonb,
                                   'strict $.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))')
             and regexp_replace(value, '"(?:[^"\\]|\\.)*"', '', 'g')
                 !~ '[0-9]{200}[0-9]{200}[0-9]{200}[0-9]{201}|[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})'))
  not valid;

alter domain faultline.document_text add constraint a_documents_text_is_one
  check (value is null or value::jsonb is not null)
  not valid;
