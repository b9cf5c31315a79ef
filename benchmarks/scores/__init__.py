"""What `cortex eval` measures, against labels made by hand."""
