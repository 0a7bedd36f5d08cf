-- The few lanes that keep less than everything of a success: each completion asks for them, and most often there are none.
create index lanes_that_keep_less on faultline.lanes (id, keep) where keep <> 'full';
