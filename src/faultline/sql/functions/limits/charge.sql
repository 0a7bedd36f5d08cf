-- Take so many tokens from the bucket of a limit whose row the caller has locked.
create function faultline.charge(known faultline.limits, moment timestamptz, starts int)
returns void
language plpgsql
volatile
as $$
declare
  filled timestamptz;
begin
  if known.rate is null then
    return;
  end if;
  filled := faultline.filled_at(known, moment);
  if charge.starts > 0 or known.full_at > filled then
    update faultline.limits as bucket
    set full_at = filled + charge.starts / known.rate * interval '1 second'
    where bucket.id = known.id;
  end if;
end;
$$;
