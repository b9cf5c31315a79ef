"""Faces of Cortex: command line, recall, providers; the lower rooms are its subpackages."""

__version__ = "0.1.0"
