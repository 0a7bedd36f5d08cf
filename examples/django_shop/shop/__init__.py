"""An order service in Django: orders are taken by views, and charged by tasks."""
