"""Whole models on ocl against the CPU: builders by library, and the runner (run.py)."""
