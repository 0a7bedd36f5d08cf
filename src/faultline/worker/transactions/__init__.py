"""`job.transaction()`: the handler's rows and the success, together or not at all."""
