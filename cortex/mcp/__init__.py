"""The memory for programs that speak the Model Context Protocol: tools, resources and prompts."""
