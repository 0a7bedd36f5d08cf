"""`job.complete()`: the handler's rows and the success, together or not at all."""
