"""What ci/data fetches."""
