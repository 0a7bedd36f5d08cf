"""What `faultline doctor` checks: facts read from the database, and the findings made of them."""
