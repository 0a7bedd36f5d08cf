"""Django's own tests of tasks, run on Faultline's backend."""
