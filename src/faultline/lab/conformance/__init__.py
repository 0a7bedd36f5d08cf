"""The conformance kit: a scripted worker that checks a server, and a scripted server that checks a worker."""
