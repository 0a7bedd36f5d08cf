"""How many orders each scenario had last time: for the progress bar, and to begin with the largest."""

ORDERS = {
    "two workers": 3_896,
    "self-zombie": 803,
    "heartbeat against reaper": 1_246,
    "claimers": 1_680,
    "batches": 3_410,
    "killed before the commit": 1_052,
    "lossy failover": 440,
    "rows under a fence": 2_439,
    "two enqueues of one key": 42,
    "a key and its completion": 8_734,
    "a key that lapses": 132,
    "a dead job's key": 461,
    "keys and claims": 2_669,
}
