"""How many orders each scenario had last time: for the progress bar, and to begin with the largest."""

ORDERS = {
    "two workers": 3_896,
}
