-- Raise LS001, the lease is lost: all writes of this transaction roll back.
create function faultline.refuse(job_id bigint, token bigint)
returns void
language plpgsql
volatile
as $$
declare
  why record;
begin
  select * into why from faultline.why_refused(refuse.job_id, refuse.token);
  raise exception 'lease lost: job % is no longer held by token % (%)', refuse.job_id, refuse.token,
      case why.reason
        when 'token_mismatch' then format('token %s has it or had it last', why.current_token)
        when 'settled' then 'this lease has already ended'
        when 'cancelled' then 'the job was cancelled'
        else 'there is no trace of this lease'
      end
    using errcode = 'LS001',
          detail = json_build_object(
            'job_id', refuse.job_id::text, 'token', refuse.token::text,
            'current_token', why.current_token::text, 'reason', why.reason)::text,
          hint = 'Stop here: everything written in this transaction was rolled back, and the newer attempt goes on.';
end;
$$;
