"""What the backend of `django.tasks` is made of: tasks, arguments, results, and what a worker calls."""
