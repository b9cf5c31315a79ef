"""The flows by name, and what runs their stages: plain Python or Prefect."""
