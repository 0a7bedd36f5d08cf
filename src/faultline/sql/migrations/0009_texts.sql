-- Documents are stored as the text that was sent: printing them from jsonb took a sixth of each claim.

create domain faultline.document_text as text
  constraint a_documents_text_is_at_most_one_mebibyte
    check (octet_length(value) <= 1048576)
  constraint a_documents_text_is_one
    check (value is null or value::faultline.document is not null);   -- the cast's own error says what is wrong

alter table faultline.active alter column args type faultline.document_text using args::text;
alter table faultline.later  alter column args type faultline.document_text using args::text;
alter table faultline.dead   alter column args type faultline.document_text using args::text;
alter table faultline.ledger
  alter column args   type faultline.document_text using args::text,
  alter column result type faultline.document_text using result::text;
