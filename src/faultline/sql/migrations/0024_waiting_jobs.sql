-- Which of several jobs of one key wait.

-- What an enqueue does with a key that names a job already.
create domain faultline.key_rule as text
  constraint a_key_rule_is_one_of_six
    check (value in ('while_queued', 'while_unfinished', 'per_period', 'throttle', 'replace', 'debounce'));
