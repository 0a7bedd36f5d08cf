-- Refuse an enqueue in a queue that is full.
create function faultline.refuse_full(queue text)
returns void
language plpgsql
stable
as $$
begin
  raise exception 'queue % is full: it holds % due jobs or more; nothing was enqueued', refuse_full.queue,
      (select owner.max_depth from faultline.queues as owner where owner.name = refuse_full.queue)
    using errcode = 'LS007',
          hint = 'Try again when workers have caught up, add workers, or raise its limit: faultline queues set --max-depth.';
end;
$$;
